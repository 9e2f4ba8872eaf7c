/*
 * A report as a run; see record.h. Computes nothing new: times are moved to the beginning of the
 * measured step, ratios become integers in the unit that their metric names.
 */
#include "src/cli/record.h"

#include <assert.h>
#include <math.h>
#include <sys/utsname.h>

#include "src/cluster_json.h"
#include "src/model_json.h"
#include "src/program_print.h"

static const struct program *program_of(const struct sim_report *report)
{
    return &report->prepared->program;
}

/* The spans of the measured step, which are the last ones. */
static const struct span *step_spans(const struct sim_report *report, uint32_t *n)
{
    uint32_t n_all, first = 0;
    const struct span *spans = engine_spans(report->engine, &n_all);

    while (first < n_all && spans[first].step < report->time[SPREAD_MID].steps)
        first++;
    *n = n_all - first;
    return spans + first;
}

static void record_units(const struct sim_report *report, struct arena *arena, struct run *out)
{
    const struct plan *plan = &report->prepared->plan;
    const struct layout *layout = &report->prepared->layout;

    out->n_unit = plan->n_unit;
    out->units = arena_array(arena, struct run_unit, plan->n_unit);
    for (uint32_t u = 0; u < plan->n_unit; u++) {
        const struct unit *unit = &plan->units[u];
        const char **params = arena_array(arena, const char *, unit->n_param);
        for (uint32_t i = 0; i < unit->n_param; i++)
            params[i] = plan->model->params[plan->unit_params[unit->param + i]].name;
        out->units[u] = (struct run_unit){
            .name = unit->name,
            .elements = layout->units[u]->elements,
            .padded_elements = layout->units[u]->padded_elements,
            .shard_elements = layout->units[u]->shard_elements,
            .reshard_after_forward = unit->reshard_after_forward,
            .params = params,
            .n_param = unit->n_param,
        };
    }
}

/* The phase that each task of the steady section is launched in, by task. */
static uint8_t *task_phases(const struct program *program, struct arena *arena)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    uint8_t *phases = arena_array(arena, uint8_t, program->n_task);
    uint8_t phase = PHASE_FORWARD;

    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const struct instr *instr = &program->instrs[i];
        if (instr->op == INSTR_MARK && (instr->flags & INSTR_MARK_END) == 0)
            phase = (uint8_t)instr->id;
        else if (instr->op == INSTR_LAUNCH)
            phases[instr->id] = phase;
    }
    return phases;
}

static void record_tasks(const struct sim_report *report, struct arena *arena, struct run *out)
{
    const struct program *program = program_of(report);
    const uint8_t *phases = task_phases(program, arena);
    const uint32_t steps = report->time[SPREAD_MID].steps;
    const int64_t origin_ns = engine_step_end_ns(report->engine, steps - 1);
    const struct span *spans = step_spans(report, &out->n_task);

    out->tasks = arena_array(arena, struct run_task, out->n_task);
    for (uint32_t i = 0; i < out->n_task; i++) {
        const struct task *task = &program->tasks[spans[i].task];
        char name[PROGRAM_NAME_MAX];
        out->tasks[i] = (struct run_task){
            .name = arena_strdup(arena, program_task_name(program, spans[i].task, name)),
            .kind = task->kind,
            .stream = task->stream,
            .dtype = task->dtype,
            .phase = phases[spans[i].task],
            .comm = task->comm,
            .reduction = task->reduction,
            .unit = task->unit,
            .microbatch = task->microbatch,
            .kernels = task->kernels,
            .elements = task->elements,
            .launch_ns = spans[i].launch_ns - origin_ns,
            .launched_ns = spans[i].launched_ns - origin_ns,
            .start_ns = spans[i].start_ns - origin_ns,
            .end_ns = spans[i].end_ns - origin_ns,
        };
    }
}

/* The curve is of the step that memory is reported of, which has the same tasks in the same order. */
static void record_samples(const struct sim_report *report, struct arena *arena, struct run *out)
{
    assert(report->curve.n == out->n_task);
    out->n_sample = report->curve.n;
    out->samples = arena_array(arena, struct run_sample, out->n_sample);
    for (uint32_t i = 0; i < out->n_sample; i++) {
        const struct memory_sample *sample = &report->curve.samples[i];
        struct run_sample *to = &out->samples[i];
        to->at_ns = out->tasks[i].launch_ns;
        to->allocated = sample->allocated;
        to->reserved = sample->reserved;
        for (int c = 0; c < CLASS_N; c++)
            to->by_class[c] = sample->by_class[c];
    }
}

static void record_collectives(const struct sim_report *report, struct arena *arena,
                               struct run *out)
{
    out->n_collective = report->n_collective;
    out->collectives = arena_array(arena, struct run_collective, out->n_collective);
    for (uint32_t i = 0; i < out->n_collective; i++) {
        const struct collective_count *from = &report->collectives[i];
        out->comm_ranks[from->comm] = from->ranks;
        out->collectives[i] = (struct run_collective){.kind = from->kind,
                                                      .comm = from->comm,
                                                      .dtype = from->dtype,
                                                      .reduction = from->reduction,
                                                      .elements = from->elements,
                                                      .bytes = from->bytes,
                                                      .count = from->count};
    }
}

static int64_t scaled(double value, double scale)
{
    return isfinite(value) ? llround(value * scale) : RUN_NO_METRIC;
}

static void record_metrics(const struct sim_report *report, struct run *out)
{
    const struct step_time *mid = &report->time[SPREAD_MID];
    const struct alloc_stats *first = &report->first->stats, *steady = &report->steady->stats;
    int64_t *metrics = out->metrics;

    metrics[RUN_METRIC_STEP_LOW] = report->time[SPREAD_LOW].step_ns;
    metrics[RUN_METRIC_STEP] = mid->step_ns;
    metrics[RUN_METRIC_STEP_HIGH] = report->time[SPREAD_HIGH].step_ns;
    metrics[RUN_METRIC_COMPUTE] = mid->compute_ns;
    metrics[RUN_METRIC_COMM] = mid->comm_ns;
    metrics[RUN_METRIC_EXPOSED_COMM] = mid->exposed_comm_ns;
    metrics[RUN_METRIC_CONTENTION] = mid->contention_ns;
    metrics[RUN_METRIC_RETRY] = sim_report_retry_ns(report);
    metrics[RUN_METRIC_TOKENS_PER_S_PER_GPU] = scaled(report->tokens_per_s, 1e3);
    metrics[RUN_METRIC_MFU] = scaled(report->mfu_pct, 1e4);
    metrics[RUN_METRIC_HFU] = scaled(report->hfu_pct, 1e4);
    metrics[RUN_METRIC_PEAK_ALLOCATED] = (int64_t)steady->peak_allocated;
    metrics[RUN_METRIC_PEAK_ACTIVE] = (int64_t)steady->peak_active;
    metrics[RUN_METRIC_PEAK_RESERVED] = (int64_t)steady->peak_reserved;
    metrics[RUN_METRIC_FIRST_PEAK_ALLOCATED] = (int64_t)first->peak_allocated;
    metrics[RUN_METRIC_FIRST_PEAK_RESERVED] = (int64_t)first->peak_reserved;
    metrics[RUN_METRIC_INIT_PEAK] = (int64_t)report->init->stats.peak_reserved;
    metrics[RUN_METRIC_OUTSIDE] = (int64_t)report->outside_bytes;
    metrics[RUN_METRIC_MEMORY_LIMIT] = (int64_t)report->limit_bytes;
    metrics[RUN_METRIC_FITS] = report->fits;
    metrics[RUN_METRIC_RETRIES] = retries_of_step(sim_report_retries(report));
    metrics[RUN_METRIC_WITHHELD] = (int64_t)report->withheld.bytes;
}

static const char *printed(const struct cJSON *root, struct arena *arena)
{
    struct text text;
    text_init(&text);
    json_print_line(root, &text);
    const char *json = arena_strdup(arena, text.at);
    text_release(&text);
    return json;
}

/* What is known of each, always in the same order. */
static void record_documents(const struct sim_report *report, struct arena *arena, struct run *out)
{
    const struct prepared *prepared = report->prepared;
    struct cJSON *model = json_new_object(), *parent = json_new_object();
    struct cJSON *cluster = cluster_to_json(&prepared->cluster);

    json_add_string(model, "schema", MODEL_JSON_SCHEMA);
    model_json_add(&prepared->model, model);
    model_json_add_tensors(&prepared->model, model);
    out->model_json = printed(model, arena);
    out->plan_json = printed(prepared_options_json(report->options, parent), arena);
    out->cluster_json = printed(cluster, arena);
    json_free(model);
    json_free(parent);
    json_free(cluster);
}

/* What may explain a difference between two machines, and names neither of them. */
static const char *environment_json(struct arena *arena)
{
    struct cJSON *root = json_new_object();
    struct utsname system;

    if (uname(&system) == 0) {
        json_add_string(root, "system", system.sysname);
        json_add_string(root, "machine", system.machine);
    }
    json_add_string(root, "compiler", __VERSION__);
    const char *json = printed(root, arena);
    json_free(root);
    return json;
}

void record_run(const struct sim_report *report, enum run_kind kind, const char *command,
                struct arena *arena, struct run *out)
{
    const struct prepared *prepared = report->prepared;

    *out = (struct run){
        .kind = kind,
        .tool_version = unshard_version,
        .environment = environment_json(arena),
        .command = command,
        .model = prepared->model.name,
        .cluster = prepared->cluster.name,
        .program_hash = program_hash(&prepared->program),
        .placement_hash = placement_hash(&report->placement),
        .world = prepared->plan.world,
        .gpus_per_node = prepared->plan.gpus_per_node,
        .parameters = prepared->model.n_element,
        .peak_phase = report->steady->peak_phase,
        .peak_unit = report->steady->peak_unit,
    };
    for (int c = 0; c < CLASS_N; c++)
        out->peak_by_class[c] = report->steady->stats.peak_by_class[c];
    record_documents(report, arena, out);
    record_metrics(report, out);
    record_units(report, arena, out);
    record_tasks(report, arena, out);
    record_samples(report, arena, out);
    record_collectives(report, arena, out);
}
