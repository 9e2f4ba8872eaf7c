/*
 * What a gradient is divided by on its way: followed through a program's tasks from where it is
 * packed to the gradient of the shards, an average counted as the number of its ranks.
 */
#include <stdio.h>
#include <string.h>

#include "tests/asked.h"
#include "tests/tap.h"

struct question {
    const char *dtype, *ranks, *microbatches, *more;
    double factor; /* 0: not asked for */
    bool force_sum;
};

static double divisor_of(const struct program *program, const struct task *task)
{
    const uint64_t ranks = task->reduction == REDUCE_AVG
                               ? comm_ranks_of(program->plan, (enum comm)task->comm).ranks
                               : 1;
    return task->divisor * (double)ranks;
}

static bool moves_gradients(enum task_kind kind)
{
    return kind == TASK_PRE_DIVIDE || kind == TASK_PRECAST || kind == TASK_PACK ||
           kind == TASK_REDUCE_SCATTER || kind == TASK_ALL_REDUCE || kind == TASK_POST_REDUCE;
}

/* Summands must have been divided by the same. */
static bool follow(const struct program *program, const struct task *task, double *divided)
{
    const struct access *accesses = &program->accesses[task->access];
    const double by = divisor_of(program, task);
    double from = 0;
    bool even = true;

    for (uint32_t i = 0; i < task->n_access; i++) {
        double *at = &divided[accesses[i].buffer];
        if (accesses[i].mode == ACCESS_READ)
            from = task->kind == TASK_PACK ? 1 : *at;
        else if (accesses[i].mode == ACCESS_WRITE)
            *at = from * by;
        else if (from == 0)
            *at *= by;
        else
            even &= *at == from * by;
    }
    return even;
}

/* torch divides in the copy that stands for a reduce-scatter and after plain sums as well. */
static double expected_of(const struct question *q, const struct plan *plan)
{
    const bool twice = plan->shard_ranks == 1 && (q->force_sum || !strcmp(q->dtype, "fp16"));

    if (q->factor == 0)
        return (double)plan->world;
    return twice ? q->factor * q->factor : q->factor;
}

/* The gradients of shards that were divided by something else. */
static uint32_t count_wrong(const struct made *made, double expected)
{
    const struct program *program = &made->program;
    double divided[4096];
    uint32_t n_wrong = 0;

    if (program->n_buffer > sizeof divided / sizeof *divided)
        tap_bail("more buffers than the test has room for");
    for (uint32_t i = 0; i < program->n_buffer; i++)
        divided[i] = 1;
    for (uint32_t i = 0; i < program->n_task; i++)
        if (moves_gradients(program->tasks[i].kind))
            n_wrong += !follow(program, &program->tasks[i], divided);
    for (uint32_t i = 0; i < program->n_buffer; i++)
        if (program->buffers[i].role == ROLE_GRAD_SHARD)
            n_wrong += divided[i] != expected;
    return n_wrong;
}

static uint32_t ask(const struct question *q)
{
    struct made made;
    char words[256], factor[64] = "";

    if (q->factor > 0)
        snprintf(factor, sizeof factor, "--divide-factor %g", q->factor);
    snprintf(words, sizeof words, "--units block --reduce-dtype %s %s %s %s %s %s", q->dtype,
             q->ranks, q->microbatches, q->more, factor, q->force_sum ? "--force-sum yes" : "");
    asked_init(&made, words, NULL);
    const uint32_t n_wrong = count_wrong(&made, expected_of(q, &made.plan));
    if (n_wrong > 0)
        tap_note("%s: %u are wrong", words, n_wrong);
    make_release(&made);
    return n_wrong;
}

static const char *const dtypes[] = {"fp32", "bf16", "fp16"};
static const double factors[] = {0, 1, 2, 3, 4, 300};
static const char *const microbatches[] = {"", "--accum 2", "--accum 2 --sync last",
                                           "--accum 2 --all-reduce last"};
#define N(array) (sizeof(array) / sizeof *(array))

static void fsdp2_divides_as_asked(const char *ranks, const char *more)
{
    for (size_t d = 0; d < N(dtypes); d++) {
        uint32_t n_wrong = 0;
        for (size_t f = 0; f < N(factors); f++)
            for (size_t m = 0; m < N(microbatches); m++)
                for (int sum = 0; sum < 2; sum++)
                    n_wrong += ask(&(struct question){dtypes[d], ranks, microbatches[m], more,
                                                      factors[f], sum != 0});
        is_int(n_wrong, 0, "%s, %s %s: divided by the factor in all", dtypes[d], ranks, more);
    }
}

static void fsdp1_divides_by_the_ranks(const char *ranks, const char *more)
{
    uint32_t n_wrong = 0;
    for (size_t d = 0; d < N(dtypes); d++)
        n_wrong += ask(&(struct question){dtypes[d], ranks, "", more, 0, false});
    is_int(n_wrong, 0, "%s %s: divided by the ranks", ranks, more);
}

int main(void)
{
    static const char *const ranks[] = {"--gpus 1", "--gpus 4", "--gpus 4 --replicas 2",
                                        "--gpus 4 --replicas 4"};
    static const char *const more[] = {
        "", "--behavior unshard", "--behavior unshard --storage-dtype bf16",
        "--behavior torch-pr196626 --arrange precast --keep-fp32 *norm*"};
    for (size_t r = 0; r < N(ranks); r++)
        for (size_t m = 0; m < N(more); m++)
            fsdp2_divides_as_asked(ranks[r], more[m]);
    fsdp1_divides_by_the_ranks("--gpus 4", "--system fsdp1");
    fsdp1_divides_by_the_ranks("--gpus 4", "--system fsdp1 --storage-dtype bf16");
    fsdp1_divides_by_the_ranks("--gpus 4", "--system fsdp1 --fsdp1-strategy no-shard");
    fsdp1_divides_by_the_ranks("--gpus 4 --replicas 2", "--system fsdp1 --fsdp1-strategy hybrid");
    return tap_done();
}
