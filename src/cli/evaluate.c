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

/* No step near the limit is taken to need more headroom than this part of the limit. */
enum { MOST_HEADROOM = 16 };

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

/*
 * Where memory is tied to time, of a step without memory: what that gains the whole step is taken
 * to gain too, with as many retries.
 */
static enum status simulate_brackets(struct prepared *prepared, struct sim_report *report,
                                     struct err *err)
{
    const struct placement *placement = report->timed ? NULL : &report->placement;
    const struct prices *prices = &report->prices[SPREAD_MID];
    const struct program *program = &prepared->program;
    struct step_time base = report->time[SPREAD_MID], time;
    enum status status = STATUS_OK;

    report->what_if = option_number(report->options, OPTION_WHAT_IF);
    if (report->timed && report->what_if != 0)
        status = simulate(program, prices, NULL, &prepared->arena, &base, NULL, err);
    for (unsigned what = 0; what < WHAT_IF_N && status == STATUS_OK; what++) {
        if (!(report->what_if >> what & 1))
            continue;
        status = what_if_simulate((enum what_if)what, program, prices, placement, &prepared->arena,
                                  &time, err);
        report->what_if_ns[what] = report->time[SPREAD_MID].step_ns - (base.step_ns - time.step_ns);
    }
    return status;
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

static struct alloc_config config_of(const struct sim_report *report)
{
    struct alloc_config config = alloc_config_default();
    config.expandable = option_number(report->options, OPTION_ALLOCATOR) != 0;
    config.capacity_bytes = report->limit_bytes > report->outside_bytes
                                ? report->limit_bytes - report->outside_bytes
                                : 0;
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
    struct alloc_config config = config_of(report);
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
        report->whole = step_time_retries(&report->time[SPREAD_MID], &report->placement);
    return status;
}

/* Memory of the mid times is the one that is reported, and said to be short. */
static enum status simulate_with_memory(struct prepared *prepared, struct sim_report *report,
                                        enum spread spread, bool *fits, struct err *err)
{
    const bool mid = spread == SPREAD_MID;
    struct placement *placement =
        mid ? &report->placement : arena_array(&prepared->arena, struct placement, 1);
    struct memory_curve *curve = mid ? &report->curve : NULL;
    struct engine **engine = mid ? &report->engine : NULL;
    struct alloc_config config = config_of(report);
    struct err why = {0};
    enum status status =
        simulate_timed(&prepared->program, &report->prices[spread], &config, &prepared->arena,
                       &report->time[spread], placement, curve, engine, &why);

    *fits = !placement->out_of_memory;
    if (*fits)
        return status == STATUS_OK ? status : err_set(err, status, "%s", why.text);
    if (mid)
        note_shortage(report);
    config.capacity_bytes = ALLOC_UNLIMITED;
    status = simulate_timed(&prepared->program, &report->prices[spread], &config, &prepared->arena,
                            &report->time[spread], placement, curve, engine, err);
    return placement->out_of_memory ? no_address(prepared, report, err) : status;
}

/* What was measured on whole GPUs is less of a smaller limit. */
static uint64_t headroom_of(const struct prepared *prepared, const struct sim_report *report)
{
    const uint64_t most_bytes = report->limit_bytes / MOST_HEADROOM;
    const uint64_t bytes = prepared->cluster.headroom_bytes;
    return bytes < most_bytes ? bytes : most_bytes;
}

/* Mid says how much is withheld; the others as much of it as they get through without. */
static enum status withhold(struct prepared *prepared, struct sim_report *report,
                            enum spread spread, struct err *err)
{
    const bool mid = spread == SPREAD_MID;
    const uint64_t headroom_bytes = headroom_of(prepared, report);
    const uint64_t most_bytes = mid ? headroom_bytes : report->withheld.bytes;
    const uint64_t reserved_bytes = placement_reserved_bytes(&report->placement, report->steps);
    const struct alloc_config config = config_of(report);
    struct withheld of_spread;

    if (most_bytes == 0 || reserved_bytes + headroom_bytes <= config.capacity_bytes)
        return STATUS_OK;
    return simulate_withheld(&prepared->program, &report->prices[spread], &config, most_bytes,
                             &prepared->arena, &report->time[spread], mid ? &report->engine : NULL,
                             mid ? &report->withheld : &of_spread, err);
}

/* What did not get through was simulated without a limit: it is taken to have the retries of mid. */
static void add_retries_of_mid(struct sim_report *report, enum spread spread)
{
    const int64_t retries = retries_of_step(sim_report_retries(report));

    report->time[spread].step_ns += retries * report->prices[spread].host_retry_ns;
}

static enum status simulate_timed_spread(struct prepared *prepared, struct sim_report *report,
                                         enum spread spread, struct err *err)
{
    bool fits;
    const enum status status = simulate_with_memory(prepared, report, spread, &fits, err);

    if (status != STATUS_OK)
        return status;
    if (spread == SPREAD_MID) {
        report->steps = report->time[spread].steps;
        report->whole = step_time_retries(&report->time[spread], &report->placement);
    }
    if (fits)
        return withhold(prepared, report, spread, err);
    add_retries_of_mid(report, spread);
    return STATUS_OK;
}

/* How often the allocator retries depends on times, not always the way that they go. */
static void put_in_order(struct step_time time[SPREAD_N])
{
    const int64_t mid_ns = time[SPREAD_MID].step_ns;

    if (time[SPREAD_LOW].step_ns > mid_ns)
        time[SPREAD_LOW].step_ns = mid_ns;
    if (time[SPREAD_HIGH].step_ns < mid_ns)
        time[SPREAD_HIGH].step_ns = mid_ns;
}

static enum status simulate_spreads(struct prepared *prepared, struct sim_report *report,
                                    struct err *err)
{
    static const enum spread mid_first[SPREAD_N] = {SPREAD_MID, SPREAD_LOW, SPREAD_HIGH};
    enum status status = STATUS_OK;

    if (!report->timed)
        return simulate_placed(prepared, report, err);
    for (unsigned i = 0; i < SPREAD_N && status == STATUS_OK; i++)
        status = simulate_timed_spread(prepared, report, mid_first[i], err);
    if (status == STATUS_OK)
        put_in_order(report->time);
    return status;
}

static void fill_band(struct sim_report *report)
{
    bool expandable = option_number(report->options, OPTION_ALLOCATOR) != 0;
    bool retried = report->steady->stats.retries > 0 || report->whole.n > 0;
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
                      report->steady->stats.retries > 0 || report->whole.n > 0;
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
