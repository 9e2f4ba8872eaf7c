/*
 * Brackets of steps worked out by hand: the time with one cost at zero.
 *
 * The step, in which the copy-in waits for the forward of the step before; ns in brackets:
 *     AGI copy_in (20) |
 *     AG               | all_gather (60) |
 *     C                                  | copy_out (5) | forward (100)
 * One launch each: the host needs four launches a step.
 */
#include "sim/what_if.h"

#include "tests/engine_rig.h"
#include "tests/tap.h"

static void build_step(struct rig *rig, enum section_id section)
{
    build_section_begin(&rig->build, section);
    rig_launch(rig, STREAM_AGI, TASK_COPY_IN, 0, 20);
    rig_after(rig, STREAM_AG, STREAM_AGI);
    rig_launch(rig, STREAM_AG, TASK_ALL_GATHER, 0, 60);
    rig_after(rig, STREAM_C, STREAM_AG);
    rig_launch(rig, STREAM_C, TASK_COPY_OUT, 0, 5);
    rig_launch(rig, STREAM_C, TASK_FORWARD, 0, 100);
    rig_after(rig, STREAM_AGI, STREAM_C);
    build_section_end(&rig->build);
}

static const struct {
    const char *name;
    int64_t host_launch_ns;
    uint32_t contention_permille;
    int64_t step_ns, what_if_ns[WHAT_IF_N]; /* no-comm, infinite-host, no-copy, perfect-overlap */
} cases[] = {
    /* All in a row; C alone without waits. */
    {"a step on the device", 10, 0, 185, {125, 185, 160, 105}},
    /* Four launches, each longer than what it launches. */
    {"a slow host", 100, 0, 400, {400, 185, 400, 400}},
    /*
     * Nothing runs beside the gather but where C does not wait: copy_out, 5 ns, and 15 ns of forward
     * alone, 20 in all; then 60 ns beside it do 60000 of 85 * 1300; 50500 left = 38 * 1300 + 1100.
     */
    {"contention", 10, 300, 185, {125, 185, 160, 20 + 60 + 39}},
};

static void test_case(size_t i)
{
    struct rig rig;
    struct step_time step;

    rig_init(&rig, cases[i].host_launch_ns, 0, cases[i].contention_permille);
    build_step(&rig, SECTION_FIRST);
    build_step(&rig, SECTION_STEADY);
    for (unsigned what = 0; what < WHAT_IF_N; what++) {
        is_int(what_if_simulate((enum what_if)what, &rig.program, &rig.prices, NULL, &rig.arena,
                                &step, NULL),
               STATUS_OK, "%s: %s is simulated", cases[i].name, what_if_name((enum what_if)what));
        is_int(step.step_ns, cases[i].what_if_ns[what], "%s: %s", cases[i].name,
               what_if_name((enum what_if)what));
    }
    is_int(simulate(&rig.program, &rig.prices, NULL, &rig.arena, &step, NULL, NULL), STATUS_OK,
           "%s: the step itself is simulated", cases[i].name);
    is_int(step.step_ns, cases[i].step_ns, "%s: as if no bracket had been", cases[i].name);
    rig_release(&rig);
}

/* A wait of the host for a collective goes too, and the driver operation behind it stays. */
static void test_positions(void)
{
    struct rig rig;
    struct step_time step;
    struct placed_op op = {.op = {.act = SEGMENT_RELEASE}};

    rig_init(&rig, 0, 0, 0);
    for (uint32_t s = SECTION_FIRST; s < SECTION_N; s++) {
        build_section_begin(&rig.build, (enum section_id)s);
        rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 60);
        rig_host_wait(&rig, build_record(&rig.build, STREAM_AG));
        rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 100);
        op.instr = rig.program.n_instr;
        rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 10);
        build_section_end(&rig.build);
    }
    const struct placement placement = {
        .steps = {{.n_op = 0}, {.ops = &op, .n_op = 1}}, .n_step = 2, .period = 1};
    is_int(what_if_simulate(WHAT_IF_PERFECT_OVERLAP, &rig.program, &rig.prices, &placement,
                            &rig.arena, &step, NULL),
           STATUS_OK, "a step in which the host waits");
    is_int(step.step_ns, 110, "does not wait for the gather, and still gives memory back");
    rig_release(&rig);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        test_case(i);
    test_positions();
    return tap_done();
}
