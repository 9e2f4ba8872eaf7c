/*
 * A machine's cluster: the preset, with what was fitted in its place; see calibrate_runs.h.
 */
#include <math.h>
#include <string.h>

#include "src/cli/calibrate_runs.h"

/* The first and the last date of the rows that have one. */
static const char *dates_of(const struct machine_fit *fit, struct arena *arena)
{
    const char *first = "", *last = "";

    for (uint32_t r = 0; r < fit->n; r++) {
        const char *date = fit->rows[r]->run->date;
        if (*date && (!*first || strcmp(date, first) < 0))
            first = date;
        last = strcmp(date, last) > 0 ? date : last;
    }
    if (!strcmp(first, last))
        return *first ? arena_printf(arena, " of %s", first) : "";
    return arena_printf(arena, " of %s to %s", first, last);
}

bool machine_fit_moves(const struct machine_fit *fit, const struct fit_rate *rate)
{
    return fit->moves[rate->constant] &&
           (rate->attention == ATTENTION_N || fit->attention[rate->attention]);
}

/* Ends as far apart as runs lie: all rates at one end make a step that much shorter or longer. */
static struct rate fitted_rate(const struct machine_fit *fit, const struct fit_rate *of,
                               const struct rate *preset, const char *source)
{
    const struct rate_field *field = fit_field(of);
    const double mid = preset->at[SPREAD_MID] * exp(fit->x[of->constant]);
    const double up = mid * (1 + fit->spread), down = mid / (1 + fit->spread);

    return (struct rate){
        .at = {field->more_is_faster ? up : down, mid, field->more_is_faster ? down : up},
        .source = source,
        .valid = preset->valid,
        .n_valid = preset->n_valid};
}

static void set_rate(struct machine_fit *fit, const struct fit_rate *of, const char *runs,
                     struct arena *arena)
{
    const struct rate_field *field = fit_field(of);
    const struct rate *preset = cluster_rate(&fit->preset, field);
    const char *source =
        arena_printf(arena, "fitted to %s, nine in ten of which lie within %.1f %%; preset %.4g",
                     runs, 100 * fit->spread, preset->at[SPREAD_MID] / field->unit);

    *fit_rate_of(&fit->fitted, of) = fitted_rate(fit, of, preset, source);
}

enum status machine_fit_clusters(struct machine_fit *fit, const char *file, struct arena *arena,
                                 struct err *err)
{
    const char *runs = arena_printf(arena, "%u runs of %s%s in %s", fit->n, fit->platform,
                                    dates_of(fit, arena), file);
    const enum status status = cluster_open(fit->gpu, arena, &fit->preset, err);

    if (status != STATUS_OK)
        return status;
    fit->fitted = fit->preset;
    fit->fitted.name = fit->platform;
    fit->fitted.description = arena_printf(arena, "%s as in %s", fit->gpu, runs);
    for (uint32_t i = 0; i < n_fit_rates; i++)
        if (machine_fit_moves(fit, &fit_rates[i]))
            set_rate(fit, &fit_rates[i], runs, arena);
    if (fit->moves[FIT_NIC]) {
        struct rate *nic = &fit->fitted.nic_bytes_per_s;
        nic->at[SPREAD_LOW] = nic->at[SPREAD_HIGH] = nic->at[SPREAD_MID];
        nic->source = "nominal: what the fitted efficiency is a share of";
    }
    return STATUS_OK;
}
