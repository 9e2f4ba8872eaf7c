/*
 * The virtual clock with several communicators, against times worked out by hand.
 *
 * Each case is the first step of a tiny program; its comment is the time line, as in tests/engine.c.
 * Of the rig's 2 ranks a node has 2, so that shards stay inside one.
 */
#include <string.h>

#include "tests/engine_rig.h"
#include "tests/tap.h"

static void begin(struct rig *rig, uint32_t contention_permille)
{
    rig_init(rig, 0, 0, contention_permille);
    rig->plan.options.separate_reduce_comm = true;
    build_section_begin(&rig->build, SECTION_FIRST);
}

static void gather(struct rig *rig, uint16_t unit, int64_t ns)
{
    rig_launch(rig, STREAM_AG, TASK_ALL_GATHER, unit, ns);
}

static void reduce(struct rig *rig, uint16_t unit, int64_t ns)
{
    rig_launch(rig, STREAM_RS, TASK_REDUCE_SCATTER, unit, ns)->comm = COMM_REDUCE;
}

static void all_reduce(struct rig *rig, uint16_t unit, int64_t ns)
{
    rig_launch(rig, STREAM_AR, TASK_ALL_REDUCE, unit, ns)->comm = COMM_REPLICATE;
}

/* Run the first step and compare the spans of its tasks, up to a NULL. */
static void end(struct rig *rig, const char *name, const char *const want[])
{
    struct err err = {0};

    build_section_end(&rig->build);
    is_int(rig_run(rig, 1, NULL, &err), STATUS_OK, "%s: runs (%s)", name, err.text);
    for (uint32_t i = 0; want[i]; i++)
        is_str(rig_span(rig, i), want[i], "%s: task %u", name, i);
    rig_release(rig);
}
#define END(rig, name, ...) end((rig), (name), (const char *const[]){__VA_ARGS__, NULL})

/*
 * Half of the wire each until R0 is done, with 40 of G0 left:
 *     AG  G0 0…160
 *     RS  R0 0…120
 */
static void test_side_by_side(void)
{
    struct rig rig;
    begin(&rig, 0);
    gather(&rig, 0, 100);
    reduce(&rig, 0, 60);
    END(&rig, "side by side", "0 … 160", "0 … 120");
}

/*
 * G0 has done 50 when R1 comes, 70 when R1 goes; what follows on a communicator has to wait:
 *     C   B1 0…50
 *     AG  G0 0…120 | G1 120…130
 *     RS           R1 50…90
 */
static void test_on_the_way(void)
{
    struct rig rig;
    begin(&rig, 0);
    gather(&rig, 0, 100);
    gather(&rig, 1, 10);
    rig_launch(&rig, STREAM_C, TASK_BACKWARD, 1, 50);
    rig_after(&rig, STREAM_RS, STREAM_C);
    reduce(&rig, 1, 20);
    END(&rig, "on the way", "0 … 120", "120 … 130", "0 … 50", "50 … 90");
}

/*
 * Of three, by twelfths of a ns: G0 and R0 have 24, do 6 until 1 and 4 a ns from there on; 18 take
 * 4.5, counted as 5. K0 has done 20 of 24 by then and needs a part of one more.
 */
static void test_three(void)
{
    struct rig rig;
    begin(&rig, 0);
    rig.plan.shard_ranks = rig.plan.gpus_per_node = 4;
    rig.plan.options.reshard = RESHARD_RANKS;
    rig.plan.options.reshard_ranks = 2;
    gather(&rig, 0, 2);
    reduce(&rig, 0, 2);
    rig_launch(&rig, STREAM_AGI, TASK_COPY_IN, 0, 1);
    rig_launch(&rig, STREAM_AGI, TASK_ALL_GATHER, 0, 2)->comm = COMM_KEPT;
    END(&rig, "three on a wire", "0 … 6", "0 … 6", "0 … 1", "1 … 7");
}

/* Shards inside a node and replicas between nodes: links there, adapters here. */
static void test_replicas_between_nodes(void)
{
    struct rig rig;
    begin(&rig, 0);
    rig.plan.options.replicas = 2;
    reduce(&rig, 0, 100);
    all_reduce(&rig, 1, 70);
    END(&rig, "replicas between nodes", "0 … 100", "0 … 70");
}

/* Both in one node share its links; shards that cross nodes as well share its adapters. */
static void test_replicas_on_one_wire(uint64_t gpus_per_node, const char *name)
{
    struct rig rig;
    begin(&rig, 0);
    rig.plan.options.replicas = 2;
    rig.plan.gpus_per_node = gpus_per_node;
    reduce(&rig, 0, 100);
    all_reduce(&rig, 1, 70);
    END(&rig, name, "0 … 170", "0 … 140");
}

/*
 * Shards of two nodes, kept in one: the wire of R0 is that of K0 and that of A0, but these two have
 * nothing to do with each other. K0 and A0 have a half until 60, R0 a third, and 20 left.
 */
static void test_kept_in_a_node(void)
{
    struct rig rig;
    begin(&rig, 0);
    rig.plan.shard_ranks = 4;
    rig.plan.options.reshard = RESHARD_RANKS;
    rig.plan.options.reshard_ranks = 2;
    rig.plan.options.replicas = 2;
    reduce(&rig, 0, 40);
    rig_launch(&rig, STREAM_AG, TASK_ALL_GATHER, 0, 30)->comm = COMM_KEPT;
    all_reduce(&rig, 0, 30);
    END(&rig, "kept in a node", "0 … 80", "0 … 60", "0 … 60");
}

/* Contention of 300 per mille beside either or both: 100000 until 100, 30000 = 23 * 1300 + 100. */
static void test_contention(void)
{
    struct rig rig;
    begin(&rig, 300);
    gather(&rig, 0, 50);
    reduce(&rig, 0, 50);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 100);
    END(&rig, "contention by two", "0 … 100", "0 … 100", "0 … 124");
}

/* On wires of their own: 40000 beside R0 and A1, 20000 beside R0 alone, 70000 = 53 * 1300 + 1100. */
static void test_contention_of_two_wires(void)
{
    struct rig rig;
    begin(&rig, 300);
    rig.plan.options.replicas = 2;
    reduce(&rig, 0, 60);
    all_reduce(&rig, 1, 40);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 100);
    END(&rig, "contention by two wires", "0 … 60", "0 … 40", "0 … 114");
}

/*
 * What ends first decides on the rest: F0, slowed by G0, sets R0 going, which slows G0.
 *     C   F0 0…130
 *     AG  G0 0…250: 130, then half of 100, then 20
 *     RS            R0 130…230
 */
static void test_compute_between(void)
{
    struct rig rig;
    begin(&rig, 300);
    gather(&rig, 0, 200);
    rig_launch(&rig, STREAM_C, TASK_FORWARD, 0, 100);
    rig_after(&rig, STREAM_RS, STREAM_C);
    reduce(&rig, 0, 50);
    END(&rig, "compute between", "0 … 250", "0 … 130", "130 … 230");
}

/*
 * R0 is issued first but waits for F0, which waits for G0. In one queue G0 would stand behind R0 for
 * ever; in two:
 *     AG  G0 0…50
 *     C           | F0 50…100
 *     RS                      | R0 100…200
 */
static void issue_reduce_first(struct rig *rig)
{
    build_wait(&rig->build, STREAM_RS, 1);
    reduce(rig, 0, 100);
    gather(rig, 0, 50);
    rig_after(rig, STREAM_C, STREAM_AG); /* event 0 */
    rig_launch(rig, STREAM_C, TASK_FORWARD, 0, 50);
    build_record(&rig->build, STREAM_C); /* event 1 */
}

static void test_deadlock(void)
{
    struct rig rig;
    struct err err = {0};
    begin(&rig, 0);
    issue_reduce_first(&rig);
    END(&rig, "two queues", "100 … 200", "0 … 50", "50 … 100");

    begin(&rig, 0);
    issue_reduce_first(&rig);
    rig.program.tasks[0].comm = COMM_SHARD;
    build_section_end(&rig.build);
    is_int(rig_run(&rig, 1, NULL, &err), STATUS_RUN, "in one queue the same cannot run");
    ok(strstr(err.text, "stream AG for its communicator before 'all_gather u0'") != NULL,
       "and it is said which one waits (got '%s')", err.text);
    rig_release(&rig);
}

int main(void)
{
    test_side_by_side();
    test_on_the_way();
    test_three();
    test_replicas_between_nodes();
    test_replicas_on_one_wire(4, "replicas in one node");
    test_replicas_on_one_wire(1, "one GPU a node");
    test_kept_in_a_node();
    test_contention();
    test_contention_of_two_wires();
    test_compute_between();
    test_deadlock();
    return tap_done();
}
