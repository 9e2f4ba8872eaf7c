/*
 * A simulated step as JSON, schema "unshard.sim/1". Fields may be added, never renamed.
 */
#include <math.h>
#include <stdio.h>

#include "src/cli/sim_report.h"

enum { DIGITS = 6 }; /* of a quotient, at least */

static void add_string_or_null(struct cJSON *parent, const char *key, const char *value)
{
    if (value)
        json_add_string(parent, key, value);
    else
        json_add_number(parent, key, NAN, DIGITS); /* what is not finite is written as null */
}

static void add_model(const struct sim_report *report, struct cJSON *root)
{
    const struct prepared *prepared = report->prepared;
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)program_hash(&prepared->program));
    json_add_string(root, "program_hash", hash);
    json_add_string(root, "model", prepared->model.name);
    json_add_u64(root, "parameters", prepared->model.n_element);
    json_add_u64(root, "units", prepared->plan.n_unit);
    json_add_string(root, "cluster", prepared->cluster.name);
    prepared_options_json(report->options, root);
}

void sim_report_left_json(const struct tables_left *left, const char *words_key,
                          struct cJSON *object)
{
    struct text words;
    text_init(&words);
    tables_left_text(left, &words);
    add_string_or_null(object, words_key, words.at);
    text_release(&words);
    struct cJSON *array = json_add_array(object, "tables_left");
    for (uint32_t i = 0; i < left->n; i++) {
        const struct table_left *table = &left->at[i];
        struct cJSON *range = json_add_object(array, NULL);
        json_add_string(range, "quantity", table->quantity);
        json_add_string(range, "tables", table->tables);
        if (table->has_range) {
            json_add_u64(range, "seen", table->seen);
            json_add_u64(range, "min", table->min);
        }
        if (table->has_range && table->max != UINT64_MAX)
            json_add_u64(range, "max", table->max);
        json_add_number(range, "widening", table->widening, DIGITS);
    }
}

static void add_time(const struct sim_report *report, struct cJSON *root)
{
    const struct step_time *mid = &report->time[SPREAD_MID];
    struct cJSON *step = json_add_object(root, "step_ns");
    json_add_int(step, "low", report->time[SPREAD_LOW].step_ns);
    json_add_int(step, "mid", mid->step_ns);
    json_add_int(step, "high", report->time[SPREAD_HIGH].step_ns);
    json_add_number(root, "tokens_per_s_per_gpu", report->tokens_per_s, DIGITS);
    json_add_number(root, "mfu_pct", report->mfu_pct, DIGITS);
    json_add_number(root, "hfu_pct", report->hfu_pct, DIGITS);
    json_add_number(root, "overlap_pct", report->overlap_pct, DIGITS);
    json_add_int(root, "exposed_comm_ns", mid->exposed_comm_ns);
    json_add_int(root, "comm_ns", mid->comm_ns);
    json_add_int(root, "contention_ns", mid->contention_ns);
    json_add_int(root, "compute_ns", mid->compute_ns);
    json_add_int(root, "retry_ns", sim_report_retry_ns(report));
    sim_report_left_json(&report->left, "prices_leave_table", root);
}

static void add_peaks(const struct sim_report *report, const struct place_step *step,
                      struct cJSON *parent)
{
    json_add_u64(parent, "peak_allocated_bytes", step->stats.peak_allocated);
    json_add_u64(parent, "peak_active_bytes", step->stats.peak_active);
    json_add_u64(parent, "peak_reserved_bytes", step->stats.peak_reserved);
    json_add_u64(parent, "peak_requested_bytes", step->stats.peak_requested);

    struct cJSON *peak = json_add_object(parent, "peak");
    json_add_string(peak, "phase", phase_name((enum phase)step->peak_phase));
    add_string_or_null(peak, "unit", sim_report_unit(report, step->peak_unit));
    struct cJSON *by_class = json_add_object(peak, "by_class");
    for (unsigned i = 0; i < CLASS_N; i++)
        json_add_u64(by_class, memory_class_name((enum memory_class)i),
                     step->stats.peak_by_class[i]);
}

static void add_largest(const struct sim_report *report, struct cJSON *root)
{
    if (report->n_largest == 0)
        return;
    struct cJSON *array = json_add_array(root, "largest_at_peak");
    for (uint32_t i = 0; i < report->n_largest; i++) {
        const struct alive *alive = &report->largest[i];
        struct cJSON *object = json_add_object(array, NULL);
        json_add_string(object, "name", alive->name);
        json_add_string(object, "class", memory_class_name((enum memory_class)alive->memory_class));
        json_add_u64(object, "count", alive->n);
        json_add_u64(object, "each_bytes", alive->each_bytes);
        json_add_u64(object, "units", alive->n_unit);
        add_string_or_null(object, "unit",
                           alive->n_unit == 1 ? sim_report_unit(report, alive->unit) : NULL);
    }
}

static void add_outside(const struct cluster *cluster, struct cJSON *root)
{
    struct cJSON *outside = json_add_object(root, "outside");
    json_add_u64(outside, "context_bytes", cluster->context_bytes);
    json_add_string(outside, "context_source", cluster->context_bytes_source);
    json_add_u64(outside, "communicator_bytes", cluster->communicator_bytes);
    json_add_string(outside, "communicator_source", cluster->communicator_bytes_source);
}

/* Where it ran out, or null. */
static void add_out_of_memory(const struct sim_report *report, struct cJSON *root)
{
    if (!report->unlimited) {
        add_string_or_null(root, "out_of_memory", NULL);
        return;
    }
    struct cJSON *object = json_add_object(root, "out_of_memory");
    json_add_u64(object, "step", report->oom_step);
    json_add_u64(object, "request_bytes", report->oom_bytes);
}

static void add_memory(const struct sim_report *report, struct cJSON *root)
{
    const uint64_t *pool_bytes = report->steady->stats.peak_reserved_by_pool;
    add_peaks(report, report->steady, root);
    add_largest(report, root);
    struct cJSON *pools = json_add_object(root, "reserved_by_pool");
    for (unsigned i = 0; i < STREAM_N; i++) {
        if (pool_bytes[i] > 0)
            json_add_u64(pools, stream_name((enum stream)i), pool_bytes[i]);
    }
    json_add_u64(root, "outside_bytes", report->outside_bytes);
    add_outside(&report->prepared->cluster, root);
    json_add_bool(root, "fits", report->fits);
    add_out_of_memory(report, root);
    json_add_bool(root, "near_limit", report->near_limit);
    json_add_u64(root, "memory_limit_bytes", report->limit_bytes);
    add_peaks(report, report->first, json_add_object(root, "first_step"));
    json_add_u64(root, "init_peak_bytes", report->init->stats.peak_reserved);
    json_add_u64(root, "memory_step", report->steps);
    json_add_u64(root, "time_step", report->time[SPREAD_MID].steps);
    json_add_u64(root, "time_steps", report->time[SPREAD_MID].measured);
    json_add_u64(root, "retries", retries_of_step(report->whole));
    json_add_u64(root, "withheld_bytes", report->withheld.bytes);
    json_add_u64(root, "withheld_retries", retries_of_step(report->withheld.retries));
    json_add_u64(root, "period", report->placement.period);
    json_add_bool(root, "memory_as_simulated", report->timed);

    struct cJSON *band = json_add_object(json_add_object(root, "uncertainty"), "reserved_bytes");
    json_add_u64(band, "low", report->reserved_low);
    json_add_u64(band, "high", report->reserved_high);
}

static void add_collectives(const struct sim_report *report, struct cJSON *root)
{
    struct cJSON *array = json_add_array(root, "collectives");
    for (uint32_t i = 0; i < report->n_collective; i++) {
        const struct collective_count *collective = &report->collectives[i];
        struct cJSON *object = json_add_object(array, NULL);
        json_add_string(object, "kind", task_kind_name((enum task_kind)collective->kind));
        json_add_u64(object, "elements", collective->elements);
        json_add_string(object, "dtype", dtype_name((enum dtype)collective->dtype));
        json_add_u64(object, "bytes", collective->bytes);
        json_add_u64(object, "count", collective->count);
        json_add_string(object, "comm", comm_name((enum comm)collective->comm));
        json_add_u64(object, "ranks", collective->ranks);
        json_add_string(object, "reduction", reduction_name((enum reduction)collective->reduction));
    }
}

void sim_report_what_if_json(const struct sim_report *report, struct cJSON *object)
{
    if (!report->what_if)
        return;
    struct cJSON *array = json_add_array(object, "what_if");
    for (unsigned what = 0; what < WHAT_IF_N; what++) {
        if (!(report->what_if >> what & 1))
            continue;
        struct cJSON *bracket = json_add_object(array, NULL);
        json_add_string(bracket, "name", what_if_name((enum what_if)what));
        json_add_int(bracket, "step_ns", report->what_if_ns[what]);
        json_add_int(bracket, "gain_ns",
                     report->time[SPREAD_MID].step_ns - report->what_if_ns[what]);
    }
}

/* In the history, or null. */
static void add_run_id(const struct sim_report *report, struct cJSON *object)
{
    if (report->run_id > 0)
        json_add_int(object, "run_id", report->run_id);
    else
        add_string_or_null(object, "run_id", NULL);
}

void sim_report_fields(const struct sim_report *report, struct cJSON *object)
{
    add_model(report, object);
    add_time(report, object);
    sim_report_what_if_json(report, object);
    add_memory(report, object);
    add_collectives(report, object);
    add_run_id(report, object);
}

void sim_report_json(const struct sim_report *report, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.sim/1");
    sim_report_fields(report, root);
    json_print(root, out);
    json_free(root);
}
