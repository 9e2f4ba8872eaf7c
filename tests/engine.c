/*
 * The virtual clock against times worked out by hand.
 *
 * Each case is the first step of a tiny program; its comment is the time line. G, R, F, B: gather,
 * reduce-scatter, forward and backward of the unit that follows; | parts what follows one another.
 */
#include <string.h>

#include "tests/engine_rig.h"
#include "tests/tap.h"

static void begin(struct rig *rig, int64_t host_launch_ns, int64_t host_all_gather_ns,
                  uint32_t contention_permille)
{
    rig_init(rig, host_launch_ns, host_all_gather_ns, contention_permille);
    build_section_begin(&rig->build, SECTION_FIRST);
}

/* Run the first step and compare the spans of its n tasks. */
static void end(struct rig *rig, const char *name, const char *const *want, uint32_t n)
{
    struct err err = {0};

    build_section_end(&rig->build);
    is_int(rig_run(rig, 1, NULL, &err), STATUS_OK, "%s: runs", name);
    for (uint32_t i = 0; i < n; i++)
        is_str(rig_span(rig, i), want[i], "%s: task %u", name, i);
    rig_release(rig);
}
#define END(rig, name, ...)                                      \
    do {                                                         \
        const char *const want_[] = {__VA_ARGS__};               \
        end((rig), (name), want_, sizeof want_ / sizeof *want_); \
    } while (0)

/*
 * Forward of two units; each gather waits for the forward before it:
 *     AG  G0 0…100 |                   | G1 150…250 |
 *     C            | F0 100…150        |            | F1 250…300
 */
static void test_no_overlap(void)
{
    struct rig rig;
    begin(&rig, 0, 0, 300);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 100);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 50);
    rig_after(&rig, STREAM_AG, STREAM_C);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 100);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 50);
    END(&rig, "forward without overlap", "0 … 100", "100 … 150", "150 … 250", "250 … 300");
}

/*
 * The same, prefetched, and forward long enough to hide the second gather; no contention:
 *     AG  G0 0…100 | G1 100…200
 *     C            | F0 100…300      | F1 300…500
 */
static void test_full_overlap(void)
{
    struct rig rig;
    begin(&rig, 0, 0, 0);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 100);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 100);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 200);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 200);
    END(&rig, "forward, all hidden", "0 … 100", "100 … 200", "100 … 300", "300 … 500");
}

/*
 * Backward: the reduce-scatter of unit 1 is issued before the gather of unit 0. Both streams are
 * free, but they share one communicator, which is a queue: it idles from 0 to 100.
 *     C   B1 0…100 |                          | B0 450…550
 *     RS           | R1 100…400 |
 *     AG                        | G0 400…450  |
 */
static void test_communicator_busy(void)
{
    struct rig rig;
    begin(&rig, 0, 0, 0);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 1, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 1, 300);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 50);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 0, 100);
    END(&rig, "backward, communicator busy", "0 … 100", "100 … 400", "400 … 450", "450 … 550");
}

/*
 * Backward as FSDP2 issues it, the gather first:
 *     AG  G0 0…50
 *     C   B1 0…100 | B0 100…200
 *     RS           | R1 100…400 | R0 400…700
 */
static void test_gather_before_reduce(void)
{
    struct rig rig;
    begin(&rig, 0, 0, 0);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 50);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 1, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 1, 300);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 0, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 0, 300);
    END(&rig, "backward, gather first", "0 … 50", "0 … 100", "100 … 400", "100 … 200", "400 … 700");
}

/*
 * A late host, 10 ns a launch. F0 has 5 kernels worth 20 ns together, the last one 4: issued from
 * 10 to 50, so it runs 10…54 and not 10…30. The gather behind it is issued at 60, no prefetch any
 * more; F1, 5 kernels issued from 70 to 110, waits for nothing: 70…114.
 *     host  F0 10…50 | G1 60 | F1 70…110
 */
static void test_late_host(void)
{
    struct rig rig;
    begin(&rig, 10, 0, 0);
    rig.last_ns[0] = rig.last_ns[2] = 4;
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 20)->kernels = 5;
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 5);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 20)->kernels = 5;
    END(&rig, "late host", "10 … 54", "60 … 65", "70 … 114");
}

/*
 * Unshard at its own host price of 40, launches at 10. copy_in (2 kernels) is issued free at 0, the
 * gather at 40, copy_out free at 40, F0 at 50: the price stands once for all three.
 *     AGI  0…7    AG  G0 40…60    C  copy_out 60…65 | F0 65…85
 */
static void test_unit_host_cost(void)
{
    struct rig rig;
    begin(&rig, 10, 40, 0);
    rig_launch(&rig, STREAM_AGI, TASK_COPY_IN, 0, 7)->kernels = 2;
    rig_after(&rig, STREAM_AG, STREAM_AGI);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 20);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_COPY_OUT, 0, 5);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 20);
    rig_launch(&rig, STREAM_RS, TASK_POST_REDUCE, 0, 1);
    END(&rig, "unshard at a price of its own", "0 … 7", "40 … 60", "60 … 65", "65 … 85", "60 … 61");
}

/* Without that price the launches count: copy_in 10 and 20, gather 30, copy_out 40, F0 50. */
static void test_unit_without_host_cost(void)
{
    struct rig rig;
    begin(&rig, 10, 0, 0);
    rig_launch(&rig, STREAM_AGI, TASK_COPY_IN, 0, 7)->kernels = 2;
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 20);
    rig_launch(&rig, STREAM_RS, TASK_COPY_OUT, 0, 5);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 20);
    END(&rig, "unshard at ordinary launches", "10 … 20", "30 … 50", "40 … 45", "50 … 70");
}

/* One rank gathers nothing: its copy_out is a launch like any other, whatever a gather costs. */
static void test_one_rank(void)
{
    struct rig rig;
    begin(&rig, 10, 40, 0);
    rig.plan.world = rig.plan.shard_ranks = 1;
    rig_launch(&rig, STREAM_C, TASK_COPY_OUT, 0, 5);
    END(&rig, "one rank", "10 … 15");
}

/*
 * Contention of 300 per mille: a task of T ns is T * 1300 units, 1300 a ns alone, 1000 beside a
 * collective.
 */
static const struct {
    const char *name;
    int64_t gather_from, gather_ns, task_ns; /* the task starts at 0 */
    const char *want;
} contention_cases[] = {
    /* 13000 = 13 * 1000 */
    {"all of it beside a collective", 0, 50, 10, "0 … 13"},
    /* 1300 = 1000 + 300: part of a ns counts whole */
    {"an end inside a nanosecond is rounded up", 0, 50, 1, "0 … 2"},
    /* 50 alone: 65000; 65000 left = 65 * 1000 */
    {"a collective that begins on the way", 50, 100, 100, "0 … 115"},
    /* 70 beside: 70000; 60000 left = 46 * 1300 + 200 */
    {"a collective that ends on the way", 0, 70, 100, "0 … 117"},
    /* 20 alone: 26000; 30 beside: 30000; 74000 left = 56 * 1300 + 1200 */
    {"a collective in the middle", 20, 30, 100, "0 … 107"},
    /* 30 alone = all of it */
    {"a collective that begins at the end", 30, 100, 30, "0 … 30"},
    /* 13000 left after 13 ns beside: nothing */
    {"a collective that ends with it", 0, 13, 10, "0 … 13"},
    {"no work", 0, 10, 0, "0 … 0"},
};

static void test_contention(void)
{
    for (uint32_t i = 0; i < sizeof contention_cases / sizeof *contention_cases; i++) {
        struct rig rig;
        begin(&rig, 0, 0, 300);
        rig_launch(&rig, STREAM_RS, TASK_POST_REDUCE, 0, contention_cases[i].gather_from);
        rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, contention_cases[i].task_ns);
        rig_after(&rig, STREAM_AG, STREAM_RS);
        rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, contention_cases[i].gather_ns);
        build_section_end(&rig.build);
        rig_run(&rig, 1, NULL, NULL);
        is_str(rig_span(&rig, 1), contention_cases[i].want, "contention: %s",
               contention_cases[i].name);
        rig_release(&rig);
    }
}

/*
 * What B1 sets going slows B0, which follows it at once; the copy beside the collective is not
 * slowed, nor is the collective.
 *     C    B1 0…100 | B0 100…212: 50 beside, 50000; 80000 left = 61 * 1300 + 700
 *     RS            | R1 100…150
 *     AR            | copy 100…140
 */
static void test_contention_by_successor(void)
{
    struct rig rig;
    begin(&rig, 0, 0, 300);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 1, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    rig_after(&rig, STREAM_AR, STREAM_C);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 0, 100);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 1, 50);
    rig_launch(&rig, STREAM_AR, TASK_POST_REDUCE, 1, 40);
    END(&rig, "contention by what a task sets going", "0 … 100", "100 … 212", "100 … 150",
        "100 … 140");
}

/*
 * The host waits for B1, then issues R1, which still meets B0; launches at 10:
 *     host  B1 10 | B0 20 | waits until 110 | R1 120
 *     C     B1 10…110 | B0 110…222: 10 alone, 13000; 50 beside, 50000; 67000 left = 51 * 1300 + 700
 *     RS    R1 120…170
 */
static void test_host_wait(void)
{
    struct rig rig;
    begin(&rig, 10, 0, 300);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 1, 100);
    const uint32_t event = build_record(&rig.build, STREAM_C);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 0, 100);
    rig_host_wait(&rig, event);
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 1, 50);
    END(&rig, "the host waits", "10 … 110", "110 … 222", "120 … 170");
}

/*
 * Memory that is given back in mid-step: the host waits for C (100) and AG (300) before it issues
 * F1. Memory that is only taken stops nobody: F1 starts at 100.
 */
static void test_drain(enum segment_act act, const char *want)
{
    struct rig rig;
    begin(&rig, 0, 0, 0);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 100);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 300);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 100);
    build_section_end(&rig.build);

    struct placed_op op = {.op = {.act = (uint8_t)act}, .instr = 2};
    const struct placement placement = {.steps = {{.ops = &op, .n_op = 1}}, .n_step = 1};
    is_int(rig_run(&rig, 1, &placement, NULL), STATUS_OK, "driver operation %d runs", act);
    is_str(rig_span(&rig, 2), want, "driver operation %d: what is issued after it", act);
    rig_release(&rig);
}

/*
 * Two segments given back in one go are one retry, which costs 50: the host waits for AG (300), and
 * issues F1 at 350. A third one, behind one that is taken, is a second retry: 400.
 */
static void test_retries(void)
{
    struct rig rig;
    struct placed_op ops[] = {
        {.op = {.act = SEGMENT_RELEASE}, .instr = 1},
        {.op = {.act = SEGMENT_RELEASE}, .instr = 1},
        {.op = {.act = SEGMENT_RESERVE}, .instr = 1},
        {.op = {.act = SEGMENT_RELEASE}, .instr = 1},
    };
    begin(&rig, 0, 0, 0);
    rig.prices.host_retry_ns = 50;
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 300);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 100);
    build_section_end(&rig.build);

    struct placement placement = {.steps = {{.ops = ops, .n_op = 2}}, .n_step = 1};
    is_int(rig_run(&rig, 1, &placement, NULL), STATUS_OK, "a step with a retry runs");
    is_str(rig_span(&rig, 1), "350 … 450", "two segments in one go are one retry");
    placement.steps[0].n_op = 4;
    is_int(rig_run(&rig, 1, &placement, NULL), STATUS_OK, "and one with two");
    is_str(rig_span(&rig, 1), "400 … 500", "what is given back later is another retry");
    rig_release(&rig);
}

/* C waits for what AG records only after it has waited for C; between them an innocent RS. */
static void test_deadlock(void)
{
    struct rig rig;
    struct err err = {0};
    begin(&rig, 0, 0, 0);
    build_wait(&rig.build, STREAM_C, 1);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 1);
    rig_after(&rig, STREAM_AG, STREAM_C); /* event 0 */
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 1);
    build_record(&rig.build, STREAM_AG); /* event 1 */
    rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 2, 1);
    build_section_end(&rig.build);
    is_int(rig_run(&rig, 1, NULL, &err), STATUS_RUN, "streams that wait for each other cannot run");
    is_str(err.text,
           "deadlock: nothing ends the wait of the host for all streams, "
           "stream C for event 1 before 'forward u0', "
           "stream AG for event 0 before 'all_gather u1', "
           "stream RS for its communicator before 'reduce_scatter u2'",
           "a deadlock names what cannot start, and why");
    rig_release(&rig);
}

static void test_wait_for_nothing(void)
{
    struct rig rig;
    struct err err = {0};
    begin(&rig, 0, 0, 0);
    rig.program.n_event = 1;
    rig_host_wait(&rig, 0);
    build_section_end(&rig.build);
    is_int(rig_run(&rig, 1, NULL, &err), STATUS_RUN, "the host cannot wait for a record to come");
    is_str(err.text, "deadlock: nothing ends the wait of the host for event 0", "and it is named");
    rig_release(&rig);
}

/*
 * A WAIT before its RECORD is held, not passed over. Launches at 10: F0 is issued at 10 behind the
 * WAIT, the gather at 20, the copy's 3 kernels at 30, 40 and 50, and then the RECORD of AG, idle by
 * then; not before 50 it lets F0 go.
 */
static void test_early_wait(void)
{
    struct rig rig;
    begin(&rig, 10, 0, 0);
    build_wait(&rig.build, STREAM_C, 0);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 1);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 5);
    rig_launch(&rig, STREAM_RS, TASK_POST_REDUCE, 0, 1)->kernels = 3;
    build_record(&rig.build, STREAM_AG);
    END(&rig, "a wait before its record", "50 … 51", "20 … 25", "30 … 50");
}

static void test_range(void)
{
    struct rig rig;
    struct err err = {0};
    begin(&rig, 0, 0, 300);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 3, INT64_MAX / 2);
    build_section_end(&rig.build);
    is_int(rig_run(&rig, 1, NULL, &err), STATUS_RUN, "time past the clock's range is an error");
    is_str(err.text, "virtual clock out of range at task 'forward u3': the steps would take weeks",
           "the error names the task");
    rig_release(&rig);
}

/*
 * One event from step to step: AG waits for it, C waits for AG and records it again. A WAIT is for
 * the last RECORD before it, so that each steady step starts where the step before it ended.
 *     first   C 0…10
 *     steady  AG 10…40 | C 40…60
 *     steady  AG 60…90 | C 90…110
 */
static void test_steps(void)
{
    struct rig rig;
    begin(&rig, 0, 0, 0);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 10);
    const uint32_t last = build_record(&rig.build, STREAM_C);
    build_section_end(&rig.build);
    build_section_begin(&rig.build, SECTION_STEADY);
    build_wait(&rig.build, STREAM_AG, last);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 30);
    rig_after(&rig, STREAM_C, STREAM_AG);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 20);
    build_record(&rig.build, STREAM_C);
    rig.program.instrs[rig.program.n_instr - 1].id = last;
    build_section_end(&rig.build);

    const int64_t ends[] = {0, 10, 60, 110};
    is_int(rig_run(&rig, 3, NULL, NULL), STATUS_OK, "three steps run");
    for (uint32_t step = 0; step < 4; step++)
        is_int(engine_step_end_ns(rig.engine, step), ends[step], "end of step %u", step);
    uint32_t n;
    const struct span *spans = engine_spans(rig.engine, &n);
    is_int(n, 5, "a span for each task of each step");
    ok(spans[0].step == 1 && spans[2].step == 2 && spans[4].step == 3, "spans know their step");
    rig_release(&rig);
}

int main(void)
{
    test_no_overlap();
    test_full_overlap();
    test_communicator_busy();
    test_gather_before_reduce();
    test_late_host();
    test_unit_host_cost();
    test_unit_without_host_cost();
    test_one_rank();
    test_contention();
    test_contention_by_successor();
    test_host_wait();
    test_drain(SEGMENT_RELEASE, "300 … 400");
    test_drain(SEGMENT_UNMAP, "300 … 400");
    test_drain(SEGMENT_RESERVE, "100 … 200");
    test_drain(SEGMENT_MAP, "100 … 200");
    test_retries();
    test_deadlock();
    test_wait_for_nothing();
    test_early_wait();
    test_range();
    test_steps();
    return tap_done();
}
