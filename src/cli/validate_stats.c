/*
 * Errors of predictions as statistics; see validate.h.
 *
 * Of the rows that count, per platform and of all together. A percentile is the smallest value that
 * so many rows do not pass (nearest rank). Pairs for ranking are runs of one model on one platform
 * whose times per token differ by more than 2 %.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/validate.h"

static const double PAIR_DIFFERS = 0.02;

/* The rows of one platform, or of all. */
struct sample {
    const struct validated_row **rows;
    double *scratch; /* room for as many numbers */
    uint32_t n;
};

static int order(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_doubles(const void *a, const void *b)
{
    return order(*(const double *)a, *(const double *)b);
}

/* Of the first n numbers of scratch, which it sorts; NAN of none. */
static double percentile(double *scratch, uint32_t n, double share)
{
    if (n == 0)
        return NAN;
    qsort(scratch, n, sizeof *scratch, compare_doubles);
    const uint32_t rank = (uint32_t)ceil(share * n);
    return scratch[rank > 0 ? rank - 1 : 0];
}

static double mean_of(const double *numbers, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += numbers[i];
    return n > 0 ? sum / n : NAN;
}

static double percent_of(uint32_t part, uint32_t whole)
{
    return whole > 0 ? 100.0 * part / whole : NAN;
}

static void count_errors(const struct sample *sample, struct platform_stats *out)
{
    double *errors = sample->scratch;

    for (uint32_t i = 0; i < sample->n; i++)
        errors[i] = sample->rows[i]->error_pct;
    out->bias = mean_of(errors, sample->n);
    for (uint32_t i = 0; i < sample->n; i++)
        errors[i] = fabs(errors[i]);
    out->mean = mean_of(errors, sample->n);
    out->median = percentile(errors, sample->n, 0.5);
    out->p90 = percentile(errors, sample->n, 0.9);
    out->max = percentile(errors, sample->n, 1);
}

/* The same of rows that have memory to spare. */
static void count_clear(const struct sample *sample, struct platform_stats *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < sample->n; i++)
        if (!sample->rows[i]->near_memory_limit)
            sample->scratch[n++] = fabs(sample->rows[i]->error_pct);
    out->n_near_limit = sample->n - n;
    out->clear_mean = mean_of(sample->scratch, n);
    out->clear_p90 = percentile(sample->scratch, n, 0.9);
    out->clear_max = percentile(sample->scratch, n, 1);
}

static double per_token(const struct validated_row *row, double seconds)
{
    const struct measured_run *run = row->run;
    return seconds / ((double)run->micro_batch * (double)run->seq_len * (double)run->grad_accum);
}

static bool is_pair(const struct validated_row *a, const struct validated_row *b)
{
    const double x = per_token(a, a->run->step_s), y = per_token(b, b->run->step_s);

    return !strcmp(a->run->model, b->run->model) && !strcmp(a->run->platform, b->run->platform) &&
           fabs(x - y) > PAIR_DIFFERS * fmin(x, y);
}

static void count_ranks(const struct sample *sample, struct platform_stats *out)
{
    uint32_t right = 0;

    for (uint32_t i = 0; i < sample->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            const struct validated_row *a = sample->rows[i], *b = sample->rows[j];
            if (!is_pair(a, b))
                continue;
            out->n_pair++;
            right += order(per_token(a, a->run->step_s), per_token(b, b->run->step_s)) ==
                     order(per_token(a, a->predicted_s), per_token(b, b->predicted_s));
        }
    out->rank = percent_of(right, out->n_pair);
}

static void count_intervals(const struct sample *sample, struct platform_stats *out)
{
    uint32_t inside = 0;

    for (uint32_t i = 0; i < sample->n; i++) {
        const struct validated_row *row = sample->rows[i];
        inside += row->low_s <= row->run->step_s && row->run->step_s <= row->high_s;
        sample->scratch[i] = 100 * (row->high_s - row->low_s) / row->predicted_s;
    }
    out->coverage = percent_of(inside, sample->n);
    out->width = percentile(sample->scratch, sample->n, 0.5);
}

static void count_peaks(const struct sample *sample, struct platform_stats *out)
{
    for (uint32_t i = 0; i < sample->n; i++)
        if (!isnan(sample->rows[i]->peak_error_pct))
            sample->scratch[out->n_peak++] = fabs(sample->rows[i]->peak_error_pct);
    out->peak_mean = mean_of(sample->scratch, out->n_peak);
    out->peak_max = percentile(sample->scratch, out->n_peak, 1);
}

/* Which rows, of those that count. */
struct choice {
    const char *name, *platform; /* platform NULL: of every one */
    bool near_limit, clear;      /* rows near the memory limit, and the others */
};

static bool is_chosen(const struct choice *choice, const struct validated_row *row)
{
    return row->counts && (row->near_memory_limit ? choice->near_limit : choice->clear) &&
           (!choice->platform || !strcmp(row->run->platform, choice->platform));
}

static struct platform_stats count(const struct validation *validation, struct choice choice,
                                   struct sample *sample)
{
    struct platform_stats out = {.platform = choice.name};

    sample->n = 0;
    for (uint32_t i = 0; i < validation->n; i++)
        if (is_chosen(&choice, &validation->rows[i]))
            sample->rows[sample->n++] = &validation->rows[i];
    out.n = sample->n;
    count_errors(sample, &out);
    count_clear(sample, &out);
    count_ranks(sample, &out);
    count_intervals(sample, &out);
    count_peaks(sample, &out);
    return out;
}

static bool is_first_of_platform(const struct validation *validation, uint32_t row)
{
    for (uint32_t i = 0; i < row; i++)
        if (!strcmp(validation->rows[i].run->platform, validation->rows[row].run->platform))
            return false;
    return true;
}

/* Of all platforms together; behind them, the last one of every row. */
static const struct choice totals[] = {{"near the memory limit", NULL, true, false},
                                       {"memory to spare", NULL, false, true},
                                       {"all", NULL, true, true}};
enum { N_TOTAL = sizeof totals / sizeof *totals };

void validate_count(struct validation *validation, struct arena *arena)
{
    struct sample sample = {
        .rows = arena_array(arena, const struct validated_row *, validation->n),
        .scratch = arena_array(arena, double, validation->n),
    };

    validation->platforms = arena_array(arena, struct platform_stats, validation->n + N_TOTAL);
    validation->n_platform = 0;
    validation->within = true;
    for (uint32_t i = 0; i < validation->n; i++) {
        const char *platform = validation->rows[i].run->platform;
        if (!is_first_of_platform(validation, i))
            continue;
        const struct choice own = {platform, platform, true, true};
        const struct platform_stats stats = count(validation, own, &sample);
        validation->platforms[validation->n_platform++] = stats;
        if (stats.n > 0 && stats.mean > validation->tolerance_pct)
            validation->within = false;
    }
    for (int i = 0; i < N_TOTAL; i++)
        validation->platforms[validation->n_platform++] = count(validation, totals[i], &sample);
}
