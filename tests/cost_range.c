/*
 * What a price is worth outside of the tables: how the factor grows, and that it moves low and high
 * of what is read outside, and nothing else.
 *
 * The judge is the same cluster without its ranges.
 */
#include "sim/cost_range.h"

#include <math.h>

#include "sim/cost.h"
#include "tests/make.h"
#include "tests/tap.h"

static void test_factor(void)
{
    static const struct {
        uint64_t value, min, max;
        double want;
    } cases[] = {
        {512, 512, 1024, 1},      {1024, 512, 1024, 1},      {700, 512, 1024, 1},
        {256, 512, 1024, 1.4},    {128, 512, 1024, 1.96},    {2048, 512, 1024, 1.1},
        {8192, 512, 1024, 1.331}, {300, 768, 8192, 1.57823}, {300000, 512, 65536, 1.2327},
        {0, 512, 1024, 20.6610},  {4, 0, 0, 1.21},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(fabs(cost_range_factor(cases[i].value, cases[i].min, cases[i].max) / cases[i].want - 1) <
               1e-4,
           "%d outside %d to %d: %g", (int)cases[i].value, (int)cases[i].min, (int)cases[i].max,
           cases[i].want);
}

static void test_widened(void)
{
    ok(cost_widened(6, 1.5, SPREAD_LOW) == 4, "low is divided");
    ok(cost_widened(6, 1.5, SPREAD_MID) == 6, "mid stays");
    ok(cost_widened(6, 1.5, SPREAD_HIGH) == 9, "high is multiplied");
}

static struct cluster without_ranges(const struct cluster *cluster)
{
    struct cluster out = *cluster;

    for (uint32_t f = 0; f < n_cluster_rate_fields; f++)
        ((struct rate *)(void *)((char *)&out + cluster_rate_fields[f].offset))->n_valid = 0;
    return out;
}

static struct prices price(const struct cluster *cluster, enum spread spread, struct made *made)
{
    struct prices prices;
    struct err err = {0};
    if (cost_price(cluster, spread, &made->program, &made->arena, &prices, &err))
        tap_bail(err.text);
    return prices;
}

struct counts {
    uint32_t moved_mid, wrong_way, moved, n;
};

static void count(struct counts *counts, const struct cluster *h100, const struct cluster *plain,
                  struct made *made)
{
    for (int s = 0; s < SPREAD_N; s++) {
        const struct prices with = price(h100, (enum spread)s, made);
        const struct prices none = price(plain, (enum spread)s, made);
        for (uint32_t t = 0; t < made->program.n_task; t++) {
            const int64_t a = with.task_ns[t], b = none.task_ns[t];
            counts->moved_mid += s == SPREAD_MID && a != b;
            counts->wrong_way += (s == SPREAD_LOW && a > b) || (s == SPREAD_HIGH && a < b);
            counts->moved += a != b;
            counts->n++;
        }
    }
}

/* Plans of small models, whose products and sequences lie outside. */
static void test_plans(const struct cluster *h100, const struct cluster *plain)
{
    uint64_t state = tap_seed(20);
    struct counts counts = {0};

    for (int round = 0; round < 40; round++) {
        const struct dims dims = make_random_dims(&state);
        const struct plan_options options = make_random_options(&state, &dims);
        struct made made;
        if (options.policy.param != DTYPE_BF16)
            continue;
        make_init_dims(&made, &dims, &options);
        if (made.plan.gpus_per_node <= h100->max_gpus_per_node)
            count(&counts, h100, plain, &made);
        make_release(&made);
    }
    is_int(counts.moved_mid, 0, "no range moves a mid price, of %u", counts.n);
    is_int(counts.wrong_way, 0, "low gets no longer and high no shorter");
    ok(counts.moved > 0, "and some move");
}

static int64_t first_of(const struct made *made, const struct prices *prices, enum task_kind kind)
{
    for (uint32_t t = 0; t < made->program.n_task; t++)
        if (made->program.tasks[t].kind == kind)
            return prices->task_ns[t];
    return -1;
}

/* 6 ranks read the row of 8: 1.4 to the power of log2(8 / 6), and kernels stay as they are. */
static void test_row(const struct cluster *h100, const struct cluster *plain)
{
    struct plan_options options = plan_options_default();
    struct made six, eight;

    make_init(&eight, "llama2-7b", 2, &options);
    options.gpus = 6;
    make_init(&six, "llama2-7b", 2, &options);
    const struct prices with = price(h100, SPREAD_HIGH, &six);
    const struct prices none = price(plain, SPREAD_HIGH, &six);
    is_int(with.left.n, 2, "two rows of collectives are not there");
    ok(fabs(with.left.at[0].widening - pow(1.4, log2(8.0 / 6))) < 1e-9, "by how much is said");
    is_int(first_of(&six, &with, TASK_FORWARD), first_of(&six, &none, TASK_FORWARD),
           "compute is left alone");
    is_int(price(h100, SPREAD_HIGH, &eight).left.n, 0, "of 8 ranks they are");
    make_release(&six);
    make_release(&eight);
}

/* A range of a rate that prices no kernel widens that rate alone. */
static void test_single_rate(const struct cluster *h100)
{
    static const struct valid_range range = {.min = 1, .max = 4, .quantity = QUANTITY_GPUS};
    struct plan_options options = plan_options_default();
    struct cluster cluster = *h100;
    struct made made;

    cluster.contention.valid = &range;
    cluster.contention.n_valid = 1;
    make_init(&made, "llama2-7b", 2, &options);
    const struct prices low = price(&cluster, SPREAD_LOW, &made);
    const struct prices high = price(&cluster, SPREAD_HIGH, &made);
    is_int(low.contention_permille, 91, "8 GPUs where 4 are known: contention of 0.1 / 1.1");
    is_int(high.contention_permille, 495, "to 0.45 * 1.1");
    is_int(high.host_launch_ns, 17700, "the host has no range");
    make_release(&made);
}

int main(void)
{
    struct arena arena;
    struct cluster h100;
    struct err err = {0};

    arena_init(&arena);
    if (cluster_open("h100-sxm", &arena, &h100, &err))
        tap_bail(err.text);
    const struct cluster plain = without_ranges(&h100);
    test_factor();
    test_widened();
    test_plans(&h100, &plain);
    test_row(&h100, &plain);
    test_single_rate(&h100);
    arena_release(&arena);
    return tap_done();
}
