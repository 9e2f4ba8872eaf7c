/*
 * Compared plans as JSON, schema "unshard.plan/1". Fields may be added, never renamed.
 *
 * Rows are in the order of their ranks, the refused behind them with rank null. What a row has of
 * "unshard.sim/1" was added when it was simulated.
 */
#include <math.h>

#include "src/cli/plan_rank.h"
#include "src/cli/plan_report.h"
#include "src/json.h"

static void add_rank_or_null(struct cJSON *parent, const char *key, const struct plan_row *row)
{
    if (row && row->rank != PLAN_NO_RANK)
        json_add_u64(parent, key, row->rank);
    else
        json_add_number(parent, key, NAN, 1); /* what is not finite is written as null */
}

/* Against the plan of rank 1 at as many tokens, of those that have times. */
static void add_behind(const struct plan_row *first, const struct plan_row *row)
{
    if (row->refused)
        return;
    json_add_int(row->json, "behind_first_ns",
                 plan_row_step_ns(row, SPREAD_MID, first->tokens) - first->step_ns[SPREAD_MID]);
    json_add_int(row->json, "behind_first_uncertainty_ns",
                 plan_rows_uncertainty_ns(first, row, first->tokens));
}

static void add_row(const struct plan_row *first, struct plan_row *row, struct cJSON *rows)
{
    add_rank_or_null(row->json, "rank", row);
    add_behind(first, row);
    json_add_bool(row->json, "tied_with_first", row->tied);
    json_add_bool(row->json, "on_front", row->on_front);
    json_add_bool(row->json, "chosen_by_judge", row->chosen);
    json_add_bool(row->json, "needs_retries", row->retries); /* in any step */
    json_add_root(rows, NULL, row->json);
    row->json = NULL;
}

/* evaluated: plans that were judged; gap_pct: how much slower the first row is than any plan can be,
   null where no bound is known, or where the judge was no simulation. */
static void add_search(const struct plan_found *search, struct cJSON *root)
{
    const double first = (double)search->first_ns, least = (double)search->least_ns;
    const bool simulated = search->objective == OBJECTIVE_EVENTS;
    const bool optimal = simulated && search->whole && !search->stopped;

    if (!search->on)
        return;
    json_add_string(root, "judge", objective_name(search->objective));
    json_add_u64(root, "evaluated", search->judged);
    json_add_u64(root, "passed_over", search->passed_over);
    json_add_number(root, "space", search->space_size, 1);
    json_add_string(root, "status", optimal ? "optimal" : "bounded");
    json_add_number(root, "gap_pct",
                    optimal                               ? 0
                    : simulated && first > 0 && least > 0 ? 100 * fmax(first - least, 0) / least
                                                          : NAN,
                    3);
}

void plan_report_json(struct plan_report *report, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.plan/1");
    json_add_string(root, "model", report->model);
    json_add_u64(root, "parameters", report->parameters);
    json_add_string(root, "cluster", report->cluster);
    json_add_u64(root, "memory_limit_bytes", report->limit_bytes);
    add_search(&report->search, root);
    plan_find_json(&report->find, root);
    json_add_number(root, "tie_pct", 100 * PAIRED_LEAST_SHARE, 1);
    add_rank_or_null(root, "best", report->best);
    add_rank_or_null(root, "runner_up", report->runner_up);
    struct cJSON *front = json_add_array(root, "front"); /* ranks */
    for (uint32_t i = 0; i < report->n_row; i++) {
        if (report->rows[i].on_front)
            json_add_u64(front, NULL, report->rows[i].rank);
    }
    plan_relax_json(&report->relax, root);
    struct cJSON *rows = json_add_array(root, "rows");
    for (uint32_t i = 0; i < report->n_row; i++)
        add_row(&report->rows[0], &report->rows[i], rows);
    json_print(root, out);
    json_free(root);
}
