/*
 * An explanation as JSON, schema "unshard.explain/1". Fields may be added, never renamed.
 */
#include <stdio.h>

#include "src/cli/explain_report.h"

static void add_run(const struct explain_report *report, struct cJSON *root)
{
    if (!report->stored)
        return;
    struct cJSON *run = json_add_object(root, "run");
    json_add_int(run, "id", report->stored->id);
    json_add_int(run, "step_ns", report->stored->run.metrics[RUN_METRIC_STEP]);
    json_add_bool(run, "same_program",
                  stored_run_same_program(report->stored, report->step.prepared));
    json_add_bool(run, "same_cluster",
                  stored_run_same_cluster(report->stored, report->step.prepared));
}

static void add_subject(const struct explain_report *report, struct cJSON *root)
{
    const struct prepared *prepared = report->step.prepared;
    const struct step_time *time = report->step.time;
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)program_hash(&prepared->program));
    json_add_string(root, "program_hash", hash);
    json_add_string(root, "model", prepared->model.name);
    json_add_string(root, "cluster", prepared->cluster.name);
    prepared_options_json(report->step.options, root);
    struct cJSON *step = json_add_object(root, "step_ns");
    json_add_int(step, "low", time[SPREAD_LOW].step_ns);
    json_add_int(step, "mid", time[SPREAD_MID].step_ns);
    json_add_int(step, "high", time[SPREAD_HIGH].step_ns);
    json_add_int(root, "explained_ns", report->explained_ns);
}

static void add_kinds(const int64_t *ns, const char *key, struct cJSON *parent)
{
    struct cJSON *object = json_add_object(parent, key);
    for (unsigned kind = 0; kind < TASK_KIND_N; kind++) {
        if (ns[kind] > 0)
            json_add_int(object, task_kind_name((enum task_kind)kind), ns[kind]);
    }
}

static void add_parts(const int64_t *ns, const char *key, struct cJSON *parent)
{
    struct cJSON *object = json_add_object(parent, key);
    for (unsigned cause = 0; cause < STALL_CAUSE_N; cause++) {
        if (ns[cause] > 0)
            json_add_int(object, stall_cause_name((enum stall_cause)cause), ns[cause]);
    }
}

static void add_stalls(const struct explain_report *report, struct cJSON *root)
{
    struct cJSON *array = json_add_array(root, "stalls");
    for (uint32_t i = 0; i < report->stalls.n; i++) {
        const struct stall *stall = &report->stalls.at[i];
        char name[PROGRAM_NAME_MAX];
        struct cJSON *object = json_add_object(array, NULL);
        json_add_int(object, "begin_ns", stall->begin_ns - report->begin_ns);
        json_add_int(object, "end_ns", stall->end_ns - report->begin_ns);
        json_add_string(object, "of", explain_report_task(report, stall->span, name));
        json_add_bool(object, "inside", stall->inside);
        json_add_string(object, "cause", stall_cause_name((enum stall_cause)stall->cause));
        json_add_string(object, "held_by", explain_report_task(report, stall->holder, name));
        add_parts(stall->parts_ns, "parts_ns", object);
    }
}

static void add_remedies(const struct explain_report *report, struct cJSON *root)
{
    struct cJSON *array = json_add_array(root, "remedies");
    for (uint32_t i = 0; i < report->trials.n; i++) {
        const struct trial *trial = &report->trials.at[i];
        struct cJSON *object = json_add_object(array, NULL);
        json_add_string(object, "bottleneck", trial->bottleneck);
        json_add_string(object, "change", trial->change);
        json_add_int(object, "after_ns", trial->step_ns);
        json_add_int(object, "gain_ns", trial->gain_ns);
        json_add_bool(object, "fits", trial->fits);
    }
}

void explain_report_json(const struct explain_report *report, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.explain/1");
    add_run(report, root);
    add_subject(report, root);
    struct cJSON *path = json_add_object(root, "critical_path");
    add_kinds(report->path.device_ns, "device_ns", path);
    add_kinds(report->path.host_ns, "host_ns", path);
    json_add_int(path, "retries_ns", report->path.memory_ns);
    json_add_int(root, "idle_ns", report->stalls.idle_ns);
    add_parts(report->stalls.by_cause_ns, "idle_by_cause_ns", root);
    add_stalls(report, root);
    add_remedies(report, root);
    sim_report_what_if_json(&report->step, root);
    json_print(root, out);
    json_free(root);
}
