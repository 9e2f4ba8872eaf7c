/*
 * A real run as JSON, schema "unshard.run/1": the fields of unshard.sim/1, which are the prediction,
 * and what was measured. Fields may be added, never renamed.
 */
#include <math.h>

#include "src/cli/run_report.h"

enum { DIGITS = 9 };

static void add_ns_or_null(struct cJSON *parent, const char *key, int64_t ns)
{
    if (ns == RUN_NO_METRIC)
        json_add_number(parent, key, NAN, DIGITS);
    else
        json_add_int(parent, key, ns);
}

static void add_text_or_null(struct cJSON *parent, const char *key, const char *value)
{
    if (value)
        json_add_string(parent, key, value);
    else
        json_add_number(parent, key, NAN, DIGITS);
}

static void add_steps(const struct run_report *report, struct cJSON *root)
{
    struct cJSON *loss = json_add_array(root, "loss"), *not_finite, *skipped, *steps;

    for (uint32_t i = 0; i < report->real.n_step; i++)
        json_add_number(loss, NULL, report->real.steps[i].loss, DIGITS);
    steps = json_add_array(root, "steps_ns");
    for (uint32_t i = 0; i < report->real.n_step; i++)
        add_ns_or_null(steps, NULL,
                       report->real.steps[i].step_ns > 0 ? report->real.steps[i].step_ns
                                                         : RUN_NO_METRIC);
    not_finite = json_add_array(root, "not_finite");
    for (uint32_t i = 0; i < report->real.n_step; i++)
        json_add_u64(not_finite, NULL, report->real.steps[i].not_finite);
    skipped = json_add_array(root, "skipped");
    for (uint32_t i = 0; i < report->real.n_step; i++)
        json_add_bool(skipped, NULL, report->real.steps[i].skipped);
}

static void add_measured(const struct run_report *report, struct cJSON *root)
{
    struct cJSON *step = json_add_object(root, "measured_step_ns");
    const bool measured = report->has_tasks;

    add_ns_or_null(step, "min", report->min_ns);
    add_ns_or_null(step, "median", report->median_ns);
    add_ns_or_null(step, "max", report->max_ns);
    add_ns_or_null(root, "measured_compute_ns", measured ? report->time.compute_ns : RUN_NO_METRIC);
    add_ns_or_null(root, "measured_comm_ns", measured ? report->time.comm_ns : RUN_NO_METRIC);
    add_ns_or_null(root, "measured_exposed_comm_ns",
                   measured ? report->time.exposed_comm_ns : RUN_NO_METRIC);
    add_ns_or_null(root, "measured_bare_step_ns", report->bare_ns);
    add_ns_or_null(root, "host_instr_ns", report->host_instr_ns);
}

static const char *dtype_or_null(uint8_t dtype)
{
    return dtype == DTYPE_N ? NULL : dtype_name((enum dtype)dtype);
}

static void add_dtypes(const struct run_report *report, struct cJSON *root)
{
    const struct model *model = &report->sim->prepared->model;
    struct cJSON *params = json_add_array(root, "parameter_dtypes");

    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct seen_dtypes *seen = &report->dtypes[i];
        struct cJSON *object = json_add_object(params, NULL);
        json_add_string(object, "name", model->params[i].name);
        add_text_or_null(object, "storage", dtype_or_null(seen->storage));
        add_text_or_null(object, "compute", dtype_or_null(seen->compute));
        add_text_or_null(object, "gradient", dtype_or_null(seen->grad));
        add_text_or_null(object, "reduce", dtype_or_null(seen->reduce));
    }
}

static void add_checks(const struct run_report *report, struct cJSON *root)
{
    struct cJSON *checks = json_add_array(root, "memory_checks");

    for (uint32_t i = 0; i < report->real.n_check; i++) {
        const struct run_check *check = &report->real.checks[i];
        struct cJSON *object = json_add_object(checks, NULL);
        json_add_u64(object, "rank", check->rank);
        json_add_u64(object, "step", check->step);
        json_add_u64(object, "reserved_bytes", check->reserved_bytes);
        json_add_u64(object, "mapped_bytes", check->mapped_bytes);
    }
}

static void add_ranks(const struct run_report *report, struct cJSON *root)
{
    struct cJSON *ranks = json_add_array(root, "rank_ends");

    for (uint32_t r = 0; r < report->real.n_rank; r++) {
        const struct run_rank *rank = &report->real.ranks[r];
        struct cJSON *object = json_add_object(ranks, NULL), *last;
        add_text_or_null(object, "error", rank->error);
        json_add_u64(object, "step", rank->step);
        last = json_add_object(object, "last_task");
        for (int s = 0; s < STREAM_N; s++)
            if (rank->last_task[s])
                json_add_string(last, stream_name((enum stream)s), rank->last_task[s]);
    }
}

void run_report_json(const struct run_report *report, struct text *out)
{
    struct cJSON *root = json_new_object();

    json_add_string(root, "schema", "unshard.run/1");
    sim_report_fields(report->sim, root);
    json_add_string(root, "device", report->real.device);
    json_add_string(root, "transport", report->real.transport);
    json_add_u64(root, "ranks", report->log->ranks);
    json_add_u64(root, "emulated_ranks",
                 report->real.emulated ? report->sim->prepared->plan.world : 0);
    json_add_u64(root, "steps", report->real.n_step);
    json_add_u64(root, "warmup", report->real.warmup);
    json_add_u64(root, "seed", report->real.seed);
    add_text_or_null(root, "error", report->real.error);
    add_steps(report, root);
    add_measured(report, root);
    json_add_bool(root, "memory_agrees", report->memory_agrees);
    add_checks(report, root);
    add_dtypes(report, root);
    add_ranks(report, root);
    json_print(root, out);
    json_free(root);
}
