/*
 * The order in which a run did its tasks, by its own stamps: on each stream and each communicator it
 * is the program's, on every rank and in every step, and nothing of one queue overlaps.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/real_plans.h"
#include "tests/real_rig.h"
#include "tests/tap.h"

enum { STEPS = 3 };

static const struct real_plan plans[] = {
    {"alone", "llama", "--gpus 1"},
    {"two ranks", "kda", "--gpus 2 --behavior unshard"},
    {"three ranks, whole", "gpt2", "--gpus 3 --units whole"},
    {"HSDP", "llama", "--gpus 4 --replicas 2 --pack-stream rs"},
    {"accumulation", "llama", "--gpus 2 --accum 3 --sync last --prefetch 2"},
    {"accumulation of reductions", "llama", "--gpus 4 --replicas 2 --accum 2 --all-reduce last"},
    {"second mesh", "llama", "--gpus 4 --behavior unshard --second-mesh *mlp*"},
    {"reductions' own communicator", "kda",
     "--gpus 2 --behavior unshard --separate-reduce-comm yes --reduce-inputs 2"},
    {"kept over two", "llama", "--gpus 4 --reshard 2 --ac full"},
    {"norm and scaler", "llama", "--gpus 2 --clip 1 --scaler yes --log-loss yes"},
};
enum { N_PLAN = sizeof plans / sizeof *plans };

/* One queue of a step: a stream's tasks, or a communicator's. */
struct queue {
    bool is_comm;
    uint8_t number;
};

struct stamped {
    struct stamp stamp;
    uint32_t task;
};

static bool is_of(const struct task *task, struct queue queue)
{
    return queue.is_comm ? task->comm == queue.number : task->stream == queue.number;
}

static int by_start(const void *a, const void *b)
{
    const struct stamped *x = a, *y = b;
    return (x->stamp.start_ns > y->stamp.start_ns) - (x->stamp.start_ns < y->stamp.start_ns);
}

/* What has a stamp in the step, by its start. */
static uint32_t read_stamps(const struct program *program, const struct run_log *log, uint32_t rank,
                            uint32_t step, struct queue queue, struct stamped *out)
{
    uint32_t n = 0;

    for (uint32_t t = 0; t < program->n_task; t++) {
        const struct stamp stamp = rank_log_time(log, rank, step, t)->stamp;
        if (stamp.end_ns > 0 && is_of(&program->tasks[t], queue))
            out[n++] = (struct stamped){stamp, t};
    }
    qsort(out, n, sizeof *out, by_start);
    return n;
}

/* Where they are not what the program issues, one after the other. */
static uint32_t count_wrong(const struct program *program, uint32_t step, struct queue queue,
                            const struct stamped *did, uint32_t n)
{
    const struct section *section =
        &program->sections[step < SECTION_STEADY ? step : SECTION_STEADY];
    uint32_t nth = 0, n_wrong = 0;

    for (uint32_t i = section->begin; i < section->end; i++) {
        const struct instr *instr = &program->instrs[i];
        if (instr->op != INSTR_LAUNCH || !is_of(&program->tasks[instr->id], queue))
            continue;
        n_wrong += nth >= n || did[nth].task != instr->id;
        n_wrong += nth > 0 && nth < n && did[nth - 1].stamp.end_ns > did[nth].stamp.start_ns;
        nth++;
    }
    return n_wrong + (nth < n ? n - nth : 0);
}

struct counts {
    uint32_t n_wrong, n_task, n_queue;
};

static void check_queue(struct made *made, const struct run_log *log, struct queue queue,
                        struct counts *counts)
{
    const struct program *program = &made->program;
    struct stamped *did = arena_array(&made->arena, struct stamped, program->n_task);
    uint32_t n_task = 0;

    for (uint32_t rank = 0; rank < log->ranks; rank++)
        for (uint32_t step = 0; step <= log->steps; step++) {
            const uint32_t n = read_stamps(program, log, rank, step, queue, did);
            counts->n_wrong += count_wrong(program, step, queue, did, n);
            n_task += n;
        }
    counts->n_task += n_task;
    counts->n_queue += n_task > 0;
}

static void check_plan(const struct real_plan *plan, uint64_t jitter_seed)
{
    struct made made;
    struct real_numbers got;
    struct counts streams = {0}, comms = {0};
    struct err err = {0};

    real_plan_init(&made, plan);
    const struct real_ask ask = {.program = &made.program,
                                 .steps = STEPS,
                                 .seeded = true,
                                 .optimizer = {.lr = 0.1},
                                 .debug = {.jitter_seed = jitter_seed}};
    ok(real_run(&ask, &got, &err) == STATUS_OK, "%s: runs%s%s", plan->name, *err.text ? ": " : "",
       err.text);
    for (uint8_t s = 0; s < STREAM_N; s++)
        check_queue(&made, got.log, (struct queue){false, s}, &streams);
    for (uint8_t c = 0; c < COMM_N; c++)
        check_queue(&made, got.log, (struct queue){true, c}, &comms);
    is_int(streams.n_wrong, 0, "%s: streams do their tasks in the program's order", plan->name);
    is_int(comms.n_wrong, 0, "%s: and so do communicators", plan->name);
    tap_note("%u tasks on %u streams, %u on %u communicators, %u ranks", streams.n_task,
             streams.n_queue, comms.n_task, comms.n_queue, got.log->ranks);
    real_release(&got);
    make_release(&made);
}

int main(void)
{
    const uint64_t seed = tap_seed(20261129);

    for (uint32_t i = 0; i < N_PLAN; i++)
        check_plan(&plans[i], i % 2 ? seed + i : 0);
    return tap_done();
}
