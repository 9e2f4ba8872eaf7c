/*
 * The constants of the built-in clusters against the public benchmarks that they were fitted to.
 *
 * Bounds are what the fits of spec COST sections 1 and 4 reach, a little rounded up: a wrong digit
 * in a cluster file shows here as a median that is too large.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cost_formula.h"
#include "tests/tap.h"

enum { MAX_POINTS = 20000, LINE_SIZE = 1024 };

struct errors {
    double relative[MAX_POINTS], size[MAX_POINTS]; /* signed, and without the sign */
    size_t n;
};

static void add_error(struct errors *errors, double got, double want)
{
    if (errors->n == MAX_POINTS)
        return;
    errors->relative[errors->n] = got / want - 1;
    errors->size[errors->n] = fabs(got / want - 1);
    errors->n++;
}

static double mean(const struct errors *errors)
{
    double sum = 0;
    for (size_t i = 0; i < errors->n; i++)
        sum += errors->relative[i];
    return errors->n ? sum / (double)errors->n : INFINITY;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_size(struct errors *errors)
{
    qsort(errors->size, errors->n, sizeof *errors->size, compare);
    return errors->n ? errors->size[errors->n / 2] : INFINITY;
}

/* As fast as the isolated benchmarks: no derate, no floor of a real job. */
static struct cost_rates bench_rates(const struct cluster *cluster)
{
    struct cost_rates r = cost_rates_at(cluster, SPREAD_MID);
    r.gemm_derate = 1;
    r.collective_floor_s = 0;
    return r;
}

static struct cluster open_cluster(const char *name, struct arena *arena)
{
    struct cluster cluster;
    struct err err = {0};
    if (cluster_open(name, arena, &cluster, &err))
        tap_bail(err.text);
    return cluster;
}

static const struct gpu {
    const char *cluster, *in_data;
    double products_pct; /* half of them are within so much; 0: the data has none */
} gpus[] = {
    {"h100-sxm", "h100_sxm", 3.8}, {"h200-sxm", "h200_sxm", 3.8}, {"a100-sxm-80g", "a100_sxm", 3.8},
    {"b200-sxm", "b200_sxm", 4.6}, {"gb200", "gb200", 0},
};

/* gpu,dtype,m,n,k,n_sources,median_us,… */
static void test_gemm(FILE *data, const struct gpu *gpu, struct arena *arena, struct errors *errors)
{
    const struct cluster cluster = open_cluster(gpu->cluster, arena);
    const struct cost_rates r = bench_rates(&cluster);
    char line[LINE_SIZE];

    errors->n = 0;
    rewind(data);
    while (fgets(line, sizeof line, data)) {
        char name[32], dtype[16];
        double m, n, k, us;
        if (sscanf(line, "%31[^,],%15[^,],%lf,%lf,%lf,%*d,%lf", name, dtype, &m, &n, &k, &us) ==
                6 &&
            !strcmp(name, gpu->in_data) && !strcmp(dtype, "bf16") && m >= 1024)
            add_error(errors, cost_gemm_s(&r, m, n, k), us * 1e-6);
    }
    const double error_pct = 100 * median_size(errors);
    ok(errors->n > 1000 && error_pct < gpu->products_pct,
       "%s: half of %zu products are within %.1f %% (%.2f %%)", gpu->cluster, errors->n,
       gpu->products_pct, error_pct);
}

/* gpu,nodes,gpus,collective,dtype,bytes,time_us,…; int8 rows repeat those of half */
static void read_row(FILE *data, const struct gpu *gpu, const struct cost_rates *r,
                     const struct collective_row *row, double min_bytes, struct errors *errors)
{
    char line[LINE_SIZE];

    errors->n = 0;
    rewind(data);
    while (fgets(line, sizeof line, data)) {
        char name[32], collective[32], dtype[16];
        unsigned nodes, ranks;
        double bytes, us;
        if (sscanf(line, "%31[^,],%u,%u,%31[^,],%15[^,],%lf,%lf", name, &nodes, &ranks, collective,
                   dtype, &bytes, &us) == 7 &&
            !strcmp(name, gpu->in_data) && nodes == 1 && ranks == row->ranks &&
            !strcmp(dtype, "half") && !strcmp(collective, task_kind_name(row->kind)) &&
            bytes >= min_bytes)
            add_error(errors, cost_collective_s(r, row, bytes, 1, ranks), us * 1e-6);
    }
}

static void test_row(FILE *data, const struct gpu *gpu, const struct cost_rates *r,
                     const struct collective_row *row, struct errors *errors)
{
    const char *kind = task_kind_name(row->kind);

    read_row(data, gpu, r, row, 0, errors);
    const double error = median_size(errors);
    ok(errors->n > 20 && error < 0.057,
       "%s: half of %zu points of %s on %u are within 5.7 %% (%.2f %%)", gpu->cluster, errors->n,
       kind, row->ranks, 100 * error);

    read_row(data, gpu, r, row, 64 << 20, errors);
    const double bias = mean(errors);
    ok(errors->n > 3 && fabs(bias) < 0.03,
       "%s: messages from 64 MiB of %s on %u are off by less than 3 %% in the mean (%+.2f %%)",
       gpu->cluster, kind, row->ranks, 100 * bias);
}

static void test_collectives(FILE *data, const struct gpu *gpu, struct arena *arena,
                             struct errors *errors)
{
    const struct cluster cluster = open_cluster(gpu->cluster, arena);
    const struct cost_rates r = bench_rates(&cluster);

    for (uint32_t i = 0; i < cluster.n_collective; i++)
        test_row(data, gpu, &r, &cluster.collectives[i], errors);
}

static FILE *open_shared(const char *name)
{
    const char *path = tap_shared(name);
    return path ? fopen(path, "r") : NULL;
}

int main(void)
{
    static struct errors errors;
    FILE *gemm = open_shared("data/gemm_aic.csv"), *nccl = open_shared("data/nccl.csv");
    struct arena arena;

    arena_init(&arena);
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus && gemm && nccl; i++) {
        if (gpus[i].products_pct > 0)
            test_gemm(gemm, &gpus[i], &arena, &errors);
        test_collectives(nccl, &gpus[i], &arena, &errors);
    }
    arena_release(&arena);
    const bool has_data = gemm && nccl;
    if (gemm)
        fclose(gemm);
    if (nccl)
        fclose(nccl);
    return has_data ? tap_done() : tap_skip_all("no shared data here (UNSHARD_SHARED)");
}
