/*
 * How accurate predictions are on public runs (the shared folder has them), held against a recorded
 * table: no figure gets worse, and no run that was predicted disappears.
 *
 * The table has ids and errors alone, the measurements are a third party's. UNSHARD_RECORD=FILE
 * writes it anew. Beside it what peaks of memory have to keep to, and what the runs say by
 * themselves: the published utilisation follows from the published speed, by our models' sizes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/validate.h"
#include "src/cluster.h"
#include "src/model.h"
#include "tests/tap.h"

/* Percent points: less is another compiler's rounding. */
static const double SLACK = 0.05;

static const char TABLE[] = "tests/accuracy.txt";

static struct arena arena;

/* ---- the recorded table: "row ID" and "figure PLATFORM NAME VALUE" ------------------------- */

#define FIGURES(X)              \
    X(mean, "mean")             \
    X(median, "median")         \
    X(p90, "p90")               \
    X(max, "max")               \
    X(clear_mean, "clear_mean") \
    X(clear_p90, "clear_p90")   \
    X(clear_max, "clear_max")   \
    X(peak_mean, "peak_mean")   \
    X(peak_max, "peak_max")

static void record(const struct validation *validation, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        tap_bail("cannot write the table");
    for (uint32_t i = 0; i < validation->n; i++)
        if (!validation->rows[i].reason && validation->rows[i].counts)
            fprintf(file, "row %s\n", validation->rows[i].run->id);
    for (uint32_t i = 0; i < validation->n_platform; i++) {
        const struct platform_stats *stats = &validation->platforms[i];
#define X(member, name)        \
    if (!isnan(stats->member)) \
        fprintf(file, "figure %s %s %.2f\n", stats->platform, name, stats->member);
        FIGURES(X)
#undef X
    }
    fclose(file);
}

static bool is_predicted(const struct validation *validation, const char *id)
{
    for (uint32_t i = 0; i < validation->n; i++)
        if (!strcmp(validation->rows[i].run->id, id))
            return !validation->rows[i].reason;
    return false;
}

static double figure_of(const struct validation *validation, const char *platform, const char *name)
{
    for (uint32_t i = 0; i < validation->n_platform; i++) {
        const struct platform_stats *stats = &validation->platforms[i];
        if (strcmp(stats->platform, platform) != 0)
            continue;
#define X(member, figure)      \
    if (!strcmp(name, figure)) \
        return stats->member;
        FIGURES(X)
#undef X
    }
    return NAN;
}

static void hold(const struct validation *validation, FILE *table)
{
    char line[200], a[80], b[40];
    uint32_t n_row = 0, missing = 0;
    double recorded;

    while (fgets(line, sizeof line, table)) {
        if (sscanf(line, "row %79s", a) == 1) {
            n_row++;
            missing += !is_predicted(validation, a);
            if (!is_predicted(validation, a))
                tap_note("%s is not predicted any more", a);
        } else if (sscanf(line, "figure %79s %39s %lf", a, b, &recorded) == 3) {
            const double now = figure_of(validation, a, b);
            ok(now <= recorded + SLACK, "%s, %s: %.2f %%, not above %.2f", a, b, now, recorded);
        }
    }
    ok(n_row > 0, "%u runs have to be predicted", n_row);
    is_int(missing, 0, "each of them is");
}

static void test_table(const struct validation *validation)
{
    char path[4096];
    const char *folder = getenv("top_srcdir"), *to = getenv("UNSHARD_RECORD");

    if (to) {
        record(validation, to);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", TABLE);
    FILE *table = fopen(path, "r");
    if (!table)
        tap_bail("no recorded table");
    hold(validation, table);
    fclose(table);
}

/* ---- peaks of memory, without tensor and pipeline parallelism -------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Errors of rows that count, in percent. */
struct peak_bounds {
    const char *kind, *other;
    double mean, p90, worst;
};

static void test_peaks(const struct validation *validation, const struct peak_bounds *most)
{
    double *errors = arena_array(&arena, double, validation->n + 1), sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < validation->n; i++) {
        const struct validated_row *row = &validation->rows[i];
        if (row->reason || !row->counts || isnan(row->peak_error_pct) ||
            (strcmp(row->run->peak_kind, most->kind) && strcmp(row->run->peak_kind, most->other)))
            continue;
        errors[n++] = fabs(row->peak_error_pct);
        sum += fabs(row->peak_error_pct);
    }
    if (n == 0)
        tap_bail("no peaks");
    qsort(errors, n, sizeof *errors, ascending);
    const double p90 = errors[(n * 9 + 9) / 10 - 1];
    ok(sum / n <= most->mean, "%u peaks, %s: %.2f %% off in the mean", n, most->kind, sum / n);
    ok(p90 <= most->p90, "%s: nine tenths within %.1f %%", most->kind, p90);
    ok(errors[n - 1] <= most->worst, "%s: all within %.1f %%", most->kind, errors[n - 1]);
}

/* ---- what has to be predicted, and published utilisation ----------------------------------- */

/* Families that we have, one kind of parallelism, and not doubted. */
static bool has_to_be_predicted(const struct measured_run *run)
{
    static const char *const families[] = {"llama", "mpt-", "gpt2", "kda"};
    const bool fsdp = !strcmp(run->system, "fsdp1") || !strcmp(run->system, "fsdp2");
    bool known = false;

    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        known |= !strncmp(run->model, families[i], strlen(families[i]));
    return known && fsdp && run->tp == 1 && run->pp == 1 && run->cp == 1 &&
           strcmp(run->trust, "low") != 0;
}

static void test_coverage(const struct validation *validation)
{
    uint32_t missing = 0, n = 0;

    for (uint32_t i = 0; i < validation->n; i++) {
        const struct validated_row *row = &validation->rows[i];
        if (!has_to_be_predicted(row->run))
            continue;
        n++;
        missing += row->reason != NULL;
        if (row->reason)
            tap_note("%s: %s", row->run->id, row->reason);
    }
    is_int(missing, 0, "all %u runs of our families under FSDP alone are predicted", n);
}

/* 6 N and full attention over the dense peak of the products' dtype (the data's README). */
static double utilisation_pct(const struct measured_run *run)
{
    struct cluster cluster;
    struct model model;
    struct err err = {0};
    const bool fp8 = !strcmp(run->linear_fp8, "yes");

    if (cluster_open(run->gpu, &arena, &cluster, &err) ||
        model_open(run->model, 0, &arena, &model, &err) ||
        model_set_positions(&model, run->seq_len, &arena, &err))
        return NAN;
    const double peak = (fp8 ? cluster.fp8_flops : cluster.gemm_flops).at[SPREAD_MID];
    const double attention = 12 * (double)model.dims.layers * (double)model.dims.hidden;
    const double flops = 6 * (double)model.n_element + attention * (double)run->seq_len;
    return 100 * flops * run->tokens_s_gpu / peak;
}

static void test_utilisation(const struct validation *validation)
{
    uint32_t n = 0;
    double worst = 0;

    for (uint32_t i = 0; i < validation->n; i++) {
        const struct measured_run *run = validation->rows[i].run;
        if (isnan(run->mfu_pct))
            continue;
        const double off = fabs(utilisation_pct(run) - run->mfu_pct);
        if (!(off <= 0.5))
            tap_note("%s: %.2f, published %.2f", run->id, utilisation_pct(run), run->mfu_pct);
        worst = off <= worst ? worst : off;
        n++;
    }
    ok(worst <= 0.5, "the published utilisation of %u runs comes out, %.2f points off at most", n,
       worst);
}

int main(void)
{
    const char *path = tap_shared("data/measured.csv");
    struct validation validation = {.file = path, .tolerance_pct = NAN};
    struct measured measured;
    struct err err = {0};

    if (!path)
        return tap_skip_all("no shared data here (UNSHARD_SHARED)");
    arena_init(&arena);
    if (measured_read(path, &arena, &measured, &err))
        tap_bail(err.text);
    validation.n = measured.n;
    validation.rows = arena_array(&arena, struct validated_row, measured.n);
    for (uint32_t i = 0; i < measured.n; i++)
        validation.rows[i].run = &measured.runs[i];
    if (validate_rows(NULL, &arena, &validation, &err))
        tap_bail(err.text);
    test_coverage(&validation);
    test_utilisation(&validation);
    test_peaks(&validation, &(struct peak_bounds){"allocated", "active", 0.5, 1, 3});
    test_peaks(&validation, &(struct peak_bounds){"reserved", "reserved", 3, 8, 11});
    test_table(&validation);
    arena_release(&arena);
    return tap_done();
}
