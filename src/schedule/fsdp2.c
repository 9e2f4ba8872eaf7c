/*
 * The schedule of fully_shard; see fsdp2.h.
 *
 * Which hook fires where and what it prefetches, after the pseudo-code (a) of spec FSDP2. What the
 * hooks then do is shared between systems: unshard.c, reduce.c, compute.c.
 */
#include "src/schedule/fsdp2.h"

#include "src/schedule/pieces.h"

/*
 * Explicit lists hold the next units in forward order, and a list is gone through behind the last
 * group's hook; the root is never a target.
 */
static void prefetch_forward(struct schedule *sched, uint32_t u)
{
    const struct plan *plan = sched->plan;
    uint64_t ahead = 0;

    for (uint32_t t = u + 1; t < plan->n_unit && is_last_group(sched, u); t++) {
        ahead += plan->units[t].group == 0;
        if (ahead > plan->options.prefetch)
            return;
        schedule_unshard(sched, t, PHASE_FORWARD);
    }
}

/* The explicit list of u in backward: the units before end, of each the last group first. */
static void prefetch_backward_list(struct schedule *sched, uint32_t u, uint32_t end)
{
    uint64_t ahead = 0;

    while (end > 0 && !is_root(sched, end - 1) && is_last_group(sched, u)) {
        ahead += is_last_group(sched, --end);
        if (ahead > sched->plan->options.prefetch_backward)
            return;
        schedule_unshard(sched, end, PHASE_BACKWARD);
    }
}

/*
 * By default the group that ended forward before this one. Of several groups only the second does
 * so, and then for all groups of the module before its own.
 */
static void prefetch_by_order(struct schedule *sched, uint32_t u)
{
    const struct unit *unit = &sched->plan->units[u];
    const bool is_alone = unit->group == 0 && is_last_group(sched, u);
    uint32_t place = sched->units[u].order;

    if (is_alone && place > 0)
        schedule_unshard(sched, sched->order[place - 1], PHASE_BACKWARD);
    if (is_alone || unit->group == 0)
        return;
    place--; /* its own module's other group */
    while (place-- > 0) {
        schedule_unshard(sched, sched->order[place], PHASE_BACKWARD);
        if (sched->plan->units[sched->order[place]].group == 0)
            return;
    }
}

/* A list that would be empty is not set. */
static void prefetch_backward(struct schedule *sched, uint32_t u)
{
    const struct plan *plan = sched->plan;
    const uint32_t end = is_root(sched, u) ? plan->n_unit : u - plan->units[u].group;

    if (plan->options.prefetch_backward > 0 && end > 0 && !is_root(sched, end - 1))
        prefetch_backward_list(sched, u, end);
    else
        prefetch_by_order(sched, u);
}

static void pre_forward(struct schedule *sched, uint32_t u)
{
    schedule_unshard(sched, u, PHASE_FORWARD);
    schedule_wait_for_unshard(sched, u, PHASE_FORWARD);
    prefetch_forward(sched, u);
}

static void post_forward(struct schedule *sched, uint32_t u)
{
    if (sched->plan->units[u].host_sync)
        schedule_host_reads(sched);
    if (sched->plan->units[u].reshard_after_forward) {
        if (sched->plan->options.reshard == RESHARD_RANKS)
            schedule_reshard_to_ranks(sched, u);
        else
            schedule_reshard(sched, u);
    }
    sched->units[u].order = sched->n_order;
    sched->order[sched->n_order++] = u;
}

static void pre_backward(struct schedule *sched, uint32_t u)
{
    if (!sched->plan->units[u].has_backward)
        return;
    schedule_unshard(sched, u, PHASE_BACKWARD);
    schedule_wait_for_unshard(sched, u, PHASE_BACKWARD);
    prefetch_backward(sched, u);
}

/* Gradients of a microbatch without sync stay; else they are reduced. */
static void post_backward(struct schedule *sched, uint32_t u)
{
    const bool syncs = schedule_holds(sched, sched->plan->options.sync);

    sched->units[u].done = true;
    schedule_accumulate(sched, u);
    if (syncs)
        schedule_fill_zeros(sched, u);
    if (schedule_holds(sched, sched->plan->options.reshard_backward))
        schedule_reshard(sched, u);
    if (syncs)
        schedule_reduce(sched, u);
    else
        schedule_keep_accumulated(sched, u);
}

/* An autograd node on the unit's inputs: where those carry no gradient the final callback does it. */
static void backward_done(struct schedule *sched, uint32_t u)
{
    if (sched->plan->units[u].input_has_grad)
        post_backward(sched, u);
}

/* The root's pre-forward: the optimizer's writes to the shards come before any copy-in. */
static void forward(struct schedule *sched)
{
    build_mark(&sched->build, PHASE_FORWARD, false);
    schedule_input(sched);
    const uint32_t event = build_record(&sched->build, STREAM_C);
    build_wait(&sched->build, STREAM_AGI, event);
    build_wait(&sched->build, STREAM_AG, event);
    schedule_walk_forward(sched, pre_forward, post_forward);
    schedule_release_held(sched);
    build_mark(&sched->build, PHASE_FORWARD, true);
}

static void finish_unit(struct schedule *sched, uint32_t u)
{
    if (!sched->units[u].done)
        post_backward(sched, u);
}

/* The root's final callback: what no node reduced, outer units first, then stream C sees every
   gradient. */
static void finish_backward(struct schedule *sched)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++)
        if (sched->plan->units[u].group == 0)
            schedule_each_group_backward(sched, u, finish_unit);
    for (uint32_t u = 0; u < sched->plan->n_unit; u++)
        sched->units[u].done = false;
    if (!schedule_holds(sched, sched->plan->options.finish))
        return;
    schedule_wait_for_reduce(sched);
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        schedule_release_kept(sched, u);
        schedule_drop_pending(sched, u);
    }
    schedule_drain_reduce_in(sched, 0);
    sched->n_order = 0;
}

static void backward(struct schedule *sched, uint32_t d_out)
{
    build_mark(&sched->build, PHASE_BACKWARD, false);
    schedule_walk_backward(sched, d_out, pre_backward, backward_done);
    finish_backward(sched);
    schedule_drop_input(sched);
    build_mark(&sched->build, PHASE_BACKWARD, true);
}

void schedule_fsdp2(const struct plan *plan, const struct layout *layout,
                    const struct body_table *bodies, struct arena *arena, struct program *out)
{
    struct schedule sched;

    schedule_init(&sched, plan, layout, bodies, arena, out);
    schedule_init_shards(&sched);
    schedule_step(&sched, SECTION_FIRST, forward, backward);
    build_repeat_section(&sched.build, SECTION_FIRST, SECTION_STEADY);
}

void schedule_fsdp2_steady(const struct plan *plan, const struct layout *layout,
                           const struct body_table *bodies, struct arena *arena,
                           struct program *out)
{
    struct schedule sched;

    schedule_init(&sched, plan, layout, bodies, arena, out);
    schedule_init_lasting(&sched);
    build_section_begin(&sched.build, SECTION_FIRST);
    build_section_end(&sched.build);
    schedule_step(&sched, SECTION_STEADY, forward, backward);
}
