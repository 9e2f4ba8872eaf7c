/*
 * Measured runs beside their predictions as tables of Markdown, for doc/accuracy.md; see
 * validate.h. Measured times are not repeated: they are a third party's.
 */
#include <math.h>

#include "src/cli/validate.h"

static void add_number(double value, int decimals, struct text *out)
{
    if (isnan(value))
        text_add(out, " - |");
    else
        text_add(out, " %.*f |", decimals, value);
}

static void add_platform(const struct platform_stats *stats, struct text *out)
{
    const double nothing = NAN;
    const bool few = stats->n < VALIDATE_MIN_ROWS;

    text_add(out, "| %s | %u |", stats->platform, stats->n);
    add_number(few ? nothing : stats->mean, 1, out);
    add_number(few ? nothing : stats->median, 1, out);
    add_number(few ? nothing : stats->p90, 1, out);
    add_number(few ? nothing : stats->max, 1, out);
    add_number(few ? nothing : stats->bias, 1, out);
    add_number(few ? nothing : stats->clear_mean, 1, out);
    add_number(few ? nothing : stats->rank, 1, out);
    add_number(few ? nothing : stats->coverage, 0, out);
    add_number(few ? nothing : stats->width, 0, out);
    text_add(out, "\n");
}

static void add_flag(bool holds, const char *words, struct text *out)
{
    if (holds)
        text_add(out, " %s", words);
}

static void add_row(const struct validated_row *row, struct text *out)
{
    text_add(out, "| %s | %s |", row->run->id, row->run->split);
    add_number(row->predicted_s, 3, out);
    add_number(row->low_s, 3, out);
    add_number(row->high_s, 3, out);
    add_number(row->error_pct, 1, out);
    add_number(row->peak_gib, 1, out);
    add_number(row->peak_error_pct, 1, out);
    add_flag(row->near_memory_limit, "near the limit", out);
    add_flag(row->left.n > 0, "outside", out);
    add_flag(!row->counts, "low trust", out);
    text_add(out, " |\n");
}

void validate_markdown(const struct validation *validation, struct text *out)
{
    text_add(out, "| platform | rows | mean %% | median | p90 | worst | bias | mean, memory to "
                  "spare | pairs ranked | inside | width |\n"
                  "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < validation->n_platform; i++)
        add_platform(&validation->platforms[i], out);
    text_add(out, "\n| row | split | predicted s | low | high | error %% | peak GiB | error %% | "
                  "|\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < validation->n; i++)
        if (!validation->rows[i].reason)
            add_row(&validation->rows[i], out);
    text_add(out, "\n| row | why it is not predicted |\n| --- | --- |\n");
    for (uint32_t i = 0; i < validation->n; i++)
        if (validation->rows[i].reason)
            text_add(out, "| %s | %s |\n", validation->rows[i].run->id, validation->rows[i].reason);
}
