/*
 * The objective without events against sums by hand, where there is little that could overlap, and
 * against the event simulation, which never takes less.
 */
#include "sim/milp_judge.h"

#include "tests/make.h"
#include "tests/tap.h"

static const struct dims dims = {.layers = 4,
                                 .hidden = 1024,
                                 .intermediate = 4096,
                                 .heads = 8,
                                 .kv_heads = 8,
                                 .head_dim = 128,
                                 .vocab = 1000,
                                 .default_seq = 8192};

struct rig {
    struct made made;
    struct cluster cluster;
    struct judge *judge;
    struct judged milp, events;
    int64_t compute_ns, gather_ns, reduce_ns; /* of all tasks of a kind */
};

static void sum_tasks(struct rig *rig)
{
    const struct program *program = judge_program(rig->judge);
    const struct section *steady = &program->sections[SECTION_STEADY];

    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const uint32_t id = program->instrs[i].id;
        if (program->instrs[i].op != INSTR_LAUNCH)
            continue;
        const int64_t ns = judge_prices(rig->judge)->task_ns[id];
        const enum task_kind kind = (enum task_kind)program->tasks[id].kind;
        if (kind == TASK_FORWARD || kind == TASK_BACKWARD || kind == TASK_OPTIMIZER)
            rig->compute_ns += ns;
        if (kind == TASK_ALL_GATHER)
            rig->gather_ns += ns;
        if (kind == TASK_REDUCE_SCATTER)
            rig->reduce_ns += ns;
    }
}

static struct rig judge_units(const char *units, uint64_t gpus)
{
    struct plan_options options = plan_options_default();
    struct rig rig = {0};
    struct err err = {0};

    options.units = units;
    options.gpus = gpus;
    make_init_dims(&rig.made, &dims, &options);
    if (cluster_open("h100-sxm", &rig.made.arena, &rig.cluster, &err) != STATUS_OK)
        tap_bail(err.text);
    rig.judge = judge_new(&rig.cluster, &rig.made.bodies);
    if (judge_plan(rig.judge, &rig.made.plan, &rig.events, &err) != STATUS_OK ||
        milp_judge_plan(rig.judge, &rig.made.plan, &rig.milp, &err) != STATUS_OK)
        tap_bail(err.text);
    sum_tasks(&rig);
    return rig;
}

static void release(struct rig *rig)
{
    judge_free(rig->judge);
    make_release(&rig->made);
}

static uint64_t largest_full_bytes(const struct rig *rig)
{
    uint64_t most = 0;
    for (uint32_t b = 0; b < rig->made.program.n_buffer; b++)
        if (rig->made.program.buffers[b].role == ROLE_FULL &&
            rig->made.program.buffers[b].bytes > most)
            most = rig->made.program.buffers[b].bytes;
    return most;
}

static void test_time(void)
{
    struct rig alone = judge_units("whole", 1), whole = judge_units("whole", 8),
               block = judge_units("block", 8);

    is_int((uint64_t)alone.milp.step_ns, (uint64_t)alone.compute_ns,
           "on one GPU a step is its computation");
    is_int((uint64_t)whole.milp.step_ns,
           (uint64_t)(whole.compute_ns + whole.gather_ns + whole.reduce_ns),
           "in one unit all communication is exposed");
    ok(block.milp.step_ns > block.compute_ns &&
           block.milp.step_ns < block.compute_ns + block.gather_ns + block.reduce_ns,
       "in several some of it is hidden");
    ok(whole.milp.step_ns < whole.events.step_ns && block.milp.step_ns < block.events.step_ns,
       "copies, contention and the host make the simulated step longer");
    release(&alone);
    release(&whole);
    release(&block);
}

/* The peak is that of the loss, when all activations are there and no gradients yet. */
static void test_memory(void)
{
    struct rig one = judge_units("block", 8), two = judge_units("block*2", 8),
               four = judge_units("block*4", 8);

    is_int(two.milp.peak_bytes - one.milp.peak_bytes,
           2 * (largest_full_bytes(&two) - largest_full_bytes(&one)), "a larger unit counts twice");
    is_int(four.milp.peak_bytes - two.milp.peak_bytes,
           2 * (largest_full_bytes(&four) - largest_full_bytes(&two)), "and so on");
    release(&one);
    release(&two);
    release(&four);
}

int main(void)
{
    test_time();
    test_memory();
    return tap_done();
}
