/*
 * Prices of collectives by the communicator that they are on.
 *
 * Blocks of llama3-8b, 218,112,000 elements, on H100; values worked out by hand are in the comments
 * beside the checks.
 */
#include "sim/cost.h"
#include "tests/make.h"
#include "tests/tap.h"

static struct cluster open_h100(struct arena *arena)
{
    struct cluster cluster;
    struct err err = {0};
    if (cluster_open("h100-sxm", arena, &cluster, &err))
        tap_bail(err.text);
    return cluster;
}

static struct prices price(const struct cluster *cluster, struct made *made)
{
    struct prices prices;
    struct err err = {0};
    if (cost_price(cluster, SPREAD_MID, &made->program, &made->arena, &prices, &err))
        tap_bail(err.text);
    return prices;
}

/* Price of the first block's first collective of a kind on a communicator. */
static double price_of(const struct made *made, const struct prices *prices, enum task_kind kind,
                       enum comm comm)
{
    for (uint32_t t = 0; t < made->program.n_task; t++) {
        const struct task *task = &made->program.tasks[t];
        if (task->kind == kind && task->comm == comm && task->unit == 1)
            return (double)prices->task_ns[t];
    }
    return -1;
}

/*
 * 2 nodes of 8, each a replica: a rank holds 109.056 MB of a block in FP32. By COST 4 an all-reduce
 * moves 2 (R-1)/R of these at nic*enet/G = 400 GB/s * 0.85 / 8 = 42.5 GB/s: 2566.0 us. Two nodes
 * wear that to 42.22 GB/s; a start and 2 ranks' latency come twice. With s = 54.528 MB:
 *     reduce-scatter  20 + 4.9 * sqrt(s) + 6 + s / 42.22 GB/s = 1353.7 us
 *     all-gather      20 + 7.1 * sqrt(s) + 6 + s / 42.22 GB/s = 1370.0 us
 */
static void test_replica_a_node(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct made made;

    options.gpus = 16;
    options.replicas = 2;
    make_init(&made, "llama3-8b", 2, &options);
    const struct prices mid = price(h100, &made);
    is_near(price_of(&made, &mid, TASK_ALL_REDUCE, COMM_REPLICATE), 2723700, 1e-4,
            "replicas are reduced over each rank's share of the adapters");
    /* 872.4 MB, s = 763.4 MB: 20 + 3.4 * sqrt(s) + s / 350 GB/s */
    is_near(price_of(&made, &mid, TASK_REDUCE_SCATTER, COMM_SHARD), 2295100, 1e-4,
            "shards inside the node, at its own speed");
    make_release(&made);
}

/*
 * The same GPUs as 8 replicas of 2 ranks: 4 of a node hold the same, so that two groups share its
 * adapters. 436.2 MB a rank, s = 7/8 of that = 381.7 MB at 4 * 50 GB/s * 0.85 / (1 + 2/300):
 *     20 + 3.9 * sqrt(s) + 24 + s / 168.9 GB/s  +  20 + 6.1 * sqrt(s) + 24 + s / 168.9 GB/s
 */
static void test_replicas_in_a_node(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct made made;

    options.gpus = 16;
    options.replicas = 8;
    make_init(&made, "llama3-8b", 2, &options);
    const struct prices mid = price(h100, &made);
    is_near(price_of(&made, &mid, TASK_ALL_REDUCE, COMM_REPLICATE), 4803800, 1e-4,
            "two groups of replicas have half of the adapters each");
    make_release(&made);
}

/* A cluster whose all-reduces have this row and no other, slower than any link. */
static struct cluster with_all_reduce(const struct cluster *h100, uint32_t ranks, uint32_t nodes,
                                      struct arena *arena)
{
    struct collective_row *rows = arena_array(arena, struct collective_row, h100->n_collective + 1);
    struct cluster cluster = *h100;
    uint32_t n = 0;

    for (uint32_t i = 0; i < h100->n_collective; i++)
        if (h100->collectives[i].kind != TASK_ALL_REDUCE)
            rows[n++] = h100->collectives[i];
    if (ranks > 0)
        rows[n++] = (struct collective_row){
            .kind = TASK_ALL_REDUCE, .ranks = ranks, .nodes = nodes, .bytes_per_s = 1e9};
    cluster.collectives = rows;
    cluster.n_collective = n;
    return cluster;
}

/* Who reads a row of an all-reduce: its own ranks on its own nodes, and nobody else. */
static void test_row_of_all_reduce(const struct cluster *h100)
{
    static const struct {
        const char *what;
        uint64_t gpus, replicas;
        uint32_t ranks, nodes;
        bool is_read;
    } cases[] = {
        {"2 replicas in a node, the row of 8 ranks of one", 8, 2, 8, 1, false},
        {"2 replicas in a node, their own row", 8, 2, 2, 1, true},
        {"4 replicas in a node, the row of 2 ranks of one", 8, 4, 2, 1, false},
        {"2 replicas, a node each, the row of 8 ranks of one", 16, 2, 8, 1, false},
        {"2 replicas, a node each, the row of 2 ranks of one", 16, 2, 2, 1, false},
        {"2 replicas, a node each, the row of 16 ranks on two", 16, 2, 16, 2, false},
        {"2 replicas, a node each, their own row", 16, 2, 2, 2, true},
        {"8 replicas on 2 nodes, the row of 8 ranks of one", 16, 8, 8, 1, false},
        {"8 replicas on 2 nodes, the row of 4 ranks of one", 16, 8, 4, 1, false},
        {"8 replicas on 2 nodes, the row of 8 ranks on 4", 16, 8, 8, 4, false},
        {"8 replicas on 2 nodes, their own row", 16, 8, 8, 2, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = plan_options_default();
        struct made made;

        options.gpus = cases[i].gpus;
        options.replicas = cases[i].replicas;
        make_init(&made, "llama3-8b", 2, &options);
        const struct cluster none = with_all_reduce(h100, 0, 0, &made.arena);
        const struct cluster one =
            with_all_reduce(h100, cases[i].ranks, cases[i].nodes, &made.arena);
        const struct prices want = price(&none, &made), got = price(&one, &made);
        const double two_halves = price_of(&made, &want, TASK_ALL_REDUCE, COMM_REPLICATE);
        const double told = price_of(&made, &got, TASK_ALL_REDUCE, COMM_REPLICATE);
        ok(cases[i].is_read ? told > 2 * two_halves : told == two_halves, "%s: %.1f us, %s",
           cases[i].what, told / 1000,
           cases[i].is_read ? "by that row" : "a reduce-scatter and an all-gather");
        make_release(&made);
    }
}

/* Of 436.2 MB: 7/8 at 364 GB/s over all 8 ranks, 3/4 at 350 GB/s over the 4 that keep them. */
static void test_kept(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct made made;

    options.reshard = RESHARD_RANKS;
    options.reshard_ranks = 4;
    make_init(&made, "llama3-8b", 2, &options);
    const struct prices mid = price(h100, &made);
    /* 20 + 5.1 * sqrt(381.7) + 381.7 MB / 364 GB/s */
    is_near(price_of(&made, &mid, TASK_ALL_GATHER, COMM_SHARD), 1168300, 1e-4,
            "forward gathers over all ranks");
    /* 20 + 6.1 * sqrt(327.2) + 327.2 MB / 350 GB/s */
    is_near(price_of(&made, &mid, TASK_ALL_GATHER, COMM_KEPT), 1065100, 1e-4,
            "backward as many elements over fewer");
    make_release(&made);
}

/* 1024 ranks straggle, but no collective has more than 128: in a node 8 or, of replicas, one, for
   which no row is needed. */
static void test_leaves_table(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    struct made made;

    options.gpus = 1024;
    options.replicas = 128;
    make_init(&made, "llama2-7b", 1, &options);
    const struct tables_left left = price(h100, &made).left;
    is_int(left.n, 1, "each communicator is held against the tables by its own ranks");
    is_str(left.at[0].text,
           "gpus 1024 (compute.straggler_per_doubling: known for 1 to 512, wider by 10 %)",
           "so that only stragglers are outside");
    make_release(&made);
}

int main(void)
{
    struct arena arena;
    arena_init(&arena);
    const struct cluster h100 = open_h100(&arena);

    test_replica_a_node(&h100);
    test_replicas_in_a_node(&h100);
    test_row_of_all_reduce(&h100);
    test_kept(&h100);
    test_leaves_table(&h100);
    arena_release(&arena);
    return tap_done();
}
