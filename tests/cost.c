/*
 * Prices of whole programs.
 *
 * Some tasks against values worked out by hand, in the comments beside the checks; and what holds
 * for any program: low <= mid <= high, equal work at equal prices, a toy cluster's sums as
 * recounted.
 */
#include "sim/cost.h"

#include <string.h>

#include "tests/make.h"
#include "tests/tap.h"

static struct cluster open_cluster(const char *name, struct arena *arena)
{
    struct cluster cluster;
    struct err err = {0};
    if (cluster_open(name, arena, &cluster, &err))
        tap_bail(err.text);
    return cluster;
}

static struct prices price(const struct cluster *cluster, enum spread spread, struct made *made)
{
    struct prices prices;
    struct err err = {0};
    if (cost_price(cluster, spread, &made->program, &made->arena, &prices, &err))
        tap_bail(err.text);
    return prices;
}

/* Price of the first task of a kind whose unit is the named one. */
static int64_t price_of(const struct made *made, const struct prices *prices, enum task_kind kind,
                        const char *unit)
{
    for (uint32_t t = 0; t < made->program.n_task; t++) {
        const struct task *task = &made->program.tasks[t];
        if (task->kind == kind &&
            (unit == NULL || !strcmp(made->plan.units[task->unit].name, unit)))
            return prices->task_ns[t];
    }
    return -1;
}

static void check_order(const char *name, const struct cluster *cluster, struct made *made)
{
    const struct prices low = price(cluster, SPREAD_LOW, made);
    const struct prices mid = price(cluster, SPREAD_MID, made);
    const struct prices high = price(cluster, SPREAD_HIGH, made);
    uint32_t unordered = 0, unpaid = 0, long_last = 0;

    for (uint32_t t = 0; t < made->program.n_task; t++) {
        unordered += low.task_ns[t] > mid.task_ns[t] || mid.task_ns[t] > high.task_ns[t] ||
                     low.last_ns[t] > mid.last_ns[t] || mid.last_ns[t] > high.last_ns[t];
        unpaid += low.task_ns[t] < 1 || low.last_ns[t] < 1;
        long_last += high.last_ns[t] > high.task_ns[t];
    }
    is_int(unordered, 0, "%s on %s: low <= mid <= high for every task", name, cluster->name);
    is_int(unpaid, 0, "%s on %s: no task is free", name, cluster->name);
    is_int(long_last, 0, "%s on %s: a last kernel is part of its task", name, cluster->name);
    ok(low.host_launch_ns <= mid.host_launch_ns && mid.host_launch_ns <= high.host_launch_ns &&
           low.host_all_gather_ns <= high.host_all_gather_ns &&
           low.contention_permille <= high.contention_permille,
       "%s on %s: host and contention are in order", name, cluster->name);
}

static void test_programs(struct arena *arena)
{
    static const struct {
        const char *what, *model, *units;
        uint64_t layers, gpus, nodes, accum;
        enum checkpointing ac;
    } cases[] = {
        {"llama2-7b", "llama2-7b", "torchtitan", 3, 8, 1, 1, AC_NONE},
        {"a checkpointed llama3-8b on 4 nodes", "llama3-8b", "block", 2, 32, 4, 2, AC_FULL},
        {"llama3-8b on a single GPU", "llama3-8b", "attn+mlp", 2, 1, 1, 2, AC_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = plan_options_default();
        struct made made;
        options.gpus = cases[i].gpus;
        options.nodes = cases[i].nodes;
        options.accum = cases[i].accum;
        options.units = cases[i].units;
        options.ac = cases[i].ac;
        make_init(&made, cases[i].model, cases[i].layers, &options);
        for (uint32_t c = 0; c < n_builtin_clusters; c++) {
            const struct cluster cluster = open_cluster(builtin_clusters[c].name, arena);
            if (made.plan.gpus_per_node > cluster.max_gpus_per_node)
                continue;
            check_order(cases[i].what, &cluster, &made);
        }
        make_release(&made);
    }
}

/* llama3-70b, batch 1 of 8192 tokens on 8 H100: unit tasks of a block of 855,654,400 elements. */
static void test_block_prices(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct made made;

    options.units = "block";
    make_init(&made, "llama3-70b", 2, &options);
    const struct prices mid = price(h100, SPREAD_MID, &made);
    const char *block = made.plan.units[1].name;

    /* 1711.3 MB, s = 1497.4 MB: 20 + 5.1 * sqrt(1497.4) + s / 364 GB/s */
    is_near((double)price_of(&made, &mid, TASK_ALL_GATHER, block), 4331100, 1e-4,
            "a block's all-gather is priced by its full message in BF16");
    /* 3422.6 MB, s = 2994.8 MB: 20 + 3.4 * sqrt(2994.8) + s / 350 GB/s */
    is_near((double)price_of(&made, &mid, TASK_REDUCE_SCATTER, block), 8762600, 1e-4,
            "its reduce-scatter in FP32");
    /* 106,956,800 shard elements * 10 B / (3.35 TB/s * 0.55), 2 launches */
    is_near((double)price_of(&made, &mid, TASK_COPY_IN, block), 586500, 1e-4, "its copy-in");
    is_near((double)price_of(&made, &mid, TASK_COPY_OUT, block), 1462500, 1e-4, "its copy-out");
    is_near((double)price_of(&made, &mid, TASK_PACK, block), 3195700, 1e-4, "its packing");
    is_int(mid.host_launch_ns, 10000, "a launch takes the host 10 us");
    is_int(mid.host_all_gather_ns, 400000, "an all-gather takes the host 0.4 ms");
    is_int(mid.contention_permille, 300, "compute beside a collective is slower by 0.3");
    is_near(mid.peak_flops, 989e12, 1e-12, "the peak is the data sheet's");
    ok(mid.left.n == 0, "nothing of it lies outside the tables (%s)",
       mid.left.n ? mid.left.at[0].text : "none");
    make_release(&made);
}

/* The same work of a later microbatch, and of a world of one, is other work. */
static void test_microbatches(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct made made;

    options.units = "block";
    options.accum = 2;
    make_init(&made, "llama3-70b", 2, &options);
    struct prices mid = price(h100, SPREAD_MID, &made);
    /* 106,956,800 * 12 B / (3.35 TB/s * 0.8) = 478.9 us, 9 launches of 3 us */
    is_near((double)price_of(&made, &mid, TASK_POST_REDUCE, made.plan.units[1].name), 505900, 1e-4,
            "the second gradient of a block is added to the first");
    /* 16 B * 8192 / (3.35 TB/s * 0.55) = 71 ns, 2 launches of 3 us */
    is_near((double)price_of(&made, &mid, TASK_COPY_INPUT, NULL), 6071, 1e-3,
            "the input is ids and labels of each token");
    make_release(&made);

    options.gpus = 1;
    options.units = "torchtitan";
    make_init(&made, "llama3-8b", 1, &options);
    mid = price(h100, SPREAD_MID, &made);
    int64_t copied = INT64_MAX, added = 0; /* of the embedding: 525,336,576 elements, 1 parameter */
    for (uint32_t t = 0; t < made.program.n_task; t++) {
        const struct task *task = &made.program.tasks[t];
        if (task->kind != TASK_POST_REDUCE || task->unit != 0)
            continue;
        copied = mid.task_ns[t] < copied ? mid.task_ns[t] : copied;
        added = mid.task_ns[t] > added ? mid.task_ns[t] : added;
    }
    /* 8 B and 12 B of each / (3.35 TB/s * 0.8), one launch of 3 us each */
    is_near((double)copied, 1571200, 1e-4, "a single rank copies in place of its reduce-scatter");
    is_near((double)added, 2355300, 1e-4, "and adds a later microbatch's");
    /* 218,112,000 * 6 B / (3.35 TB/s * 0.55) = 710.3 us, 9 launches of 3 us */
    is_near((double)price_of(&made, &mid, TASK_COPY_OUT, made.plan.units[1].name), 737300, 1e-4,
            "and casts each parameter in place of its all-gather");
    is_int(price_of(&made, &mid, TASK_ALL_GATHER, NULL), -1, "it gathers nothing");
    make_release(&made);
}

/* Prices are those of what a task says, also where units of one shape would not differ. */
static void test_each_task(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct task *last = NULL;
    struct made made;

    options.units = "block";
    make_init(&made, "llama3-8b", 3, &options);
    for (uint32_t t = 0; t < made.program.n_task; t++)
        if (made.program.tasks[t].kind == TASK_ALL_GATHER)
            last = &made.program.tasks[t];
    if (!last)
        tap_bail("a program without all-gathers");
    const uint32_t id = (uint32_t)(last - made.program.tasks);
    const int64_t whole_ns = price(h100, SPREAD_MID, &made).task_ns[id];
    last->elements *= 2;
    is_near((double)price(h100, SPREAD_MID, &made).task_ns[id], 2.0 * (double)whole_ns, 0.1,
            "an all-gather of twice the elements takes about twice as long");
    last->elements /= 2;
    last->dtype = DTYPE_FP32;
    is_near((double)price(h100, SPREAD_MID, &made).task_ns[id], 2.0 * (double)whole_ns, 0.1,
            "and so does one of twice the width");
    make_release(&made);
}

static void test_bodies_straggle(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct made node, eight;

    make_init(&node, "llama2-7b", 1, &options);
    options.gpus = 64;
    make_init(&eight, "llama2-7b", 1, &options);
    const struct prices one = price(h100, SPREAD_MID, &node);
    const struct prices many = price(h100, SPREAD_MID, &eight);
    is_near((double)price_of(&eight, &many, TASK_FORWARD, node.plan.units[1].name),
            1.015 * (double)price_of(&node, &one, TASK_FORWARD, node.plan.units[1].name), 1e-6,
            "bodies on 64 ranks wait for the slowest");
    make_release(&node);
    make_release(&eight);
}

/* What a toy body costs, counted from its tape. */
static int64_t recount(const struct cluster *toy, const struct body_table *bodies, uint32_t id)
{
    const struct body *body = &bodies->bodies[id];
    int64_t sum = 0;
    for (uint32_t i = 0; i < body->n_tape; i++)
        if (bodies->tape[body->tape + i].act == TAPE_OP)
            sum += toy->op_price_ns[bodies->ops[bodies->tape[body->tape + i].id].kind];
    return sum;
}

static void test_toy(const struct cluster *toy)
{
    uint64_t state = tap_seed(20);
    uint32_t wrong = 0, n_task = 0;

    for (int round = 0; round < 40; round++) {
        const struct dims dims = make_random_dims(&state);
        const struct plan_options options = make_random_options(&state, &dims);
        struct made made;
        make_init_dims(&made, &dims, &options);
        const struct prices prices = price(toy, (enum spread)tap_below(&state, SPREAD_N), &made);
        for (uint32_t t = 0; t < made.program.n_task; t++, n_task++) {
            const struct task *task = &made.program.tasks[t];
            const bool has_body = task->kind == TASK_FORWARD || task->kind == TASK_BACKWARD;
            wrong += prices.task_ns[t] != (has_body ? recount(toy, &made.bodies, task->body)
                                                    : toy->task_price_ns[task->kind]);
        }
        if (prices.left.n > 0 || prices.peak_flops != 0)
            wrong++;
        make_release(&made);
    }
    is_int(wrong, 0, "toy prices of %u tasks are those of its file, whatever the plan", n_task);
    ok(n_task > 1000, "and there were many");
}

static void check_leaves(const struct cluster *cluster, const char *model, uint64_t seq,
                         uint64_t gpus, const char *told)
{
    struct plan_options options = plan_options_default();
    struct made made;

    options.gpus = gpus;
    options.seq = seq;
    make_init(&made, model, 1, &options);
    const struct prices prices = price(cluster, SPREAD_MID, &made);
    struct text words;
    text_init(&words);
    text_add(&words, "%s", "");
    tables_left_text(&prices.left, &words);
    ok(told ? strstr(words.at, told) != NULL : words.length == 0,
       "%s, %d tokens on %d %s: %s (got '%s')", model, (int)seq, (int)gpus, cluster->name,
       told ? told : "inside the tables", words.at);
    text_release(&words);
    make_release(&made);
}

static void test_leaves_table(const struct cluster *h100, const struct cluster *h200)
{
    check_leaves(h100, "llama3-8b", 8192, 8, NULL);
    check_leaves(h100, "llama3-405b", 8192, 512, "hidden 16384");
    check_leaves(h100, "llama2-7b", 1024, 8, "tokens 1024");
    check_leaves(h100, "llama2-7b", 256, 8, "seq 256");
    check_leaves(h100, "llama2-7b", 256, 8, "gemm_dim 256");
    check_leaves(h100, "llama2-7b", 4096, 512, NULL);
    check_leaves(h100, "llama2-7b", 4096, 1024,
                 "ranks 1024 (collectives: known for 1 to 512, wider by 10 %); gpus 1024 "
                 "(compute.straggler_per_doubling: known for 1 to 512, wider by 10 %)");
    check_leaves(h200, "llama2-7b", 4096, 1024, "gpus 1024 (compute.straggler_per_d");
    check_leaves(h100, "llama2-7b", 4096, 6, "all_gather of 6 ranks in a node (that of 8");
    check_leaves(h200, "llama2-7b", 4096, 3, "reduce_scatter of 3 ranks in a node (that of 4");
    check_leaves(h200, "llama2-7b", 4096, 1, NULL);
}

static struct rate *rate_of(struct cluster *cluster, uint32_t field)
{
    return (struct rate *)(void *)((char *)cluster + cluster_rate_fields[field].offset);
}

/* A range that all rates have is told once, with the first of them and how many there are. */
static void test_shared_range(const struct cluster *h100)
{
    static const struct valid_range range = {.max = 4, .quantity = QUANTITY_GPUS};
    struct cluster c = *h100;

    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        struct rate *rate = rate_of(&c, f);
        rate->valid = &range;
        rate->n_valid = 1;
    }
    check_leaves(&c, "llama2-7b", 4096, 8,
                 "gpus 8 (gemm.bf16_tflops, gemm.start_us, gemm.efficiency and 33 more: known for "
                 "0 to 4, wider by 10 %)");
}

static bool same_prices(const struct prices *a, const struct prices *b, uint32_t n_task)
{
    return !memcmp(a->task_ns, b->task_ns, n_task * sizeof *a->task_ns) &&
           a->host_launch_ns == b->host_launch_ns &&
           a->host_all_gather_ns == b->host_all_gather_ns && a->host_retry_ns == b->host_retry_ns &&
           a->contention_permille == b->contention_permille;
}

/* What is told to be wider is. */
static void test_ranges_widen(const struct cluster *h100)
{
    static const struct valid_range range = {.max = 4, .quantity = QUANTITY_GPUS};
    struct plan_options options = plan_options_default();
    struct made made;

    options.gpus = 16; /* stragglers are of more than a node */
    make_init(&made, "llama2-7b", 1, &options);
    const struct prices base = price(h100, SPREAD_HIGH, &made);
    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        struct cluster c = *h100;
        rate_of(&c, f)->valid = &range;
        rate_of(&c, f)->n_valid = 1;
        const struct prices prices = price(&c, SPREAD_HIGH, &made);
        ok(prices.left.n == 1 && !same_prices(&prices, &base, made.program.n_task),
           "outside of the range of %s.%s its price is wider", cluster_rate_fields[f].section,
           cluster_rate_fields[f].key);
    }
    make_release(&made);
}

/* The slowest or the fastest cluster that a file can describe; rows has room for both kinds. */
static struct cluster at_bounds(const struct cluster *base, bool slow, struct collective_row *rows)
{
    struct cluster c = *base;

    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        const struct rate_field *field = &cluster_rate_fields[f];
        const bool least = field->more_is_faster == slow;
        rate_of(&c, f)->at[SPREAD_MID] = (least ? field->least : field->most) * field->unit;
    }
#define X(member, key, unit, least, most) \
    rows[0].member = (slow == (least > 0) ? least : most) * unit;
    CLUSTER_ROW_NUMBERS(X)
#undef X
    rows[1] = rows[0];
    rows[0].kind = TASK_ALL_GATHER;
    rows[1].kind = TASK_REDUCE_SCATTER;
    c.collectives = rows;
    c.n_collective = 2;
    return c;
}

static void test_bounds(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct made made;

    options.gpus = 4096;
    options.batch = 64;
    make_init(&made, "llama3-405b", 1, &options);
    for (int slow = 0; slow < 2; slow++) {
        struct collective_row rows[2] = {0};
        const struct cluster c = at_bounds(h100, slow, rows);
        struct prices prices;
        struct err err = {0};
        is_int(cost_price(&c, SPREAD_MID, &made.program, &made.arena, &prices, &err), STATUS_OK,
               "the %s cluster that a file can describe has prices for a large step (%s)",
               slow ? "slowest" : "fastest", err.text);
    }
    make_release(&made);
}

static void check_refused(const struct cluster *cluster, struct made *made, enum status want,
                          const char *fragment)
{
    struct prices prices;
    struct err err = {0};
    is_int(cost_price(cluster, SPREAD_MID, &made->program, &made->arena, &prices, &err), want,
           "refused: %s", fragment);
    ok(strstr(err.text, fragment) != NULL, "and says so (got '%s')", err.text);
}

static void test_refused(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct cluster slow = *h100;
    struct made made;

    options.gpus = 16;
    options.nodes = 1;
    make_init(&made, "llama2-7b", 1, &options);
    check_refused(h100, &made, STATUS_USAGE, "16 GPUs in a node, cluster 'h100-sxm' has 8");
    make_release(&made);

    options = plan_options_default();
    make_init(&made, "llama2-7b", 1, &options);
    slow.gemm_start_s.at[SPREAD_MID] = 1e12;
    check_refused(&slow, &made, STATUS_INPUT, "cluster 'h100-sxm', forward: a price of");
    slow = *h100;
    slow.host_all_gather_s.at[SPREAD_MID] = 1e12;
    check_refused(&slow, &made, STATUS_INPUT, "cluster 'h100-sxm', host: a price of");
    slow = *h100;
    slow.contention.at[SPREAD_MID] = 1e9;
    check_refused(&slow, &made, STATUS_INPUT, "cluster 'h100-sxm', host: a contention of");
    make_release(&made);
}

int main(void)
{
    struct arena arena;
    arena_init(&arena);
    const struct cluster h100 = open_cluster("h100-sxm", &arena);
    const struct cluster h200 = open_cluster("h200-sxm", &arena);
    const struct cluster toy = open_cluster("toy", &arena);

    test_programs(&arena);
    test_block_prices(&h100);
    test_microbatches(&h100);
    test_each_task(&h100);
    test_bodies_straggle(&h100);
    test_toy(&toy);
    test_leaves_table(&h100, &h200);
    test_shared_range(&h100);
    test_ranges_widen(&h100);
    test_bounds(&h100);
    test_refused(&h100);
    arena_release(&arena);
    return tap_done();
}
