/*
 * The schedule of fully_shard on a one-dimensional mesh; see fsdp2.h.
 *
 * Which hook fires where and what it prefetches, after the pseudo-code (a) of spec FSDP2. What the
 * hooks then do is shared between systems: unshard.c, reduce.c, compute.c.
 */
#include "src/schedule/fsdp2.h"

#include "src/schedule/pieces.h"

/* Explicit lists hold the next units in forward order; the root is never a target. */
static void prefetch_forward(struct schedule *sched, uint32_t u)
{
    for (uint32_t k = 1; k <= sched->plan->options.prefetch && u + k < sched->plan->n_unit; k++)
        schedule_unshard(sched, u + k);
}

static bool is_root(const struct schedule *sched, uint32_t u)
{
    return sched->plan->has_root && u == 0;
}

/* The explicit list of u in backward, nearest first; false where u has none. */
static bool prefetch_backward_list(struct schedule *sched, uint32_t u)
{
    const uint32_t lowest = sched->plan->has_root ? 1 : 0;
    uint32_t target = is_root(sched, u) ? sched->plan->n_unit : u;
    bool any = false;

    for (uint64_t k = 0; k < sched->plan->options.prefetch_backward && target > lowest; k++) {
        schedule_unshard(sched, --target);
        any = true;
    }
    return any;
}

static void prefetch_backward(struct schedule *sched, uint32_t u)
{
    const uint32_t place = sched->units[u].order;

    if (!prefetch_backward_list(sched, u) && place > 0)
        schedule_unshard(sched, sched->order[place - 1]);
}

/* Pre-forward hooks that fire at s: of the segment's unit and of those around it, outermost first.
 */
static void pre_forward(struct schedule *sched, uint32_t u, uint32_t s)
{
    if (u == NO_UNIT || sched->plan->units[u].first_segment != s)
        return;
    pre_forward(sched, sched->plan->units[u].outer, s);
    schedule_unshard(sched, u);
    schedule_wait_for_unshard(sched, u, PHASE_FORWARD);
    prefetch_forward(sched, u);
}

/* Post-forward hooks that fire at s, innermost first. */
static void post_forward(struct schedule *sched, uint32_t u, uint32_t s)
{
    for (; u != NO_UNIT && sched->plan->units[u].last_segment == s;
         u = sched->plan->units[u].outer) {
        if (sched->plan->units[u].reshard_after_forward)
            schedule_reshard(sched, u);
        sched->units[u].order = sched->n_order;
        sched->order[sched->n_order++] = u;
    }
}

/* The root's pre-forward: the optimizer's writes to the shards come before any copy-in. */
static void forward(struct schedule *sched)
{
    build_mark(&sched->build, PHASE_FORWARD, false);
    schedule_input(sched);
    const uint32_t event = build_record(&sched->build, STREAM_C);
    build_wait(&sched->build, STREAM_AGI, event);
    build_wait(&sched->build, STREAM_AG, event);
    for (uint32_t s = 0; s < sched->plan->n_segment; s++) {
        const uint32_t u = sched->plan->segments[s].unit;
        pre_forward(sched, u, s);
        schedule_forward_body(sched, s);
        post_forward(sched, u, s);
    }
    schedule_release_held(sched);
    build_mark(&sched->build, PHASE_FORWARD, true);
}

/* Hooks on the outputs of s, in the order of their registration: innermost first. */
static void pre_backward(struct schedule *sched, uint32_t u, uint32_t s)
{
    for (; u != NO_UNIT && sched->plan->units[u].last_segment == s;
         u = sched->plan->units[u].outer) {
        schedule_unshard(sched, u);
        schedule_wait_for_unshard(sched, u, PHASE_BACKWARD);
        prefetch_backward(sched, u);
    }
}

/* Autograd nodes on the inputs of s: where those carry no gradient the final callback reduces. */
static void backward_done(struct schedule *sched, uint32_t u, uint32_t s)
{
    for (; u != NO_UNIT && sched->plan->units[u].first_segment == s;
         u = sched->plan->units[u].outer) {
        if (sched->plan->units[u].input_has_grad)
            schedule_reduce(sched, u);
        else
            sched->units[u].reduce_postponed = true;
    }
}

/* The root's final callback: postponed reductions, then stream C sees every gradient. */
static void finish_backward(struct schedule *sched)
{
    for (uint32_t u = sched->plan->n_unit; u-- > 0;) {
        if (sched->units[u].reduce_postponed)
            schedule_reduce(sched, u);
        sched->units[u].reduce_postponed = false;
    }
    build_wait(&sched->build, STREAM_C, sched->post_event);
    schedule_drain_reduce_in(sched, 0);
    sched->n_order = 0;
}

static void backward(struct schedule *sched, uint32_t d_out)
{
    build_mark(&sched->build, PHASE_BACKWARD, false);
    for (uint32_t s = sched->plan->n_segment; s-- > 0;) {
        const uint32_t u = sched->plan->segments[s].unit;
        pre_backward(sched, u, s);
        d_out = schedule_backward_body(sched, s, d_out);
        backward_done(sched, u, s);
    }
    finish_backward(sched);
    build_free(&sched->build, sched->input, 0);
    build_mark(&sched->build, PHASE_BACKWARD, true);
}

static void first_step(struct schedule *sched)
{
    build_section_begin(&sched->build, SECTION_FIRST);
    for (uint64_t m = 0; m < sched->plan->options.accum; m++) {
        sched->build.microbatch = (uint16_t)m;
        forward(sched);
        backward(sched, schedule_loss(sched));
    }
    sched->build.microbatch = 0;
    schedule_optimizer(sched);
    build_section_end(&sched->build);
}

void schedule_fsdp2(const struct plan *plan, const struct layout *layout,
                    const struct body_table *bodies, struct arena *arena, struct program *out)
{
    struct schedule sched;

    schedule_init(&sched, plan, layout, bodies, arena, out);
    build_section_begin(&sched.build, SECTION_INIT);
    schedule_init_shards(&sched);
    build_section_end(&sched.build);
    first_step(&sched);
    build_repeat_section(&sched.build, SECTION_FIRST, SECTION_STEADY);
}
