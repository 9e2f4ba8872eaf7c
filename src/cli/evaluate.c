/*
 * One step in numbers; see evaluate.h. Memory first, since retries of the allocator cost time; or
 * with the times, where it depends on them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/cli/evaluate.h"

/* Above this share of a GPU's memory real runs were up to 25 % slower than their model (COST 7). */
static const double NEAR_LIMIT = 0.92;

/* How far reserved bytes may be off (spec MEMORY 8): expandable low and high; caching; retries. */
static const double BAND_EXPANDABLE_LOW = 0.02, BAND_EXPANDABLE_HIGH = 0.05, BAND_CACHING = 0.08,
                    BAND_RETRIES = 0.10;

static enum status price_spreads(struct prepared *prepared, struct sim_report *report,
                                 struct err *err)
{
    for (unsigned spread = 0; spread < SPREAD_N; spread++) {
        struct prices *prices = &report->prices[spread];
        enum status status = cost_price(&prepared->cluster, (enum spread)spread, &prepared->program,
                                        &prepared->arena, prices, err);
        if (status != STATUS_OK)
            return status;
    }
    report->left = report->prices[SPREAD_MID].left;
    return STATUS_OK;
}

static enum status simulate_brackets(struct prepared *prepared, struct sim_report *report,
                                     struct err *err)
{
    report->what_if = option_number(report->options, OPTION_WHAT_IF);
    for (unsigned what = 0; what < WHAT_IF_N; what++) {
        struct step_time time;
        if (!(report->what_if >> what & 1))
            continue;
        enum status status = what_if_simulate(
            (enum what_if)what, &prepared->program, &report->prices[SPREAD_MID],
            report->timed ? NULL : &report->placement, &prepared->arena, &time, err);
        if (status != STATUS_OK)
            return status;
        report->what_if_ns[what] = time.step_ns;
    }
    return STATUS_OK;
}

/* Of all bodies that a step runs, in FLOP. */
static double body_flops(const struct program *program, const struct body_table *bodies)
{
    double flops = 0;
    const struct section *steady = &program->sections[SECTION_STEADY];
    for (uint32_t i = steady->begin; i < steady->end; i++) {
        if (program->instrs[i].op != INSTR_LAUNCH)
            continue;
        const struct task *task = &program->tasks[program->instrs[i].id];
        if (task->frame == NO_FRAME)
            continue;
        const uint32_t segment = program->frames[task->frame].segment;
        if (segment == NO_SEGMENT) /* losses and metrics multiply no matrices */
            continue;
        const uint32_t of = segment_pair(bodies, &program->plan->segments[segment]);
        const struct body_pair *pair = &bodies->pairs[of];
        uint32_t body = task->kind == TASK_FORWARD ? pair->forward : pair->backward;
        flops += (double)bodies->bodies[body].flops;
    }
    return flops;
}

/* What the step computes a second time: its bodies' FLOP less those without checkpointing. */
static enum status recompute_flops(struct prepared *prepared, double *out, struct err *err)
{
    struct body_options plain = plan_body_options(&prepared->plan);
    plain.ac = AC_NONE;
    struct body_table bodies;
    enum status status = body_table_build(&prepared->model, prepared->plan.policy, &plain,
                                          &prepared->arena, &bodies, err);
    if (status != STATUS_OK)
        return status;
    *out =
        body_flops(&prepared->program, &prepared->bodies) - body_flops(&prepared->program, &bodies);
    return STATUS_OK;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : NAN;
}

/* Quotients of the mid times; definitions: DESIGN section 8. */
static enum status fill_rates(struct prepared *prepared, struct sim_report *report, struct err *err)
{
    double again;
    enum status status = recompute_flops(prepared, &again, err);
    if (status != STATUS_OK)
        return status;
    const struct plan_options *plan = &prepared->plan.options;
    const struct step_time *time = &report->time[SPREAD_MID];
    double seconds = (double)time->step_ns * 1e-9;
    double peak_flops = report->prices[SPREAD_MID].peak_flops;
    double tokens = (double)plan->seq * (double)plan->batch * (double)plan->accum;
    double flops = model_flops_per_token(&prepared->model, plan->seq) * tokens;
    report->tokens_per_s = time->step_ns > 0 ? tokens / seconds : NAN;
    report->mfu_pct = percent(flops, seconds * peak_flops);
    report->hfu_pct = percent(flops + again, seconds * peak_flops);
    report->overlap_pct =
        percent((double)(time->comm_ns - time->exposed_comm_ns), (double)time->comm_ns);
    return STATUS_OK;
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_collectives(const void *a, const void *b)
{
    const struct collective_count *x = a, *y = b;
    int order = ORDER(x->kind, y->kind);
    order = order ? order : ORDER(x->comm, y->comm);
    order = order ? order : ORDER(x->elements, y->elements);
    order = order ? order : ORDER(x->dtype, y->dtype);
    return order ? order : ORDER(x->reduction, y->reduction);
}

/* Sort the steady step's messages, then count equal ones. */
static void count_collectives(struct prepared *prepared, struct sim_report *report)
{
    const struct program *program = &prepared->program;
    const struct section *steady = &program->sections[SECTION_STEADY];
    struct collective_count *all =
        arena_array(&prepared->arena, struct collective_count, steady->end - steady->begin);
    uint32_t n = 0, distinct = 0;
    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const struct task *task = &program->tasks[program->instrs[i].id];
        if (program->instrs[i].op != INSTR_LAUNCH ||
            !task_kind_is_collective((enum task_kind)task->kind))
            continue;
        all[n++] = (struct collective_count){
            .kind = task->kind,
            .comm = task->comm,
            .dtype = task->dtype,
            .reduction = task->reduction,
            .elements = task->elements,
            .bytes = task->elements * dtype_bytes((enum dtype)task->dtype),
            .ranks = comm_ranks_of(program->plan, (enum comm)task->comm).ranks,
            .count = 1,
        };
    }
    qsort(all, n, sizeof *all, compare_collectives);
    for (uint32_t i = 0; i < n; i++) {
        if (distinct > 0 && compare_collectives(&all[i], &all[distinct - 1]) == 0)
            all[distinct - 1].count++;
        else
            all[distinct++] = all[i];
    }
    report->collectives = all;
    report->n_collective = distinct;
}

/* Of a GPU that has what is outside of torch on it. */
static struct alloc_config config_of(const struct sim_report *report, uint64_t outside_bytes)
{
    struct alloc_config config = alloc_config_default();
    config.expandable = option_number(report->options, OPTION_ALLOCATOR) != 0;
    config.capacity_bytes =
        report->limit_bytes > outside_bytes ? report->limit_bytes - outside_bytes : 0;
    return config;
}

static void note_shortage(struct sim_report *report)
{
    report->unlimited = true;
    report->oom_step = report->placement.oom_step;
    report->oom_bytes = report->placement.oom_bytes;
}

static enum status no_address(struct prepared *prepared, const struct sim_report *report,
                              struct err *err)
{
    char bytes[32], what[96];
    snprintf(what, sizeof what, "one of its tensors has %s, which no GPU can address",
             text_bytes(report->placement.oom_bytes, bytes));
    return prepared_too_large(report->options, &prepared->plan, what, err);
}

/* With what the GPU has left for torch first; without a limit where that is not enough. */
static enum status place(struct prepared *prepared, struct sim_report *report, struct err *err)
{
    struct alloc_config config = config_of(report, report->outside_bytes);
    place_with_curve(&prepared->program, &config, &prepared->arena, &report->placement,
                     &report->curve);
    if (!report->placement.out_of_memory)
        return STATUS_OK;
    note_shortage(report);
    config.capacity_bytes = ALLOC_UNLIMITED;
    place_with_curve(&prepared->program, &config, &prepared->arena, &report->placement,
                     &report->curve);
    return report->placement.out_of_memory ? no_address(prepared, report, err) : STATUS_OK;
}

static enum status simulate_placed(struct prepared *prepared, struct sim_report *report,
                                   struct err *err)
{
    enum status status = place(prepared, report, err);
    for (unsigned spread = 0; spread < SPREAD_N && status == STATUS_OK; spread++)
        status = simulate(&prepared->program, &report->prices[spread], &report->placement,
                          &prepared->arena, &report->time[spread],
                          spread == SPREAD_MID ? &report->engine : NULL, err);
    if (status == STATUS_OK)
        report->step_retries = step_time_retries(&report->time[SPREAD_MID], &report->placement);
    return status;
}

/* A step on a GPU that has so much less; false: it does not get through there. */
static bool simulate_on_less(struct prepared *prepared, struct sim_report *report,
                             enum spread spread, uint64_t less_bytes)
{
    const struct alloc_config config = config_of(report, report->outside_bytes + less_bytes);
    struct placement *placement = arena_array(&prepared->arena, struct placement, 1);
    struct engine *engine;
    struct step_time time;
    struct err err = {0};

    if (simulate_timed(&prepared->program, &report->prices[spread], &config, &prepared->arena,
                       &time, placement, NULL, &engine, &err))
        return false;
    report->time[spread] = time;
    if (spread == SPREAD_MID) {
        report->engine = engine;
        report->short_retries = step_time_retries(&time, placement);
        report->short_bytes = less_bytes;
    }
    return true;
}

/*
 * Ranks differ, and what streams use comes back late on any of them: a real allocator needs more than
 * the simulated one. Where it would be short of it the times, but not memory, are those of a GPU that
 * has so much less, or as many quarters of it as a step gets through with.
 */
static void simulate_short(struct prepared *prepared, struct sim_report *report, enum spread spread,
                           const struct placement *placement)
{
    enum { PARTS = 4 };
    const uint64_t spare_bytes = prepared->cluster.spare_bytes;
    const struct alloc_config config = config_of(report, report->outside_bytes + spare_bytes);
    const uint32_t steps = report->time[spread].steps;

    if (placement_reserved_bytes(placement, steps) <= config.capacity_bytes)
        return;
    for (uint64_t part = PARTS; part > 0; part--)
        if (simulate_on_less(prepared, report, spread, spare_bytes / PARTS * part))
            return;
}

/* Memory of the mid times is the one that is reported, and said to be short. */
static enum status simulate_with_memory(struct prepared *prepared, struct sim_report *report,
                                        enum spread spread, struct err *err)
{
    const bool mid = spread == SPREAD_MID;
    struct placement *placement =
        mid ? &report->placement : arena_array(&prepared->arena, struct placement, 1);
    struct memory_curve *curve = mid ? &report->curve : NULL;
    struct engine **engine = mid ? &report->engine : NULL;
    struct alloc_config config = config_of(report, report->outside_bytes);
    struct err why = {0};
    enum status status =
        simulate_timed(&prepared->program, &report->prices[spread], &config, &prepared->arena,
                       &report->time[spread], placement, curve, engine, &why);

    if (status == STATUS_OK) {
        if (mid) {
            report->steps = report->time[spread].steps;
            report->step_retries = step_time_retries(&report->time[spread], placement);
        }
        simulate_short(prepared, report, spread, placement);
        return STATUS_OK;
    }
    if (!placement->out_of_memory)
        return err_set(err, status, "%s", why.text);
    if (mid)
        note_shortage(report);
    config.capacity_bytes = ALLOC_UNLIMITED;
    status = simulate_timed(&prepared->program, &report->prices[spread], &config, &prepared->arena,
                            &report->time[spread], placement, curve, engine, err);
    return placement->out_of_memory ? no_address(prepared, report, err) : status;
}

static enum status simulate_spreads(struct prepared *prepared, struct sim_report *report,
                                    struct err *err)
{
    enum status status = STATUS_OK;

    if (!report->timed)
        return simulate_placed(prepared, report, err);
    for (unsigned spread = 0; spread < SPREAD_N && status == STATUS_OK; spread++)
        status = simulate_with_memory(prepared, report, (enum spread)spread, err);
    return status;
}

static void fill_band(struct sim_report *report)
{
    bool expandable = option_number(report->options, OPTION_ALLOCATOR) != 0;
    bool retried = report->steady->stats.retries > 0;
    double low = retried ? BAND_RETRIES : expandable ? BAND_EXPANDABLE_LOW : BAND_CACHING;
    double high = retried ? BAND_RETRIES : expandable ? BAND_EXPANDABLE_HIGH : BAND_CACHING;
    double reserved = (double)report->steady->stats.peak_reserved;
    report->reserved_low = (uint64_t)(reserved * (1 - low));
    report->reserved_high = (uint64_t)(reserved * (1 + high));
}

static void set_limits(const struct prepared *prepared, struct sim_report *report)
{
    report->outside_bytes = prepared->cluster.outside_bytes;
    /* a search sets one that nobody gave */
    const uint64_t limit_bytes = option_number(report->options, OPTION_MEMORY);
    report->limit_bytes = limit_bytes > 0 ? limit_bytes : prepared->cluster.memory_bytes;
}

static void judge_memory(struct sim_report *report)
{
    report->init = &report->placement.init;
    report->first = placement_step(&report->placement, 1);
    report->steady = placement_step(&report->placement, report->steps);

    report->retries = report->init->stats.retries > 0 || report->first->stats.retries > 0 ||
                      report->steady->stats.retries > 0;
    report->reserved_bytes = placement_reserved_bytes(&report->placement, report->steps);
    uint64_t needed = report->reserved_bytes + report->outside_bytes;
    report->fits = !report->unlimited && needed <= report->limit_bytes;
    const uint64_t size = option_given(report->options, OPTION_MEMORY)
                              ? report->limit_bytes
                              : report->prepared->cluster.memory_bytes;
    report->near_limit = report->fits && (double)needed > NEAR_LIMIT * (double)size;
    fill_band(report);
    report->may_not_fit =
        report->fits && report->reserved_high + report->outside_bytes > report->limit_bytes;
}

enum status evaluate(const struct options *options, struct prepared *prepared,
                     struct sim_report *report, struct err *err)
{
    *report = (struct sim_report){
        .prepared = prepared,
        .options = options,
        .timed = program_is_timed(&prepared->program),
        .steps = SIMULATED_STEPS,
    };
    set_limits(prepared, report);
    count_collectives(prepared, report);
    enum status status = price_spreads(prepared, report, err);
    if (status == STATUS_OK)
        status = simulate_spreads(prepared, report, err);
    if (status != STATUS_OK)
        return status;
    judge_memory(report);
    status = simulate_brackets(prepared, report, err);
    if (status != STATUS_OK)
        return status;
    return fill_rates(prepared, report, err);
}
