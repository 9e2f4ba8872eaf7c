/*
 * Formulas of cost against values worked out by hand from spec COST, and the rounding to ns.
 *
 * The hand values are in the comments beside the checks.
 */
#include <math.h>
#include <string.h>

#include "sim/cost.h"
#include "sim/cost_formula.h"
#include "tests/tap.h"

static struct cluster open_cluster(const char *name, struct arena *arena)
{
    struct cluster cluster;
    struct err err = {0};
    if (cluster_open(name, arena, &cluster, &err))
        tap_bail(err.text);
    return cluster;
}

/* Expected rates, as fast as the isolated benchmarks: no derate, no slowdown. */
static struct cost_rates bench_rates(const struct cluster *cluster)
{
    struct cost_rates r = cost_rates_at(cluster, SPREAD_MID);
    r.gemm_derate = r.attention_derate = r.memory_slowdown = 1;
    return r;
}

static void test_gemm(const struct cluster *h100)
{
    const struct cost_rates r = bench_rates(h100);
    struct cost_rates derated = r;
    derated.gemm_derate = 0.5;

    /* 2 * 8192^2 * (8192 + 120) FLOP / (989e12 * 0.783) = 1440.65 us; 2.4 us to start */
    is_near(cost_gemm_s(&r, 8192, 8192, 8192), 1443.05e-6, 1e-4,
            "large products are bound by FLOP");
    is_near(cost_gemm_s(&derated, 8192, 8192, 8192), 2883.7e-6, 1e-4,
            "half the speed in the run doubles all but the start");
    /* (2 * 8192*64 + 8192^2) * 2 B = 136.3 MB at 0.8 * 3.35 TB/s = 50.86 us; FLOP: 31.9 us */
    is_near(cost_gemm_s(&r, 8192, 8192, 64), 53.26e-6, 1e-3, "a thin product is bound by memory");
}

static void test_attention(const struct cluster *h100, const struct cluster *a100)
{
    static const struct {
        bool is_h100;
        double seq, tflops; /* published, spec COST 2 */
    } points[] = {
        {true, 2048, 510},  {true, 4096, 604},  {true, 8192, 666},   {true, 16384, 701},
        {false, 2048, 149}, {false, 4096, 173}, {false, 16384, 198},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        const struct cost_rates r = bench_rates(points[i].is_h100 ? h100 : a100);
        const double seq = points[i].seq;
        const double flops = 2 * 32 * seq * seq * 128;
        is_near(flops / cost_attention_s(&r, 32, seq, 128) / 1e12, points[i].tflops, 0.01,
                "%s attends at the published rate at %g tokens",
                points[i].is_h100 ? "H100" : "A100", seq);
    }
    const struct cost_rates r = bench_rates(h100);
    is_near(cost_attention_s(&r, 64, 4096, 64) * 0.765, cost_attention_s(&r, 32, 4096, 128), 1e-9,
            "narrow heads do the same FLOP at 0.765 of the rate");
}

static void test_ops(const struct cluster *h100)
{
    const struct cost_rates r = bench_rates(h100);
    const struct op forward = {
        .kind = OP_MM, .pass = PASS_FORWARD, .m = 4096, .n = 4096, .k = 2048};
    struct op op = forward;
    const double forward_s = cost_op_s(&r, &forward);

    op.pass = PASS_DGRAD;
    is_near(cost_op_s(&r, &op), forward_s, 1e-12, "a gradient of inputs costs its own product");
    op.pass = PASS_WGRAD;
    is_near(cost_op_s(&r, &op), 1.04 * forward_s, 1e-12, "a gradient of weights costs 4 %% more");

    op = (struct op){.kind = OP_SDPA, .pass = PASS_RECOMPUTE, .m = 32, .n = 8192, .k = 128};
    const double attention_s = cost_op_s(&r, &op);
    op.pass = PASS_DGRAD;
    is_near(cost_op_s(&r, &op), 2.94 * attention_s, 1e-12,
            "attention's backward takes 2.94 times its forward");
    const struct plan_options of_2023 = {.attention = ATTENTION_TRITON_2023};
    const struct cost_rates triton = cost_rates_of(h100, SPREAD_MID, &of_2023);
    const double backward_s = cost_op_s(&triton, &op);
    op.pass = PASS_RECOMPUTE;
    is_near(backward_s, 3.8 * cost_op_s(&triton, &op), 1e-12, "and 3.8 times with Triton's of 2023");

    /* 2.68 GB at 0.8 * 3.35 TB/s */
    op = (struct op){.kind = OP_ADD, .pass = PASS_DGRAD, .bytes = UINT64_C(2680000000)};
    is_near(cost_op_s(&r, &op), 1e-3, 1e-12, "all else is bytes over bandwidth in every pass");
    const struct cost_rates mid = cost_rates_at(h100, SPREAD_MID);
    is_near(cost_op_s(&mid, &op), 1.2e-3, 1e-12, "and 1.2 times that in a run");

    /* 2048 * 32 * 182,954 FLOP, as attention runs on long sequences; then 26.8 GB */
    op = (struct op){.kind = OP_DELTA_RULE, .pass = PASS_FORWARD, .m = 2048, .n = 32, .k = 128};
    const double rate = r.gemm_flops * r.attention_efficiency * r.attention_derate;
    is_near(cost_op_s(&r, &op), 2048.0 * 32 * 182954 / rate, 1e-12,
            "the delta rule takes attention's share of the peak");
    op.bytes = UINT64_C(26800000000);
    is_near(cost_op_s(&r, &op), 10e-3, 1e-12, "or the bandwidth, where that is longer");
}

static double bus_gb_per_s(double bytes, double ranks, double seconds)
{
    return bytes * (ranks - 1) / ranks / seconds / 1e9;
}

/* Times of whole messages over 4 ranks, beside a formula that says something else. */
static void test_points(void)
{
    static const struct collective_point points[] = {{1e6, 30e-6}, {2e6, 50e-6}, {4e6, 60e-6}};
    struct collective_row row = {.kind = TASK_ALL_GATHER,
                                 .ranks = 4,
                                 .a_s = 12e-6,
                                 .bytes_per_s = 1e9,
                                 .points = points,
                                 .n_point = 3,
                                 .faster = 0.1,
                                 .slower = 0.5};
    const struct {
        const char *what;
        double bytes, us;
    } cases[] = {
        {"a message that was measured costs what it took", 2e6, 50},
        {"one between two lies on the line between them", 1.5e6, 40},
        {"of each two", 3e6, 55},
        {"a larger one than all goes on along the last line", 8e6, 80},
        {"a smaller one along the first", 0.5e6, 20},
        {"down to the row's start", 1e3, 12},
    };
    struct cost_rates r = {.spread = SPREAD_MID};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_near(cost_collective_s(&r, &row, cases[i].bytes, 1, 4), cases[i].us * 1e-6, 1e-12, "%s",
                cases[i].what);
    is_near(cost_collective_s(&r, &row, 2e6 * 0.75 * 3 / 2, 1, 3), 50e-6, 1e-12,
            "other ranks are held to what a rank sends");
    r.spread = SPREAD_LOW;
    is_near(cost_collective_s(&r, &row, 2e6, 1, 4), 45e-6, 1e-12,
            "low is faster by the row's share");
    r.spread = SPREAD_HIGH;
    is_near(cost_collective_s(&r, &row, 2e6, 1, 4), 75e-6, 1e-12, "high is slower by its own");
    r.spread = SPREAD_MID;
    r.collective_floor_s = 45e-6;
    is_near(cost_collective_s(&r, &row, 1e6, 1, 4), 45e-6, 1e-12, "the floor of a launch holds");
    is_near(cost_collective_s(&r, &row, 2e6, 1, 4), 50e-6, 1e-12, "and is in what takes longer");
    row.n_point = 2;
    is_near(cost_collective_s(&r, &row, 4e6, 1, 4), 90e-6, 1e-12, "two points are enough");
}

/* A row of 2 nodes of 8 holds for these, and for nothing else. */
static void test_row_of_nodes(const struct cluster *h100)
{
    static const struct collective_point points[] = {{1e9, 4e-3}, {2e9, 8e-3}};
    struct collective_row rows[8];
    struct cluster cluster = *h100;
    struct cost_rates r = cost_rates_at(h100, SPREAD_MID);

    memcpy(rows, h100->collectives, h100->n_collective * sizeof *rows);
    rows[h100->n_collective] = (struct collective_row){
        .kind = TASK_ALL_GATHER, .ranks = 16, .nodes = 2, .points = points, .n_point = 2};
    rows[h100->n_collective].bytes_per_s = 200e9;
    cluster.collectives = rows;
    cluster.n_collective = h100->n_collective + 1;
    const struct collective_row *own = cost_collective_row(&cluster, TASK_ALL_GATHER, 8, 2);
    ok(own == &rows[h100->n_collective], "2 nodes of 8 read their row");
    is_near(cost_collective_s(&r, own, 1e9, 2, 8), 4e-3, 1e-12,
            "which has adapters and ranks in it");
    rows[h100->n_collective].n_point = 0;
    is_near(cost_collective_s(&r, own, 1e9, 2, 8), 20e-6 + 0.9375 / 200, 1e-9,
            "by its formula where it has no points");
    is_int(cost_collective_row(&cluster, TASK_ALL_GATHER, 16, 1)->ranks, 8,
           "not 16 ranks of a node");
    is_int(cost_collective_row(&cluster, TASK_ALL_GATHER, 4, 4)->ranks, 4, "not 4 nodes of 4");
    is_int(cost_collective_row(&cluster, TASK_REDUCE_SCATTER, 8, 2)->ranks, 8, "not another kind");
    ok(!cost_collective_row(&cluster, TASK_ALL_REDUCE, 8, 2), "nor one that has no row at all");
}

static void test_collectives(const struct cluster *h100, const struct cluster *h200)
{
    const struct cost_rates r = cost_rates_at(h100, SPREAD_MID);
    const struct collective_row *gather = cost_collective_row(h100, TASK_ALL_GATHER, 8, 1);
    const double gib = 1073741824.0;
    struct cost_rates slow = r;

    /* s = 7516.2 MB: 20 us + 5.1 us * sqrt(7516.2) + s / 364 GB/s = 21.111 ms */
    is_near(bus_gb_per_s(8 * gib, 8, cost_collective_s(&r, gather, 8 * gib, 1, 8)), 356, 0.002,
            "8 GiB over 8 H100 run at the published 356 GB/s");
    is_near(cost_collective_s(&r, gather, 512, 1, 8), 20e-6, 0.01,
            "a tiny message costs the floor");
    slow.collective_floor_s = 0;
    is_near(cost_collective_s(&slow, gather, 512, 1, 8), 10.6e-6, 0.02, "or, without, its start");

    /*
     * 2 nodes: s = 1e9 * 15/16 = 937.5 MB; min(364, 400 * 0.85 = 340) / (1 + 2/300) = 337.748 GB/s;
     * 20 + 5.1 * sqrt(937.5) + 3 * 16 + 2775.7 = 2999.9 us
     */
    is_near(cost_collective_s(&r, gather, 1e9, 2, 8), 2999.9e-6, 1e-4,
            "between nodes the adapters bind, every rank adds latency, every node wears");
    slow = r;
    slow.nic_efficiency = 1; /* 400 GB/s: the row's 364 binds; 364 / (1 + 2/300) = 361.589 GB/s */
    is_near(cost_collective_s(&slow, gather, 1e9, 2, 8), 2816.9e-6, 1e-4,
            "unless the node inside is narrower");

    is_int(cost_collective_row(h100, TASK_REDUCE_SCATTER, 4, 1)->ranks, 4,
           "a row of its own is used");
    is_int(cost_collective_row(h100, TASK_ALL_GATHER, 3, 1)->ranks, 4, "3 ranks read the row of 4");
    is_int(cost_collective_row(h100, TASK_ALL_GATHER, 5, 1)->ranks, 4, "5 ranks read the row of 4");
    is_int(cost_collective_row(h100, TASK_ALL_GATHER, 1, 1)->ranks, 2, "1 rank reads the row of 2");
    is_int(cost_collective_row(h200, TASK_ALL_GATHER, 64, 1)->ranks, 8,
           "64 ranks read the row of 8");

    is_near(cost_straggler_factor(&r, 4), 1, 1e-12, "up to 8 ranks nobody straggles");
    is_near(cost_straggler_factor(&r, 64), 1.015, 1e-12, "each doubling after that adds 0.5 %%");
}

static void test_rounding(void)
{
    static const struct {
        double seconds;
        bool has_work;
        int64_t ns; /* -1: refused */
        const char *what;
    } cases[] = {
        {0, false, 0, "nothing costs nothing"},
        {0, true, 1, "work costs at least 1 ns"},
        {0.4e-9, true, 1, "even less than half of one"},
        {0.4e-9, false, 0, "less than half of one is none without work"},
        {1.6e-9, true, 2, "1.6 ns are 2"},
        {1.4e-9, true, 1, "1.4 ns are 1"},
        {1.25e-6, true, 1250, "microseconds are exact"},
        {4e9, true, INT64_C(4000000000000000000), "4e18 ns fit"},
        {4.7e9, true, -1, "4.7e18 ns are beyond 2^62"},
        {-1e-9, true, -1, "less than nothing is refused"},
        {(double)NAN, true, -1, "not a number is refused"},
        {(double)INFINITY, true, -1, "infinity is refused"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = -1;
        struct err err = {0};
        const enum status status = cost_ns(cases[i].seconds, cases[i].has_work, &ns, &err);
        is_int(status == STATUS_OK ? ns : -1, cases[i].ns, "%s", cases[i].what);
        if (cases[i].ns < 0)
            is_int(status, STATUS_INPUT, "as input that makes no sense");
    }
}

int main(void)
{
    struct arena arena;
    arena_init(&arena);
    const struct cluster h100 = open_cluster("h100-sxm", &arena);
    const struct cluster h200 = open_cluster("h200-sxm", &arena);
    const struct cluster a100 = open_cluster("a100-sxm-80g", &arena);

    test_gemm(&h100);
    test_attention(&h100, &a100);
    test_ops(&h100);
    test_collectives(&h100, &h200);
    test_points();
    test_row_of_nodes(&h100);
    test_rounding();
    arena_release(&arena);
    return tap_done();
}
