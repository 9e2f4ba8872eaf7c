/*
 * Measured runs beside their predictions as JSON, "unshard.validate/1"; see validate.h. What a row
 * does not have is null.
 */
#include "src/cli/sim_report.h"
#include "src/cli/validate.h"
#include "src/json.h"

enum { SECONDS_DIGITS = 6, PERCENT_DECIMALS = 2 };

static void add_percent(struct cJSON *object, const char *key, double value)
{
    json_add_decimal(object, key, value, PERCENT_DECIMALS);
}

static void add_text(struct cJSON *object, const char *key, const char *text)
{
    if (text)
        json_add_string(object, key, text);
}

static void add_row(const struct validated_row *row, struct cJSON *rows)
{
    struct cJSON *object = json_add_object(rows, NULL);

    json_add_string(object, "id", row->run->id);
    json_add_string(object, "platform", row->run->platform);
    json_add_string(object, "split", row->run->split);
    json_add_string(object, "trust", row->run->trust);
    json_add_number(object, "measured_s", row->run->step_s, SECONDS_DIGITS);
    json_add_number(object, "predicted_s", row->predicted_s, SECONDS_DIGITS);
    json_add_number(object, "low_s", row->low_s, SECONDS_DIGITS);
    json_add_number(object, "high_s", row->high_s, SECONDS_DIGITS);
    add_percent(object, "error_pct", row->error_pct);
    json_add_bool(object, "near_memory_limit", row->near_memory_limit);
    add_percent(object, "peak_gib", row->peak_gib);
    add_percent(object, "peak_error_pct", row->peak_error_pct);
    json_add_bool(object, "counts", row->counts);
    add_text(object, "reason", row->reason);
    sim_report_left_json(&row->left, "leaves_table", object);
    add_text(object, "command", row->command);
}

static void add_platform(const struct platform_stats *stats, struct cJSON *platforms)
{
    struct cJSON *object = json_add_object(platforms, NULL);

    json_add_string(object, "platform", stats->platform);
    json_add_u64(object, "n", stats->n);
    if (stats->n < VALIDATE_MIN_ROWS)
        return;
    add_percent(object, "mean_pct", stats->mean);
    add_percent(object, "median_pct", stats->median);
    add_percent(object, "p90_pct", stats->p90);
    add_percent(object, "max_pct", stats->max);
    add_percent(object, "bias_pct", stats->bias);
    json_add_u64(object, "near_memory_limit", stats->n_near_limit);
    add_percent(object, "clear_mean_pct", stats->clear_mean);
    add_percent(object, "clear_p90_pct", stats->clear_p90);
    add_percent(object, "clear_max_pct", stats->clear_max);
    json_add_u64(object, "pairs", stats->n_pair);
    add_percent(object, "rank_pct", stats->rank);
    add_percent(object, "coverage_pct", stats->coverage);
    add_percent(object, "width_pct", stats->width);
    json_add_u64(object, "peaks", stats->n_peak);
    add_percent(object, "peak_mean_pct", stats->peak_mean);
    add_percent(object, "peak_max_pct", stats->peak_max);
}

void validate_json(const struct validation *validation, struct text *out)
{
    struct cJSON *root = json_new_object();

    json_add_string(root, "schema", "unshard.validate/1");
    json_add_string(root, "file", validation->file);
    add_text(root, "without", validation->without);
    struct cJSON *rows = json_add_array(root, "rows");
    for (uint32_t i = 0; i < validation->n; i++)
        add_row(&validation->rows[i], rows);
    struct cJSON *platforms = json_add_array(root, "platforms");
    for (uint32_t i = 0; i < validation->n_platform; i++)
        add_platform(&validation->platforms[i], platforms);
    json_print(root, out);
    json_free(root);
}
