/*
 * A comparison as JSON, schema "unshard.compare/1". Fields may be added, never renamed.
 *
 * What there are two of is an array in the order of the runs; null is what a run has not.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "src/cli/compare.h"
#include "src/json.h"

static void add_text(struct cJSON *parent, const char *key, const char *value)
{
    if (value)
        json_add_string(parent, key, value);
    else
        json_add_real(parent, key, NAN); /* what is not finite is null */
}

static void add_metric(struct cJSON *parent, const char *key, int64_t value)
{
    if (value == RUN_NO_METRIC)
        json_add_real(parent, key, NAN);
    else
        json_add_int(parent, key, value);
}

static void add_hash(struct cJSON *parent, const char *key, uint64_t hash)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    json_add_string(parent, key, text);
}

static void add_run(const struct stored_run *stored, struct cJSON *runs)
{
    const struct run *run = &stored->run;
    struct cJSON *object = json_add_object(runs, NULL);
    json_add_int(object, "run_id", stored->id);
    json_add_string(object, "kind", run_kind_name(run->kind));
    json_add_string(object, "command", run->command);
    json_add_string(object, "model", run->model);
    json_add_string(object, "cluster", run->cluster);
    json_add_u64(object, "gpus", run->world);
    json_add_u64(object, "units", run->n_unit);
    json_add_u64(object, "tasks", run->n_task);
    add_hash(object, "program_hash", run->program_hash);
    add_hash(object, "placement_hash", run->placement_hash);
    add_text(object, "device", run->real.device);
    add_text(object, "transport", run->real.transport);
    add_text(object, "error", run->real.error);
}

static void add_options(const struct comparison *comparison, struct cJSON *root)
{
    struct cJSON *array = json_add_array(root, "options");
    for (uint32_t i = 0; i < comparison->n_option; i++) {
        struct cJSON *object = json_add_object(array, NULL);
        json_add_string(object, "name", comparison->options[i].name);
        struct cJSON *values = json_add_array(object, "values");
        for (int r = 0; r < COMPARE_RUNS; r++)
            add_text(values, NULL, comparison->options[i].values[r]);
    }
}

/* Both values, their difference, and that in percent of the second. */
static void add_pair(const struct comparison *comparison, struct cJSON *object, const char *key,
                     const int64_t values[COMPARE_RUNS])
{
    const bool both = values[0] != RUN_NO_METRIC && values[1] != RUN_NO_METRIC;
    struct cJSON *array = json_add_array(object, key);
    for (int i = 0; i < COMPARE_RUNS; i++)
        add_metric(array, NULL, values[i]);
    add_metric(object, "difference", both ? compare_difference(values) : RUN_NO_METRIC);
    json_add_decimal(object, "error_pct", both ? compare_error_pct(comparison, values) : NAN, 4);
}

static void add_metrics(const struct comparison *comparison, struct cJSON *root)
{
    struct cJSON *parent = json_add_object(root, "metrics");
    for (int i = 0; i < RUN_METRIC_N; i++) {
        const int64_t values[] = {comparison->runs[0].run.metrics[i],
                                  comparison->runs[1].run.metrics[i]};
        add_pair(comparison, json_add_object(parent, run_metric_name((enum run_metric)i)), "values",
                 values);
    }
}

static void add_paired(const struct compare_paired *paired, struct cJSON *root)
{
    if (!paired)
        return;
    struct cJSON *object = json_add_object(root, "paired");
    add_text(object, "unknown", paired->unknown);
    if (paired->unknown)
        return;
    json_add_int(object, "step_difference_ns", paired->apart_ns);
    json_add_int(object, "uncertainty_ns", paired->uncertainty_ns);
    json_add_bool(object, "tied", paired->tie);
}

static void add_kinds(const struct comparison *comparison, struct cJSON *root)
{
    struct cJSON *parent = json_add_object(root, "kinds");
    for (int i = 0; i < TASK_KIND_N; i++) {
        const struct compare_kind *kind = &comparison->kinds[i];
        if (kind->n[0] == 0 && kind->n[1] == 0)
            continue;
        struct cJSON *object = json_add_object(parent, task_kind_name((enum task_kind)i));
        struct cJSON *counts = json_add_array(object, "tasks");
        for (int r = 0; r < COMPARE_RUNS; r++)
            json_add_u64(counts, NULL, kind->n[r]);
        add_pair(comparison, object, "duration_ns", kind->ns);
    }
}

static void add_tasks(const struct comparison *comparison, struct cJSON *root)
{
    struct cJSON *array = json_add_array(root, "tasks");
    for (uint32_t i = 0; i < comparison->n_task; i++) {
        const struct compare_task *task = &comparison->tasks[i];
        const struct run_task *named = &comparison->runs[0].run.tasks[task->task];
        struct cJSON *object = json_add_object(array, NULL);
        json_add_u64(object, "task", task->task);
        json_add_string(object, "name", named->name);
        json_add_string(object, "kind", task_kind_name(named->kind));
        add_pair(comparison, object, "duration_ns", task->ns);
    }
}

void compare_json(const struct comparison *comparison, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.compare/1");
    struct cJSON *runs = json_add_array(root, "runs");
    for (int i = 0; i < COMPARE_RUNS; i++)
        add_run(&comparison->runs[i], runs);
    json_add_bool(root, "same_program", comparison->same_program);
    json_add_bool(root, "same_placement", comparison->same_placement);
    json_add_bool(root, "same_model", comparison->same_model);
    json_add_bool(root, "same_cluster", comparison->same_cluster);
    add_options(comparison, root);
    add_metrics(comparison, root);
    add_paired(comparison->paired, root);
    add_kinds(comparison, root);
    add_text(root, "not_matched", comparison->not_matched);
    add_tasks(comparison, root);
    json_print(root, out);
    json_free(root);
}
