/*
 * The numbers of a step, from spans worked out by hand, and the sets of times that count them.
 */
#include "sim/simulate.h"

#include "sim/interval_set.h"
#include "tests/engine_rig.h"
#include "tests/tap.h"

static void add_all(struct interval_set *set, struct arena *arena, const struct interval *at,
                    uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        interval_set_add(set, arena, at[i].begin_ns, at[i].end_ns);
}

static void test_interval_set(void)
{
    static const struct interval parts[] = {
        {0, 10}, {5, 7}, {8, 12}, {12, 15}, {20, 20}, {22, 30}, {40, 39}, {50, 60},
    };
    static const struct interval others[] = {{-5, 1}, {14, 23}, {29, 55}, {60, 70}};
    struct arena arena;
    struct interval_set a = {0}, b = {0}, none = {0};

    arena_init(&arena);
    add_all(&a, &arena, parts, sizeof parts / sizeof *parts);
    add_all(&b, &arena, others, sizeof others / sizeof *others);
    is_int(a.n, 3, "what overlaps or touches is one interval, what is empty none");
    is_int(interval_set_ns(&a), 15 + 8 + 10, "sum of a set");
    /* 0…1, 14…15, 22…23, 29…30, 50…55 */
    is_int(interval_set_common_ns(&a, &b), 1 + 1 + 1 + 1 + 5, "what two sets share");
    is_int(interval_set_common_ns(&b, &a), 9, "sharing is symmetric");
    is_int(interval_set_common_ns(&a, &a), 33, "a set shares all with itself");
    is_int(interval_set_common_ns(&a, &none), 0, "nothing is shared with the empty set");
    /* -5…15, 20 is empty, 14…23 joins 22…30, 29…55, 50…60 and 60…70 */
    interval_set_unite(&a, &arena, &b);
    is_int(interval_set_ns(&a), 75, "two sets are united");
    interval_set_unite(&a, &arena, &none);
    interval_set_unite(&none, &arena, &a);
    is_int(interval_set_ns(&none), 75, "the empty set adds nothing and becomes what is added");
    arena_release(&arena);
}

/*
 * Two gathers a step, the second beside the forward; the next step's gathers wait for the forward.
 * Contention 300 per mille:
 *     AG  G0 0…60 | G1 60…110
 *     C           | F 60…172: 50 beside, 50000 of 130000; 80000 left = 61 * 1300 + 700
 * A step is 172 ns; 60 of 110 communication are exposed, 50 lost: 50 * 0.3 / 1.3 = 11.54.
 */
static void build_step(struct rig *rig, enum section_id section)
{
    build_section_begin(&rig->build, section);
    rig_launch(rig, STREAM_AG, TASK_ALL_GATHER, 0, 60);
    rig_after(rig, STREAM_C, STREAM_AG);
    rig_launch(rig, STREAM_AG, TASK_ALL_GATHER, 1, 50);
    rig_launch(rig, STREAM_C, TASK_FORWARD, 0, 100);
    rig_after(rig, STREAM_AG, STREAM_C);
    build_section_end(&rig->build);
}

static void test_step(void)
{
    struct rig rig;
    struct step_time step;
    struct engine *engine;
    struct err err = {0};

    rig_init(&rig, 0, 0, 300);
    build_step(&rig, SECTION_FIRST);
    build_step(&rig, SECTION_STEADY);
    is_int(simulate(&rig.program, &rig.prices, NULL, &rig.arena, &step, &engine, &err), STATUS_OK,
           "three steps are simulated");
    is_int(step.step_ns, 172, "a step is from the end of the second to the end of the third");
    is_int(step.comm_ns, 110, "communication");
    is_int(step.exposed_comm_ns, 60, "communication that nothing hides");
    is_int(step.contention_ns, 12, "contention, to the nearest ns");
    is_int(step.compute_ns, 112, "compute");
    is_int(engine_step_end_ns(engine, SIMULATED_STEPS), 3 * 172, "the spans are left");
    rig_release(&rig);
}

/*
 * The gather and the reduce-scatter have the wire together until 100, half of it each; F begins
 * with the gather's end. Contention 300 per mille:
 *     AG  G 0…100
 *     RS  R 0…150
 *     C            F 100…212: 50 beside, 50000 of 130000; 80000 left = 61 * 1300 + 700
 */
static void test_two_communicators(void)
{
    struct rig rig;
    struct step_time step;
    struct err err = {0};

    rig_init(&rig, 0, 0, 300);
    rig.plan.options.separate_reduce_comm = true;
    for (uint32_t s = SECTION_FIRST; s < SECTION_N; s++) {
        build_section_begin(&rig.build, (enum section_id)s);
        rig_launch(&rig, STREAM_RS, TASK_REDUCE_SCATTER, 0, 100)->comm = COMM_REDUCE;
        rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 1, 50);
        rig_after(&rig, STREAM_C, STREAM_AG);
        rig_launch(&rig, STREAM_C, TASK_FORWARD, 1, 100);
        rig_after(&rig, STREAM_AG, STREAM_C);
        rig_after(&rig, STREAM_RS, STREAM_C);
        build_section_end(&rig.build);
    }
    is_int(simulate(&rig.program, &rig.prices, NULL, &rig.arena, &step, NULL, &err), STATUS_OK,
           "collectives side by side are simulated");
    is_int(step.step_ns, 212, "each has half of the wire");
    is_int(step.comm_ns, 150, "communication side by side counts once");
    is_int(step.exposed_comm_ns, 100, "and once where it is exposed");
    is_int(step.contention_ns, 12, "and compute beside both loses no more than beside one");
    rig_release(&rig);
}

/*
 * The same step where in the third one, and in those that repeat it, memory is given back before
 * the forward is issued: behind both gathers, and at a price of 50.
 *     AG  G0 0…60 | G1 60…110
 *     C                        F 160…260
 */
static void test_settled(void)
{
    static const struct {
        uint32_t n_step, period, steps, measured;
        int64_t step_ns, exposed_ns;
    } cases[] = {
        {3, 1, 3, 1, 260, 110},                                /* all have it */
        {3, 2, 3, 2, (172 + 260) / 2, (60 + 110) / 2},         /* every second one */
        {4, 3, 4, 3, (2 * 172 + 260) / 3, (2 * 60 + 110) / 3}, /* every third one */
        {4, 1, 4, 1, 172, 60},                                 /* none but that */
        {3, 0, SETTLED_STEPS, SETTLED_MEASURED, 260, 110},     /* nobody knows */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig rig;
        struct step_time step;
        struct err err = {0};
        struct placed_op op = {.op = {.act = SEGMENT_RELEASE}};
        struct placement placement = {.n_step = cases[i].n_step, .period = cases[i].period};

        rig_init(&rig, 0, 0, 300);
        rig.prices.host_retry_ns = 50;
        build_step(&rig, SECTION_FIRST);
        build_step(&rig, SECTION_STEADY);
        op.instr = rig.program.sections[SECTION_STEADY].begin + 4;
        placement.steps[2] = (struct place_step){.ops = &op, .n_op = 1, .stats = {.retries = 1}};
        is_int(simulate(&rig.program, &rig.prices, &placement, &rig.arena, &step, NULL, &err),
               STATUS_OK, "retries in a period of %u are simulated", cases[i].period);
        ok(step.steps == cases[i].steps && step.measured == cases[i].measured,
           "up to step %u, of which %u are measured", cases[i].steps, cases[i].measured);
        is_int(step.step_ns, cases[i].step_ns, "a step is their mean");
        is_int(step.comm_ns, 110, "so is communication");
        is_int(step.exposed_comm_ns, cases[i].exposed_ns, "and what is exposed of it");
        const struct retries retries = step_time_retries(&step, &placement);
        ok(retries.steps == cases[i].measured && retries_of_step(retries) == (retries.n > 0),
           "%u retries in %u steps are one in each, or none", retries.n, retries.steps);
        is_int(retries.n > 0, cases[i].step_ns > 172, "and some where they take time");
        rig_release(&rig);
    }
}

/* The gather of step 3 begins beside the optimizer of step 2: 50 of its 60 are in the window. */
static void test_window(void)
{
    struct rig rig;
    struct step_time step;
    struct err err = {0};

    rig_init(&rig, 0, 0, 0);
    for (uint32_t s = SECTION_FIRST; s < SECTION_N; s++) {
        build_section_begin(&rig.build, (enum section_id)s);
        rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 60);
        rig_after(&rig, STREAM_C, STREAM_AG);
        rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 90);
        rig_after(&rig, STREAM_AG, STREAM_C);
        rig_launch(&rig, STREAM_C, TASK_OPTIMIZER, NO_UNIT, 10);
        build_section_end(&rig.build);
    }
    is_int(simulate(&rig.program, &rig.prices, NULL, &rig.arena, &step, NULL, &err), STATUS_OK,
           "steps that overlap are simulated");
    is_int(step.step_ns, 150, "a step is counted from where the one before it ended");
    is_int(step.comm_ns, 50, "what ran before the window is not counted");
    is_int(step.compute_ns, 100, "compute inside the window");
    rig_release(&rig);
}

/* A retry in steady: F is issued after the gather is done, so that nothing overlaps. */
static void test_retry(void)
{
    struct rig rig;
    struct step_time step;
    struct err err = {0};

    rig_init(&rig, 0, 0, 300);
    for (uint32_t s = SECTION_FIRST; s < SECTION_N; s++) {
        build_section_begin(&rig.build, (enum section_id)s);
        rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 60);
        rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 100);
        rig_after(&rig, STREAM_AG, STREAM_C);
        build_section_end(&rig.build);
    }
    struct placed_op op = {.op = {.act = SEGMENT_RELEASE},
                           .instr = rig.program.sections[SECTION_STEADY].begin + 1};
    const struct placement placement = {
        .steps = {{.n_op = 0}, {.ops = &op, .n_op = 1}}, .n_step = 2, .period = 1};
    const enum status status =
        simulate(&rig.program, &rig.prices, &placement, &rig.arena, &step, NULL, &err);
    is_int(status, STATUS_OK, "a placement with a retry is simulated");
    is_int(step.step_ns, 160, "a retry costs what it keeps from overlapping");
    is_int(step.contention_ns, 0, "and there is no contention then");
    rig_release(&rig);
}

static void test_failure(void)
{
    struct rig rig;
    struct step_time step = {.step_ns = -1};
    struct engine *engine = NULL;
    struct err err = {0};

    rig_init(&rig, 0, 0, 0);
    build_section_begin(&rig.build, SECTION_FIRST);
    rig.program.n_event = 1;
    rig_host_wait(&rig, 0);
    build_section_end(&rig.build);
    is_int(simulate(&rig.program, &rig.prices, NULL, &rig.arena, &step, &engine, &err), STATUS_RUN,
           "a program that blocks is an error");
    ok(step.step_ns == -1 && engine == NULL, "nothing is written then");
    rig_release(&rig);
}

int main(void)
{
    test_interval_set();
    test_step();
    test_settled();
    test_two_communicators();
    test_window();
    test_retry();
    test_failure();
    return tap_done();
}
