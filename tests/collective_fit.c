/*
 * Collectives fitted to what was measured: formulas come back exactly, and published rows are
 * predicted with themselves left out.
 */
#include "src/cli/collective_fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/cost_formula.h"
#include "src/cli/nonnegative_fit.h"
#include "tests/tap.h"
#include "traces/nccl_tests.h"

enum { MOST = CLUSTER_MAX_POINTS };

/* ---- least squares ------------------------------------------------------------------------------ */

static void test_solver(void)
{
    static const double third[FIT_UNKNOWNS][FIT_UNKNOWNS] = {{1, 1, 1}, {1, 2, 4}, {1, 3, 9}};
    struct fit exact = {0}, negative = {0}, equal = {0}, none = {0};
    double x[FIT_UNKNOWNS];

    for (int i = 0; i < FIT_UNKNOWNS; i++) { /* 3 + 2i + i^2 */
        const double at = third[i][1];
        fit_add(&exact, third[i], 3 + 2 * at + at * at);
        fit_add(&negative, third[i], 10 - at);
        fit_add(&equal, (const double[]){at, 2 * at, 0}, 4 * at);
    }
    fit_solve(&exact, x);
    ok(fabs(x[0] - 3) < 1e-9 && fabs(x[1] - 2) < 1e-9 && fabs(x[2] - 1) < 1e-9,
       "as many equations as unknowns are solved: %g %g %g", x[0], x[1], x[2]);
    fit_solve(&negative, x);
    ok(fabs(x[0] - 8) < 1e-9 && x[1] == 0 && x[2] == 0,
       "an unknown that would be below 0 is 0, and the best without it is taken: %g", x[0]);
    fit_solve(&equal, x);
    is_near(x[0] + 2 * x[1], 4, 1e-9, "two that cannot be told apart are one");
    fit_solve(&none, x);
    ok(x[0] == 0 && x[1] == 0 && x[2] == 0, "without equations all are 0");
}

/* ---- made-up clusters --------------------------------------------------------------------------- */

static uint32_t make_points(const struct collective_row *like, struct collective_point *points)
{
    static const struct cost_rates no_floor = {.spread = SPREAD_MID};
    uint32_t n = 0;

    for (double bytes = FIT_LEAST_BYTES; bytes <= 8e9; bytes *= 2)
        points[n++] = (struct collective_point){
            bytes, cost_collective_s(&no_floor, like, bytes, 1, like->ranks)};
    return n;
}

static void test_row(double a_us, double b_us, double gb_per_s)
{
    const struct collective_row like = {.kind = TASK_ALL_GATHER,
                                        .ranks = 8,
                                        .a_s = a_us * 1e-6,
                                        .b_s_per_sqrt_mb = b_us * 1e-6,
                                        .bytes_per_s = gb_per_s * 1e9};
    struct collective_row row;
    struct collective_point points[MOST], own[MOST];
    const struct measured_row measured = {.kind = TASK_ALL_GATHER,
                                          .ranks = 8,
                                          .points = points,
                                          .n_point = make_points(&like, points)};

    collective_fit_row(&measured, own, &row);
    ok(fabs(row.a_s - like.a_s) < 1e-10 && fabs(row.b_s_per_sqrt_mb - like.b_s_per_sqrt_mb) < 1e-10,
       "what a formula of %g us, %g us a root and %g GB/s says is fitted by it", a_us, b_us,
       gb_per_s);
    is_near(row.bytes_per_s, like.bytes_per_s, 1e-6, "at its rate");
    ok(row.n_point == measured.n_point && row.points == own &&
           !memcmp(own, points, row.n_point * sizeof *own),
       "and its times are the row's points");
    ok(collective_fit_errors(&measured).median < 0.04,
       "most of which the others tell: within %.1f %%",
       100 * collective_fit_errors(&measured).median);
}

/* A row that is slower than all others alike is the worst, and the spread reaches out to its side. */
static void test_errors(void)
{
    const struct collective_row like = {.kind = TASK_ALL_GATHER, .ranks = 8, .bytes_per_s = 300e9};
    struct collective_point points[MOST];
    const struct measured_row measured = {.kind = TASK_ALL_GATHER,
                                          .ranks = 8,
                                          .points = points,
                                          .n_point = make_points(&like, points)};

    points[4].seconds *= 1.5;
    const struct fit_errors errors = collective_fit_errors(&measured);
    is_near(errors.worst, 0.5, 0.1, "a time that is 50 %% too long is missed by as much");
    is_near(errors.worst_bytes, points[4].bytes, 1e-12, "and named");
    ok(errors.median < 0.01, "most others are not missed");
    ok(errors.slower < 0.01 && errors.faster > 0 && errors.faster < 0.4,
       "one of ten does not make the spread");
}

/* What a size is predicted at must not know what it took: not by its neighbours, by the least of all or
   by who is a hiccup. */
static void test_left_out(const struct cluster *h100)
{
    static const double factors[] = {0.01, 0.5, 0.9, 1.04, 2, 100};
    const struct collective_row *steps = cost_collective_row(h100, TASK_ALL_REDUCE, 8, 1);
    struct collective_point points[MOST];
    const struct measured_row measured = {.kind = TASK_ALL_REDUCE,
                                          .ranks = 8,
                                          .points = points,
                                          .n_point = make_points(steps, points),
                                          .steps = steps};
    uint32_t same = 0, all = 0;

    for (uint32_t i = 0; i < measured.n_point; i++) {
        const double seconds = points[i].seconds;
        const double predicted = seconds / (1 + collective_fit_error(&measured, i));
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++, all++) {
            points[i].seconds = factors[f] * seconds;
            const double again = points[i].seconds / (1 + collective_fit_error(&measured, i));
            same += fabs(again / predicted - 1) < 1e-12;
        }
        points[i].seconds = seconds;
    }
    is_int(same, all, "what is left out is predicted at the same whatever it took");
}

/* A curve of the preset's own is told from any others of its sizes. */
static void test_steps(const struct cluster *h100)
{
    const struct collective_row *steps = cost_collective_row(h100, TASK_ALL_REDUCE, 8, 1);
    struct collective_point points[MOST];
    struct measured_row measured = {.kind = TASK_ALL_REDUCE,
                                    .ranks = 8,
                                    .points = points,
                                    .n_point = make_points(steps, points)};

    const double straight = collective_fit_errors(&measured).worst;
    measured.steps = steps;
    ok(straight > 0.1 && collective_fit_errors(&measured).worst < 0.05,
       "by the preset's steps what is left out is missed by %.1f %% at most, straight by %.1f",
       100 * collective_fit_errors(&measured).worst, 100 * straight);
}

static void test_network(double efficiency, double us_per_rank, struct arena *arena)
{
    static const uint32_t nodes[] = {2, 4, 16};
    struct cluster cluster;
    struct node_sample samples[MOST];
    struct err err;
    uint32_t n = 0;

    if (cluster_open("h100-sxm", arena, &cluster, &err) != STATUS_OK)
        tap_bail(err.text);
    struct cost_rates rates = cost_rates_at(&cluster, SPREAD_MID);
    rates.nic_efficiency = efficiency;
    rates.rank_latency_s = us_per_rank * 1e-6;
    for (uint32_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        for (double bytes = FIT_LEAST_BYTES; bytes <= 8e9; bytes *= 4) {
            const uint8_t kind = i == 1 ? TASK_REDUCE_SCATTER : TASK_ALL_GATHER;
            const struct collective_row *row = cost_collective_row(&cluster, kind, 8, 1);
            samples[n++] = (struct node_sample){kind, 8 * nodes[i], nodes[i], bytes,
                                                cost_collective_s(&rates, row, bytes, nodes[i], 8)};
        }
    const struct fit_errors errors = collective_fit_network(&cluster, samples, n);
    is_near(cluster.nic_efficiency.at[SPREAD_MID], efficiency, 1e-6,
            "adapters of %g and %g us a rank are found", efficiency, us_per_rank);
    ok(fabs(cluster.rank_latency_s.at[SPREAD_MID] - us_per_rank * 1e-6) < 1e-11,
       "both, over 2, 4 and 16 nodes: %g us", cluster.rank_latency_s.at[SPREAD_MID] * 1e6);
    ok(errors.worst < 1e-6, "and nothing is missed");
    is_near(cluster.nic_bytes_per_s.at[SPREAD_MID], rates.nic_bytes_per_s, 1e-12,
            "the adapter's own rate stays");
}

/* Faster than the adapters can be: the file cannot say so. What is missed is in the spread. */
static void test_network_bound(struct arena *arena)
{
    struct cluster cluster;
    struct node_sample samples[4];
    struct err err;

    if (cluster_open("h100-sxm", arena, &cluster, &err) != STATUS_OK)
        tap_bail(err.text);
    for (int i = 0; i < 4; i++)
        samples[i] = (struct node_sample){TASK_ALL_GATHER, 16, 2, ldexp(1e8, i),
                                          ldexp(1e8, i) / (i == 3 ? 500e9 : 1000e9)};
    collective_fit_network(&cluster, samples, 4);
    const struct rate *efficiency = &cluster.nic_efficiency, *latency = &cluster.rank_latency_s;
    is_near(efficiency->at[SPREAD_MID], 1, 1e-12, "adapters carry no more than they can");
    ok(efficiency->at[SPREAD_LOW] <= 1 && efficiency->at[SPREAD_HIGH] <= efficiency->at[SPREAD_MID],
       "at either end");
    ok(latency->at[SPREAD_LOW] <= latency->at[SPREAD_MID] &&
           latency->at[SPREAD_MID] <= latency->at[SPREAD_HIGH],
       "and low is the fast end");
}

/* ---- what is published -------------------------------------------------------------------------- */

/*
 * Rows of eight H100 that are missed by more than 5 % when they are left out; all others are not. Both
 * are hiccups of the machine, which nothing tells: a gather of 4 MiB took 50.7 us where twice as much
 * took 49.1 and the same out of place 47.2; a scatter of 4 MiB 59.2 us, where twice as much took 54.4
 * and the same in place 46.6.
 */
static const struct {
    const char *file;
    enum nccl_block block;
    double hiccup_mib, hiccup_error; /* 0: none */
} published[] = {
    {"07_h100_sxm_p5_48xlarge__aws-samples.txt", NCCL_IN_PLACE, 0, 0},
    {"09_h100_sxm_dgxc.txt", NCCL_IN_PLACE, 0, 0},
    {"ext_h100_8_all_gather_bf16.txt", NCCL_IN_PLACE, 4, 0.082},
    {"ext_h100_8_reduce_scatter_bf16.txt", NCCL_OUT_OF_PLACE, 4, 0.232},
};

static const double ALLOWED = 0.05;
static const double MIB = 1048576;

static struct measured_row read_measured(const char *path, enum nccl_block block,
                                         struct arena *arena, struct collective_point *points)
{
    struct nccl_tests tests;
    struct err err;

    if (nccl_tests_read(path, arena, &tests, &err) != STATUS_OK)
        tap_bail(err.text);
    struct measured_row measured = {
        .kind = tests.tests->kind, .ranks = tests.tests->ranks, .points = points};
    for (uint32_t i = 0; i < tests.tests->n_row; i++)
        if (tests.tests->rows[i].bytes >= FIT_LEAST_BYTES)
            points[measured.n_point++] = (struct collective_point){
                (double)tests.tests->rows[i].bytes, tests.tests->rows[i].seconds[block]};
    return measured;
}

/* A calibrated row has no times of its own in what it tells of steps: errors do not get smaller by that. */
static void test_again(const struct measured_row *measured, struct cluster h100)
{
    struct collective_point points[CLUSTER_MAX_POINTS];
    struct collective_row row;
    struct measured_row again = *measured;

    collective_fit_row(measured, points, &row);
    h100.collectives = &row;
    h100.n_collective = 1;
    again.steps = measured_row_steps(measured, &h100);
    const struct fit_errors first = collective_fit_errors(measured);
    const struct fit_errors second = collective_fit_errors(&again);
    ok(first.median == second.median && first.worst == second.worst,
       "calibrated once more the same errors are told: %.2f %%", 100 * second.median);
}

static void test_published(size_t i, const struct cluster *h100, struct arena *arena)
{
    struct collective_point points[MOST];
    char name[128];
    uint32_t within = 0, hiccups = 0;

    snprintf(name, sizeof name, "data/nccl_raw/%s", published[i].file);
    const char *path = tap_shared(name);
    if (!path) {
        tap_skip("no published output here");
        return;
    }
    struct measured_row measured = read_measured(path, published[i].block, arena, points);
    measured.steps = measured_row_steps(&measured, h100);
    for (uint32_t p = 0; p < measured.n_point; p++) {
        const double mib = points[p].bytes / MIB, error = collective_fit_error(&measured, p);
        if (fabs(error) <= ALLOWED)
            within++;
        else if (measured_row_is_hiccup(&measured, p) && mib == published[i].hiccup_mib &&
                 fabs(error - published[i].hiccup_error) < 0.001)
            hiccups++;
        else
            tap_note("%g MiB, %.2f us, is missed by %.1f %%", mib, points[p].seconds * 1e6,
                     100 * error);
    }
    is_int(within + hiccups, measured.n_point,
           "%s: %u of %u rows from 64 KiB are within 5 %%, each left out; the others are hiccups",
           published[i].file, within, measured.n_point);
    test_again(&measured, *h100);
}

int main(void)
{
    struct arena arena;
    struct cluster h100;
    struct err err;

    arena_init(&arena);
    if (cluster_open("h100-sxm", &arena, &h100, &err) != STATUS_OK)
        tap_bail(err.text);
    test_solver();
    test_row(10.6, 5.1, 364);
    test_row(37.7, 0, 356);
    test_row(0, 12, 250);
    test_errors();
    test_left_out(&h100);
    test_steps(&h100);
    test_network(0.85, 3, &arena);
    test_network(0.4, 0, &arena);
    test_network_bound(&arena);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        test_published(i, &h100, &arena);
    arena_release(&arena);
    return tap_done();
}
