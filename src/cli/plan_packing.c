/*
 * Compared plans once more where they differ in behavior or arrangement: what each spends on copies
 * and packing, and whether that was measured anywhere.
 */
#include <stdio.h>
#include <string.h>

#include "src/cli/plan_report.h"
#include "src/cli/plan_scale.h"
#include "src/json.h"

static bool differ(const struct plan_report *report)
{
    return plan_lists_vary(&report->lists, OPTION_BEHAVIOR) ||
           plan_lists_vary(&report->lists, OPTION_ARRANGE);
}

struct scales {
    struct plan_scale copy, bytes;
};

static struct scales choose_scales(const struct plan_report *report)
{
    uint64_t least_ns = UINT64_MAX, most_ns = 0, most_bytes = 0;
    for (uint32_t i = 0; i < report->n_row; i++) {
        const struct packing *p = &report->rows[i].packing;
        const uint64_t ns = (uint64_t)p->copy_in_ns;
        if (report->rows[i].refused)
            continue;
        least_ns = ns > 0 && ns < least_ns ? ns : least_ns;
        most_ns = (uint64_t)p->pack_ns > most_ns ? (uint64_t)p->pack_ns : most_ns;
        most_bytes = p->temporary_bytes > most_bytes ? p->temporary_bytes : most_bytes;
    }
    return (struct scales){plan_scale_ns(least_ns < most_ns ? least_ns : most_ns, most_ns),
                           plan_scale_bytes(most_bytes, most_bytes)};
}

static void add_row(const struct plan_row *row, const struct scales *scales, struct text *out)
{
    const struct packing *p = &row->packing;
    const enum behavior behavior = (enum behavior)option_number(&row->options, OPTION_BEHAVIOR);

    text_add(out, "%3u  %-15s %-9s", row->rank, behavior_name(behavior),
             option_text(&row->options, OPTION_ARRANGE));
    text_add(out, " %6u %6u", p->n_all_gather, p->n_reduce_scatter);
    text_add(out, " %9.*f %9.*f %9.*f", scales->copy.decimals,
             (double)p->copy_in_ns / scales->copy.size, scales->copy.decimals,
             (double)p->copy_out_ns / scales->copy.size, scales->copy.decimals,
             (double)p->pack_ns / scales->copy.size);
    text_add(out, " %10.*f  %s\n", scales->bytes.decimals,
             (double)p->temporary_bytes / scales->bytes.size, packing_measured_on(behavior));
}

void plan_report_packing(const struct plan_report *report, const struct term *term,
                         struct text *out)
{
    if (!differ(report))
        return;
    const struct scales scales = choose_scales(report);
    char bytes[32];
    snprintf(bytes, sizeof bytes, "temp, %s", scales.bytes.unit);
    text_add(out, "\n%scopies of a step, %s, and what they need beside their buffers%s\n",
             term->quiet, scales.copy.unit, term->plain);
    text_add(out, "%s     %-15s %-9s %6s %6s %9s %9s %9s %10s  %s%s\n", term->quiet, "behavior",
             "arrange", "gather", "reduce", "copy-in", "copy-out", "packing", bytes, "prices",
             term->plain);
    for (uint32_t i = 0; i < report->n_row; i++)
        if (!report->rows[i].refused)
            add_row(&report->rows[i], &scales, out);
}

void plan_row_packing_json(const struct plan_row *row)
{
    const struct packing *p = &row->packing;
    struct cJSON *object = json_add_object(row->json, "copies");

    json_add_int(object, "copy_in_ns", p->copy_in_ns);
    json_add_int(object, "copy_out_ns", p->copy_out_ns);
    json_add_int(object, "packing_ns", p->pack_ns);
    json_add_u64(object, "temporary_bytes", p->temporary_bytes);
    json_add_u64(object, "all_gathers", p->n_all_gather);
    json_add_u64(object, "reduce_scatters", p->n_reduce_scatter);
    json_add_string(
        object, "prices_measured_on",
        packing_measured_on((enum behavior)option_number(&row->options, OPTION_BEHAVIOR)));
}
