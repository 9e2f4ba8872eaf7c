/*
 * How accurate predictions are on public runs (the shared folder has them), held against a recorded
 * table: no figure gets worse, and no run that was predicted disappears. Three sets of figures: by
 * presets; with constants fitted to the calibration runs, of all; of the runs that no fit has seen.
 *
 * The table has ids and errors alone, the measurements are a third party's. UNSHARD_RECORD=FILE
 * writes it anew. Beside it what is wanted whatever the table says, of times and of peaks of memory,
 * and what the runs say by themselves: the published utilisation follows from the published speed, by
 * our models' sizes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/calibrate_runs.h"
#include "src/cluster.h"
#include "src/model.h"
#include "tests/tap.h"

/* Percent points: less is another compiler's rounding. */
static const double SLACK = 0.05;

static const char TABLE[] = "tests/accuracy.txt", NEEDED[] = "tests/must_predict.txt";

static struct arena arena;

enum { SET_PRESETS, SET_CALIBRATED, SET_UNSEEN, SET_N };
static const char *const set_names[SET_N] = {"presets", "calibrated", "unseen"};

struct sets {
    struct validation of[SET_N];
};

static FILE *open_table(const char *name)
{
    char path[4096];
    const char *folder = getenv("top_srcdir");

    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
    FILE *table = fopen(path, "r");
    if (!table)
        tap_bail("a recorded table is missing");
    return table;
}

/* ---- the recorded table: "row ID" and "figure SET PLATFORM: NAME VALUE" --------------------- */

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

static void record_figures(const struct platform_stats *stats, const char *set, FILE *file)
{
#define X(member, name)        \
    if (!isnan(stats->member)) \
        fprintf(file, "figure %s %s: %s %.2f\n", set, stats->platform, name, stats->member);
    FIGURES(X)
#undef X
}

static void record(const struct sets *sets, const char *path)
{
    const struct validation *presets = &sets->of[SET_PRESETS];
    FILE *file = fopen(path, "w");
    if (!file)
        tap_bail("cannot write the table");
    for (uint32_t i = 0; i < presets->n; i++)
        if (!presets->rows[i].reason && presets->rows[i].counts)
            fprintf(file, "row %s\n", presets->rows[i].run->id);
    for (int set = 0; set < SET_N; set++)
        for (uint32_t i = 0; i < sets->of[set].n_platform; i++)
            record_figures(&sets->of[set].platforms[i], set_names[set], file);
    fclose(file);
}

static bool is_predicted(const struct validation *validation, const char *id)
{
    for (uint32_t i = 0; i < validation->n; i++)
        if (!strcmp(validation->rows[i].run->id, id))
            return !validation->rows[i].reason;
    return false;
}

static const struct platform_stats *stats_of(const struct sets *sets, const char *set,
                                             const char *platform)
{
    for (int s = 0; s < SET_N; s++)
        for (uint32_t i = 0; i < sets->of[s].n_platform && !strcmp(set, set_names[s]); i++)
            if (!strcmp(sets->of[s].platforms[i].platform, platform))
                return &sets->of[s].platforms[i];
    return NULL;
}

static double figure_of(const struct platform_stats *stats, const char *name)
{
#define X(member, figure)               \
    if (stats && !strcmp(name, figure)) \
        return stats->member;
    FIGURES(X)
#undef X
    return NAN;
}

static void test_table(const struct sets *sets)
{
    FILE *table = open_table(TABLE);
    char line[200], a[80], b[80], c[40];
    uint32_t n_row = 0, missing = 0;
    double recorded;

    while (fgets(line, sizeof line, table)) {
        if (sscanf(line, "row %79s", a) == 1) {
            n_row++;
            missing += !is_predicted(&sets->of[SET_PRESETS], a);
            if (!is_predicted(&sets->of[SET_PRESETS], a))
                tap_note("%s is not predicted any more", a);
        } else if (sscanf(line, "figure %79s %79[^:]: %39s %lf", a, b, c, &recorded) == 4) {
            const double now = figure_of(stats_of(sets, a, b), c);
            ok(now <= recorded + SLACK, "%s, %s, %s: %.2f %%, not above %.2f", a, b, c, now,
               recorded);
        }
    }
    fclose(table);
    ok(n_row > 0, "%u runs have to be predicted", n_row);
    is_int(missing, 0, "each of them is");
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static void test_goals(const struct sets *sets)
{
    const struct platform_stats *presets = stats_of(sets, "presets", "all");
    const struct platform_stats *clear = stats_of(sets, "unseen", "memory to spare");
    const struct platform_stats *all = stats_of(sets, "unseen", "all");

    ok(presets->mean <= 9 && presets->p90 <= 18, "by presets: mean %.1f %%, p90 %.1f",
       presets->mean, presets->p90);
    ok(presets->coverage >= 85 && presets->width <= 30,
       "%.0f %% lie between low and high, which are %.0f %% apart", presets->coverage,
       presets->width);
    ok(clear->mean <= 2.3 && clear->p90 <= 4.8 && clear->max <= 10,
       "fitted, unseen, memory to spare: mean %.2f %%, p90 %.1f, worst %.1f", clear->mean,
       clear->p90, clear->max);
    ok(all->mean <= 3 && all->p90 <= 6, "near the memory limit or not: mean %.2f %%, p90 %.1f",
       all->mean, all->p90);
    ok(all->coverage >= 85, "%.0f %% lie between low and high, which are %.0f %% apart",
       all->coverage, all->width);
}

/* Of rows near the memory limit taken together a few are far off, so that they lean. */
static void test_bias(const struct validation *validation, const char *which)
{
    for (uint32_t i = 0; i < validation->n_platform; i++) {
        const struct platform_stats *stats = &validation->platforms[i];
        if (stats->n >= VALIDATE_MIN_ROWS && strcmp(stats->platform, "near the memory limit") != 0)
            ok(fabs(stats->bias) <= 1.5, "%s, %s: errors are %+.1f %% in the mean", which,
               stats->platform, stats->bias);
    }
}

/* Where a platform has some rows: its pairs of one model in order, and no lean to one side. */
static void test_platforms(const struct sets *sets)
{
    const struct validation *unseen = &sets->of[SET_UNSEEN];

    for (uint32_t i = 0; i < unseen->n_platform; i++) {
        const struct platform_stats *stats = &unseen->platforms[i];
        if (stats->n >= VALIDATE_MIN_ROWS && stats->n_pair > 0)
            ok(stats->rank >= 98, "%s: %.1f %% of %u pairs are put in the right order",
               stats->platform, stats->rank, stats->n_pair);
    }
    test_bias(&sets->of[SET_CALIBRATED], "calibrated");
    test_bias(unseen, "unseen");
}

static void test_misses(const struct validation *unseen)
{
    for (uint32_t i = 0; i < unseen->n; i++) {
        const struct validated_row *row = &unseen->rows[i];
        if (row->counts && !row->reason && fabs(row->error_pct) > 10)
            ok(row->near_memory_limit, "%s is %.1f %% off, and said to be near the memory limit",
               row->run->id, row->error_pct);
    }
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

/* The list names the runs that the rule says, and each is predicted. */
static void test_needed(const struct validation *validation)
{
    FILE *table = open_table(NEEDED);
    uint32_t listed = 0, missing = 0, wanted = 0;
    char line[200], id[80];

    while (fgets(line, sizeof line, table)) {
        if (sscanf(line, "%79[^# \n]", id) != 1)
            continue;
        listed++;
        missing += !is_predicted(validation, id);
        if (!is_predicted(validation, id))
            tap_note("%s has to be predicted, and is not", id);
    }
    fclose(table);
    for (uint32_t i = 0; i < validation->n; i++)
        wanted += has_to_be_predicted(validation->rows[i].run);
    is_int(missing, 0, "all %u runs that are listed are predicted", listed);
    is_int(listed, wanted, "these are the runs of our families under FSDP alone");
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

/* ---- the three sets -------------------------------------------------------------------------- */

/* Those that pass, of rows that are predicted already. */
static struct validation choose(const struct validation *all, bool tests)
{
    struct validation out = {.tolerance_pct = NAN,
                             .rows = arena_array(&arena, struct validated_row, all->n)};

    for (uint32_t i = 0; i < all->n; i++)
        if (!strcmp(all->rows[i].run->split, "test") == tests)
            out.rows[out.n++] = all->rows[i];
    return out;
}

static struct validation predict(const struct measured *measured, const char *clusters)
{
    struct validation out = {.tolerance_pct = NAN,
                             .rows = arena_array(&arena, struct validated_row, measured->n),
                             .n = measured->n};
    struct err err = {0};

    for (uint32_t i = 0; i < measured->n; i++)
        out.rows[i].run = &measured->runs[i];
    if (validate_rows(clusters, &arena, &out, &err))
        tap_bail(err.text);
    return out;
}

static void predict_sets(const struct measured *measured, struct sets *sets)
{
    char folder[] = "/tmp/unshard-accuracy-XXXXXX";
    struct calibration c = {.folder = mkdtemp(folder), .file = "runs", .arena = &arena};
    struct err err = {0};

    sets->of[SET_PRESETS] = predict(measured, NULL);
    c.presets = choose(&sets->of[SET_PRESETS], false);
    if (!c.folder || calibration_run(&c, &err))
        tap_bail(err.text);
    sets->of[SET_CALIBRATED] = predict(measured, folder);
    sets->of[SET_UNSEEN] = choose(&sets->of[SET_CALIBRATED], true);
    validate_count(&sets->of[SET_UNSEEN], &arena);
    for (uint32_t i = 0; i < c.n_fit; i++)
        unlink(c.fits[i].path);
    rmdir(folder);
}

int main(void)
{
    const char *path = tap_shared("data/measured.csv"), *to = getenv("UNSHARD_RECORD");
    struct measured measured;
    struct sets sets;
    struct err err = {0};

    if (!path)
        return tap_skip_all("no shared data here (UNSHARD_SHARED)");
    arena_init(&arena);
    if (measured_read(path, &arena, &measured, &err))
        tap_bail(err.text);
    predict_sets(&measured, &sets);
    test_needed(&sets.of[SET_PRESETS]);
    test_utilisation(&sets.of[SET_PRESETS]);
    test_peaks(&sets.of[SET_PRESETS], &(struct peak_bounds){"allocated", "active", 0.5, 1, 3});
    test_peaks(&sets.of[SET_PRESETS], &(struct peak_bounds){"reserved", "reserved", 3, 8, 11});
    test_goals(&sets);
    test_platforms(&sets);
    test_misses(&sets.of[SET_UNSEEN]);
    if (to)
        record(&sets, to);
    else
        test_table(&sets);
    arena_release(&arena);
    return tap_done();
}
