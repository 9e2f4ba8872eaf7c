/*
 * Forward-only and backward-only steps on the toy cluster, timed by hand.
 *
 * Two blocks of a small llama, each a unit. Prices of sim/clusters/toy.json, in ns: copy_in 20,
 * all_gather 300, copy_out 30, pack 40, reduce_scatter 400; every launch takes the host 1. A body
 * is the sum of its operators (as many heads as key heads, fused norm, so no repeat):
 *
 *   rms 4, mm 3 * 100, for q and for k: to 5, cmul 13, to 5, then sdpa 200, mm 100, add 8   = 658
 *   rms 4, mm 100, silu 15, mm 100, mul 11, mm 100, add 8                                   = 338
 *   together 996 in 20 launches, the last of which, add, takes 8
 *
 * The first launch is issued at 1, so that nothing starts earlier.
 */
#include <stdio.h>

#include "sim/engine.h"
#include "src/exec.h"
#include "src/program_builder.h"
#include "src/program_print.h"
#include "tests/make.h"
#include "tests/tap.h"

struct toy {
    struct made made;
    struct cluster cluster;
    struct program program;
    struct program_builder build;
};

static void toy_init(struct toy *toy)
{
    const struct dims dims = {.layers = 2,
                              .hidden = 32,
                              .intermediate = 48,
                              .heads = 2,
                              .kv_heads = 2,
                              .head_dim = 16,
                              .vocab = 64,
                              .default_seq = 8};
    struct plan_options options = plan_options_default();
    struct err err = {0};

    options.units = "block";
    options.gpus = 2;
    make_init_dims(&toy->made, &dims, &options);
    if (cluster_open("toy", &toy->made.arena, &toy->cluster, &err) != STATUS_OK)
        tap_bail(err.text);
    program_builder_init(&toy->build, &toy->made.plan, &toy->made.layout, &toy->made.bodies,
                         &toy->made.arena, &toy->program);
    build_section_begin(&toy->build, SECTION_FIRST);
}

/* A task of block b's unit; the root is unit 0. */
static struct task *launch(struct toy *toy, enum task_kind kind, enum stream stream, uint32_t b)
{
    struct task *task = build_launch(&toy->build, kind, stream, (uint16_t)(b + 1));
    if (task_kind_is_collective(kind)) {
        task->comm = COMM_SHARD;
        task->elements = toy->made.layout.units[b + 1]->padded_elements;
    }
    return task;
}

static void launch_body(struct toy *toy, enum task_kind kind, uint32_t b)
{
    const struct body_table *bodies = &toy->made.bodies;
    const struct body_pair *pair = &bodies->pairs[bodies->of_block[1]];
    struct task *task = launch(toy, kind, STREAM_C, b);
    task->body = kind == TASK_FORWARD ? pair->forward : pair->backward;
    task->kernels = bodies->bodies[task->body].kernels;
}

static void after(struct toy *toy, enum stream stream, enum stream of)
{
    build_wait(&toy->build, stream, build_record(&toy->build, of));
}

static void gather(struct toy *toy, uint32_t b)
{
    launch(toy, TASK_COPY_IN, STREAM_AGI, b);
    after(toy, STREAM_AG, STREAM_AGI);
    launch(toy, TASK_ALL_GATHER, STREAM_AG, b);
}

static void use(struct toy *toy, uint32_t b, uint32_t gathered)
{
    build_wait(&toy->build, STREAM_C, gathered);
    launch(toy, TASK_COPY_OUT, STREAM_C, b);
}

/* Run it; each task's span is compared with "start-end". */
static void toy_end(struct toy *toy, const char *name, const char *const *want, uint32_t n)
{
    struct prices prices;
    struct err err = {0};

    build_section_end(&toy->build);
    toy->program.sections[SECTION_STEADY] = toy->program.sections[SECTION_FIRST];
    if (cost_price(&toy->cluster, SPREAD_MID, &toy->program, &toy->made.arena, &prices, &err) !=
        STATUS_OK)
        tap_bail(err.text);
    struct engine *engine = engine_new(&prices, &toy->made.arena);
    is_int(exec_program(&toy->program, EXEC_UNIT, NULL, 1, &engine_backend, engine, &err),
           STATUS_OK, "%s: runs", name);
    uint32_t n_span;
    const struct span *spans = engine_spans(engine, &n_span);
    is_int(n_span, n, "%s: every task has a span", name);
    for (uint32_t i = 0; i < n && i < n_span; i++) {
        char span[48], task[PROGRAM_NAME_MAX];
        snprintf(span, sizeof span, "%lld-%lld", (long long)spans[i].start_ns,
                 (long long)spans[i].end_ns);
        is_str(span, want[i], "%s: %s", name,
               program_task_name(&toy->program, spans[i].task, task));
    }
    make_release(&toy->made);
}
#define TOY_END(toy, name, ...)                                      \
    do {                                                             \
        const char *const want_[] = {__VA_ARGS__};                   \
        toy_end((toy), (name), want_, sizeof want_ / sizeof *want_); \
    } while (0)

/* The second gather waits for the first block's forward: everything in a row. */
static void forward_without_overlap(void)
{
    struct toy toy;
    toy_init(&toy);
    for (uint32_t b = 0; b < 2; b++) {
        gather(&toy, b);
        use(&toy, b, build_record(&toy.build, STREAM_AG));
        launch_body(&toy, TASK_FORWARD, b);
        after(&toy, STREAM_AGI, STREAM_C);
    }
    /*
     * block 0: copy_in 1 + 20, all_gather + 300, copy_out + 30, forward + 996 = 1347;
     * block 1 the same from there on: 1367, 1667, 1697, 2693
     */
    TOY_END(&toy, "forward, no overlap", "1-21", "21-321", "321-351", "351-1347", "1347-1367",
            "1367-1667", "1667-1697", "1697-2693");
}

/* Implicit prefetch: the host runs ahead, the second gather hides behind the first forward. */
static void forward_with_full_overlap(void)
{
    struct toy toy;
    toy_init(&toy);
    for (uint32_t b = 0; b < 2; b++) {
        gather(&toy, b);
        use(&toy, b, build_record(&toy.build, STREAM_AG));
        launch_body(&toy, TASK_FORWARD, b);
    }
    /*
     * The host issues copy_in of block 0 at 1, its all_gather at 2, copy_out at 3, the 20 launches
     * of its forward at 4 to 23, so copy_in of block 1 at 24, when AGI is free as well. Its
     * all_gather starts when the communicator is free, at 321. C goes on at 1347 without a gap.
     */
    TOY_END(&toy, "forward, full overlap", "1-21", "21-321", "321-351", "351-1347", "24-44",
            "321-621", "1347-1377", "1377-2373");
}

/* Backward of block 1, then its reduce-scatter is ahead of block 0's gather in the one queue. */
static void backward_with_a_busy_communicator(void)
{
    struct toy toy;
    toy_init(&toy);
    launch(&toy, TASK_PACK, STREAM_C, 1);
    after(&toy, STREAM_RS, STREAM_C);
    launch(&toy, TASK_REDUCE_SCATTER, STREAM_RS, 1);
    gather(&toy, 0);
    use(&toy, 0, build_record(&toy.build, STREAM_AG));
    launch(&toy, TASK_PACK, STREAM_C, 0);
    after(&toy, STREAM_RS, STREAM_C);
    launch(&toy, TASK_REDUCE_SCATTER, STREAM_RS, 0);
    /*
     * pack 1-41, so reduce_scatter 41-441. copy_in is issued third, at 3, and done at 23, but the
     * all_gather stands behind the reduce_scatter: 441-741. copy_out 741-771, pack 771-811,
     * reduce_scatter 811-1211.
     */
    TOY_END(&toy, "backward, communicator busy", "1-41", "41-441", "3-23", "441-741", "741-771",
            "771-811", "811-1211");
}

/* A launch takes 200 ns, so that the host is what everything waits for. */
static void forward_with_a_late_host(void)
{
    struct toy toy;
    toy_init(&toy);
    toy.cluster.host_launch_price_ns = 200;
    for (uint32_t b = 0; b < 2; b++) {
        gather(&toy, b);
        use(&toy, b, build_record(&toy.build, STREAM_AG));
        launch_body(&toy, TASK_FORWARD, b);
    }
    /*
     * block 0: copy_in issued at 200: 200-220; all_gather at 400: 400-700; copy_out issued at 600,
     * waits for it: 700-730. forward: first launch at 800, the last of 20 at 800 + 19 * 200 = 4600,
     * and that kernel takes 8, so it ends at 4608 and not at 800 + 996.
     * block 1: issued at 4800, 5000, 5200: copy_in 4800-4820, all_gather 5000-5300, copy_out
     * 5300-5330, forward from 5400, its last launch at 9200: 9208. Nothing overlaps any more.
     */
    TOY_END(&toy, "forward, host late", "200-220", "400-700", "700-730", "800-4608", "4800-4820",
            "5000-5300", "5300-5330", "5400-9208");
}

int main(void)
{
    forward_without_overlap();
    forward_with_full_overlap();
    backward_with_a_busy_communicator();
    forward_with_a_late_host();
    return tap_done();
}
