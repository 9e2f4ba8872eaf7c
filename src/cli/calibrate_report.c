/*
 * `unshard calibrate --from runs`: what moved and what that is worth, as text and as JSON,
 * "unshard.calibrate/1".
 *
 * Errors are those of the rows that were fitted, by presets and by what was fitted; how good it is on
 * others, `unshard validate --calibrated --split test` says.
 */
#include <math.h>
#include <string.h>

#include "src/cli/calibrate.h"
#include "src/cli/calibrate_runs.h"

enum { NAME_COLUMNS = 34, NUMBER_DIGITS = 4, PERCENT_DECIMALS = 2 };

/* The file's number of the mid. */
static double mid_of(const struct cluster *cluster, const struct fit_rate *rate)
{
    const struct rate_field *field = fit_field(rate);
    return cluster_rate(cluster, field)->at[SPREAD_MID] / field->unit;
}

/* ---- text ------------------------------------------------------------------------------------------ */

static void add_constant(const struct machine_fit *fit, const struct fit_rate *rate,
                         struct text *out)
{
    const struct rate_field *field = fit_field(rate);
    const int columns = NAME_COLUMNS - (int)strlen(field->section) - 1;

    text_add(out, "  %s.%-*s%10.4g%10.4g\n", field->section, columns, field->key,
             mid_of(&fit->preset, rate), mid_of(&fit->fitted, rate));
}

static void add_errors(const char *of, const struct platform_stats *stats, struct text *out)
{
    text_add(out, "  errors of %-10s mean %.1f %%, median %.1f, p90 %.1f, worst %.1f, bias %+.1f\n",
             of, stats->mean, stats->median, stats->p90, stats->max, stats->bias);
}

static void add_fit(const struct machine_fit *fit, struct text *out)
{
    text_add(out, "\n%s, %s: %u run%s", fit->platform, fit->gpu, fit->n, fit->n == 1 ? "" : "s");
    if (fit->n_near_limit > 0)
        text_add(out, ", %u near the memory limit, which weigh a quarter", fit->n_near_limit);
    text_add(out, "\n  %-*s%10s%10s\n", NAME_COLUMNS, "constant", "preset", "fitted");
    for (uint32_t i = 0; i < n_fit_rates; i++)
        if (machine_fit_moves(fit, &fit_rates[i]))
            add_constant(fit, &fit_rates[i], out);
    add_errors("presets", &fit->before, out);
    add_errors("the fit", &fit->after, out);
    text_add(out, "  %s: low to high %.1f %% about mid\n", fit->path, 100 * fit->spread);
}

void calibration_text(const struct calibration *c, struct text *out)
{
    for (uint32_t i = 0; i < c->presets.n; i++) {
        const char *reason = calibration_reason(&c->presets.rows[i]);
        if (reason)
            text_add(out, "%s is not fitted: %s\n", c->presets.rows[i].run->id, reason);
    }
    for (uint32_t i = 0; i < c->n_fit; i++)
        add_fit(&c->fits[i], out);
}

/* ---- JSON ------------------------------------------------------------------------------------------ */

static void put_errors(const char *key, const struct platform_stats *stats, struct cJSON *parent)
{
    struct cJSON *object = json_add_object(parent, key);

    json_add_decimal(object, "mean_pct", stats->mean, PERCENT_DECIMALS);
    json_add_decimal(object, "median_pct", stats->median, PERCENT_DECIMALS);
    json_add_decimal(object, "p90_pct", stats->p90, PERCENT_DECIMALS);
    json_add_decimal(object, "max_pct", stats->max, PERCENT_DECIMALS);
    json_add_decimal(object, "bias_pct", stats->bias, PERCENT_DECIMALS);
}

static void put_constant(const struct machine_fit *fit, const struct fit_rate *rate,
                         struct arena *arena, struct cJSON *constants)
{
    const struct rate_field *field = fit_field(rate);
    struct cJSON *object = json_add_object(constants, NULL);

    json_add_string(object, "constant", arena_printf(arena, "%s.%s", field->section, field->key));
    json_add_number(object, "preset", mid_of(&fit->preset, rate), NUMBER_DIGITS);
    json_add_number(object, "fitted", mid_of(&fit->fitted, rate), NUMBER_DIGITS);
}

static void put_fit(const struct machine_fit *fit, struct arena *arena, struct cJSON *fits)
{
    struct cJSON *object = json_add_object(fits, NULL);

    json_add_string(object, "platform", fit->platform);
    json_add_string(object, "gpu", fit->gpu);
    json_add_string(object, "file", fit->path);
    json_add_u64(object, "runs", fit->n);
    json_add_u64(object, "near_memory_limit", fit->n_near_limit);
    json_add_decimal(object, "spread_pct", 100 * fit->spread, PERCENT_DECIMALS);
    struct cJSON *constants = json_add_array(object, "constants");
    for (uint32_t i = 0; i < n_fit_rates; i++)
        if (machine_fit_moves(fit, &fit_rates[i]))
            put_constant(fit, &fit_rates[i], arena, constants);
    put_errors("errors_presets", &fit->before, object);
    put_errors("errors_fitted", &fit->after, object);
}

static void put_reason(const struct validated_row *row, struct cJSON *rows)
{
    struct cJSON *object;

    if (!calibration_reason(row))
        return;
    object = json_add_object(rows, NULL);
    json_add_string(object, "id", row->run->id);
    json_add_string(object, "reason", calibration_reason(row));
}

void calibration_json(const struct calibration *c, struct text *out)
{
    struct cJSON *root = json_new_object();

    json_add_string(root, "schema", "unshard.calibrate/1");
    struct cJSON *fits = json_add_array(root, "fits");
    for (uint32_t i = 0; i < c->n_fit; i++)
        put_fit(&c->fits[i], c->arena, fits);
    struct cJSON *rows = json_add_array(root, "not_fitted");
    for (uint32_t i = 0; i < c->presets.n; i++)
        put_reason(&c->presets.rows[i], rows);
    json_print(root, out);
    json_free(root);
}

/* ---- the source of the command --------------------------------------------------------------------- */

/* All but those that may only be looked at. */
static void take_rows(const struct measured *measured, struct arena *arena, struct validation *out)
{
    out->rows = arena_array(arena, struct validated_row, measured->n);
    for (uint32_t i = 0; i < measured->n; i++)
        if (strcmp(measured->runs[i].split, "test") != 0)
            out->rows[out->n++].run = &measured->runs[i];
}

static enum status check(const struct options *options, struct err *err)
{
    const char *folder = option_text(options, OPTION_OUTPUT);

    if (!folder || !strcmp(folder, "-"))
        return err_set(err, STATUS_USAGE,
                       "-o DIR is needed: a folder for a cluster file a platform");
    if (options->operands[1])
        return err_set(err, STATUS_USAGE, "'%s': --from runs reads one table",
                       options->operands[1]);
    return STATUS_OK;
}

enum status calibrate_from_runs(const struct options *options, struct arena *arena,
                                struct output *out, struct err *err)
{
    const char *path = options->operands[0], *slash = strrchr(path, '/');
    struct calibration c = {.folder = option_text(options, OPTION_OUTPUT),
                            .file = slash ? slash + 1 : path,
                            .arena = arena,
                            .presets = {.file = path, .tolerance_pct = NAN}};
    struct measured measured;
    enum status status;

    if ((status = check(options, err)) || (status = measured_read(path, arena, &measured, err)))
        return status;
    take_rows(&measured, arena, &c.presets);
    if ((status = validate_rows(NULL, arena, &c.presets, err)) ||
        (status = calibration_run(&c, err)))
        return status;
    if (option_given(options, OPTION_JSON))
        calibration_json(&c, &out->result);
    else
        calibration_text(&c, &out->result);
    return STATUS_OK;
}
