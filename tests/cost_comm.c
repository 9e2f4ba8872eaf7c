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
    test_kept(&h100);
    test_leaves_table(&h100);
    arena_release(&arena);
    return tap_done();
}
