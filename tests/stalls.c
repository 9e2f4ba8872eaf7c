/*
 * Critical path and stalls of small steps, worked out by hand.
 *
 * Each case is one step of a tiny program; its comment is the time line, as in tests/engine.c. The
 * path is told in order of time, "host" before what the host issues; the stalls the costliest first,
 * each with its parts, what it is a stall of and, in brackets, the task that held that.
 */
#include "sim/stalls.h"

#include "src/program_print.h"
#include "tests/engine_rig.h"
#include "tests/tap.h"

static void add_span(const struct causes *causes, uint32_t span, struct text *out)
{
    char name[PROGRAM_NAME_MAX];
    text_add(out, "%s", program_task_name(causes->program, causes->spans[span].task, name));
}

static void add_path(const struct causes *causes, struct arena *arena, struct text *out)
{
    struct path path;

    critical_path(causes, 1, arena, &path);
    for (uint32_t i = 0; i < path.n; i++) {
        text_add(out, "%s%s", i > 0 ? ", " : "", path.at[i].on_host ? "host " : "");
        add_span(causes, path.at[i].span, out);
        text_add(out, " %lld", (long long)(path.at[i].end_ns - path.at[i].begin_ns));
    }
}

static void add_stall(const struct causes *causes, const struct stall *stall, struct text *out)
{
    text_add(out, "%lld-%lld", (long long)stall->begin_ns, (long long)stall->end_ns);
    for (unsigned c = 0; c < STALL_CAUSE_N; c++)
        if (stall->parts_ns[c] > 0)
            text_add(out, " %s %lld", stall_cause_name((enum stall_cause)c),
                     (long long)stall->parts_ns[c]);
    text_add(out, stall->inside ? " inside " : " before ");
    if (stall->span == NO_SPAN)
        text_add(out, "the end");
    else
        add_span(causes, stall->span, out);
    text_add(out, " (");
    add_span(causes, stall->holder, out);
    text_add(out, ")");
}

/* Run the first step with one driver operation, or none, and compare. */
static void check(struct rig *rig, const struct placement *placement, const char *name,
                  const char *path, const char *stalls)
{
    struct causes causes;
    struct stalls found;
    struct text text;

    build_section_end(&rig->build);
    is_int(rig_run(rig, 1, placement, NULL), STATUS_OK, "%s: runs", name);
    causes_find(rig->engine, &rig->arena, &causes);
    text_init(&text);
    add_path(&causes, &rig->arena, &text);
    is_str(text.at, path, "%s: critical path", name);
    text_release(&text);
    stalls_find(&causes, 1, &rig->arena, &found);
    for (uint32_t i = 0; i < found.n; i++) {
        text_add(&text, i > 0 ? ", " : "");
        add_stall(&causes, &found.at[i], &text);
    }
    is_str(text.at, stalls, "%s: stalls", name);
    text_release(&text);
    rig_release(rig);
}

static void begin(struct rig *rig, int64_t host_launch_ns)
{
    rig_init(rig, host_launch_ns, 0, 0);
    build_section_begin(&rig->build, SECTION_FIRST);
}

/*
 * The gather of unit 1 waits for the forward of unit 0, its copy-in does not:
 *     AGI copy_in 0…20
 *     AG               | G0 20…120 |              | G1 180…250 |
 *     C                            | F0 120…180   |            | F1 250…300
 */
static void test_gathers(void)
{
    struct rig rig;
    begin(&rig, 0);
    rig_launch(&rig, STREAM_AGI, TASK_COPY_IN, 0, 20);
    rig_after(&rig, STREAM_AG, STREAM_AGI);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 100);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 60);
    rig_after(&rig, STREAM_AG, STREAM_C);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 70);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 50);
    check(&rig, NULL, "gathers",
          "copy_in u0 20, all_gather u0 100, forward u0 60, all_gather u1 70, forward u1 50",
          "0-120 all-gather 100 copy 20 before forward u0 (all_gather u0), "
          "180-250 all-gather 70 before forward u1 (all_gather u1)");
}

/*
 * Both streams are free, but the gather stands behind the reduce-scatter:
 *     C   B1 0…100 |                          | B0 450…550
 *     RS           | R1 100…400 |                          | R0 550…600
 *     AG                        | G0 400…450  |
 */
static void test_communicator(void)
{
    struct rig rig;
    begin(&rig, 0);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 1, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 1, 300);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 50);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 0, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 0, 50);
    check(&rig, NULL, "communicator",
          "backward u1 100, reduce_scatter u1 300, all_gather u0 50, backward u0 100, "
          "reduce_scatter u0 50",
          "100-450 all-gather 50 communicator 300 before backward u0 (reduce_scatter u1), "
          "550-600 reduce 50 before the end (reduce_scatter u0)");
}

/*
 * The same on two communicators, the gather after B1: the two share the wire until 200, and what R1
 * loses to that is its own.
 *     C   B1 0…100 |            | B0 200…300 |
 *     RS           | R1 100…450                    | R0 450…500
 *     AG           | G0 100…200 |
 */
static void test_two_communicators(void)
{
    struct rig rig;
    begin(&rig, 0);
    rig.plan.options.separate_reduce_comm = true;
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 1, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    rig_after(&rig, STREAM_AG, STREAM_C);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 1, 300)->comm = COMM_REDUCE;
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 50);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 0, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 0, 50)->comm = COMM_REDUCE;
    check(&rig, NULL, "two communicators",
          "backward u1 100, reduce_scatter u1 350, reduce_scatter u0 50",
          "300-500 reduce 200 before the end (reduce_scatter u1), "
          "100-200 all-gather 100 before backward u0 (all_gather u0)");
}

/*
 * A late host, 10 ns a launch. F0: 5 kernels worth 20 ns, issued from 10 to 50, the last takes 4.
 *     host  F0 10…50 | G1 60 | F1 70…110
 *     C     F0 10…54         | F1 70…114
 */
static void test_late_host(void)
{
    struct rig rig;
    begin(&rig, 10);
    rig.last_ns[0] = rig.last_ns[2] = 4;
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 20)->kernels = 5;
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 5);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 20)->kernels = 5;
    check(&rig, NULL, "late host",
          "host forward u0 50, host all_gather u1 10, host forward u1 50, forward u1 4",
          "30-54 host 24 inside forward u0 (forward u0), "
          "90-114 host 24 inside forward u1 (forward u1), "
          "54-70 host 16 before forward u1 (forward u1), "
          "0-10 host 10 before forward u0 (forward u0)");
}

/* The same host waits for F0 before it issues F1: F0 10…110, F1 120…150. */
static void test_host_wait(void)
{
    struct rig rig;
    begin(&rig, 10);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 100);
    rig_host_wait(&rig, build_record(&rig.build, STREAM_C));
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 30);
    check(&rig, NULL, "host wait",
          "host forward u0 10, forward u0 100, host forward u1 10, forward u1 30",
          "0-10 host 10 before forward u0 (forward u0), "
          "110-120 host-wait 10 before forward u1 (forward u0)");
}

/* Memory is given back before F1, so that it waits for the gather beside F0: F0 0…100, G1 0…300. */
static void test_drain(void)
{
    struct placed_op op = {.op = {.act = SEGMENT_RELEASE}, .instr = 2};
    const struct placement placement = {.steps = {{.ops = &op, .n_op = 1}}, .n_step = 1};
    struct rig rig;
    begin(&rig, 0);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 100);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 300);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 100);
    check(&rig, &placement, "drain", "all_gather u1 300, forward u1 100",
          "100-300 allocator 200 before forward u1 (all_gather u1)");
}

int main(void)
{
    test_gathers();
    test_communicator();
    test_two_communicators();
    test_late_host();
    test_host_wait();
    test_drain();
    return tap_done();
}
