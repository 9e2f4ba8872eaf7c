/*
 * The schedule of FullyShardedDataParallel; see fsdp1.h.
 *
 * Which hook fires where and what it prefetches. What the hooks then do to flat parameters is
 * flat.c's. The first step and a steady one are built one after the other, since they differ: order
 * and rate limiter carry over from step to step. Source: _runtime_utils.py of 2.11.
 */
#include "src/schedule/fsdp1.h"

#include <string.h>

#include "src/schedule/pieces.h"

static const struct fsdp1_options *options_of(const struct schedule *sched)
{
    return &sched->plan->options.fsdp1;
}

static bool frees_after_forward(const struct schedule *sched, uint32_t u)
{
    const enum fsdp1_strategy strategy = options_of(sched)->strategy;
    return !is_root(sched, u) && (strategy == FSDP1_FULL_SHARD || strategy == FSDP1_HYBRID_SHARD);
}

/* Unless a hook before has done so; C sees the result in both cases. */
static void unshard_and_wait(struct schedule *sched, uint32_t u)
{
    if (!sched->units[u].pending)
        schedule_flat_unshard(sched, u);
    build_wait(&sched->build, STREAM_C, build_record(&sched->build, STREAM_AG));
}

/*
 * The order of forward is known once the first backward is over. The views of the next unit's flat
 * parameter then come before this one's operators, so that autograd is back at them only after
 * these: its post-backward is late.
 */
static void prefetch_forward(struct schedule *sched, uint32_t u)
{
    const bool known = sched->build.section != SECTION_FIRST || sched->build.microbatch > 0;

    if (!options_of(sched)->forward_prefetch || !known || u + 1 == sched->plan->n_unit)
        return;
    schedule_flat_unshard(sched, u + 1);
    sched->units[u + 1].late = true;
}

/* done marks what this backward has gathered for, so that a late prefetch does not gather again. */
static void prefetch_backward(struct schedule *sched, uint32_t u, enum fsdp1_prefetch when)
{
    const uint32_t place = sched->units[u].order;

    if (options_of(sched)->backward_prefetch != when || place == 0)
        return;
    const uint32_t target = sched->order[place - 1];
    if (!sched->units[target].done && !sched->units[target].pending)
        schedule_flat_unshard(sched, target);
}

static void pre_forward(struct schedule *sched, uint32_t u)
{
    unshard_and_wait(sched, u);
    prefetch_forward(sched, u);
}

static void post_forward(struct schedule *sched, uint32_t u)
{
    if (sched->plan->units[u].host_sync)
        schedule_host_reads(sched);
    schedule_flat_reshard(sched, u, frees_after_forward(sched, u));
    sched->units[u].order = sched->n_order;
    sched->order[sched->n_order++] = u;
}

static void pre_backward(struct schedule *sched, uint32_t u)
{
    unshard_and_wait(sched, u);
    sched->units[u].done = true;
    prefetch_backward(sched, u, FSDP1_BACKWARD_PRE);
}

/* A hook on the flat parameter itself, so of the root and an embedding too. */
static void post_backward(struct schedule *sched, uint32_t u)
{
    sched->units[u].late = false;
    schedule_flat_grads(sched, u);
    schedule_flat_reshard(sched, u, true);
    prefetch_backward(sched, u, FSDP1_BACKWARD_POST);
    schedule_flat_reduce(sched, u);
}

/* When the gradient of a flat parameter is whole: that of a late one with the unit before it. */
static void backward_done(struct schedule *sched, uint32_t u)
{
    if (u + 1 < sched->plan->n_unit && sched->units[u + 1].late)
        post_backward(sched, u + 1);
    if (!sched->units[u].late)
        post_backward(sched, u);
}

/* The root's pre-forward: the optimizer's writes to the shards come before any cast or gather. */
static void forward(struct schedule *sched)
{
    build_mark(&sched->build, PHASE_FORWARD, false);
    schedule_input(sched);
    const uint32_t event = build_record(&sched->build, STREAM_C);
    build_wait(&sched->build, STREAM_AG, event);
    build_wait(&sched->build, STREAM_AGI, event);
    schedule_walk_forward(sched, pre_forward, post_forward);
    build_mark(&sched->build, PHASE_FORWARD, true);
}

/*
 * Before an embedding that is ignored nothing carries a gradient, and the walk ends where units are
 * still open. Autograd then is back at their views, of the unit that opened last first.
 */
static void finish_open_units(struct schedule *sched)
{
    for (uint32_t u = sched->plan->n_unit; u-- > 0;)
        if (sched->units[u].grads != NO_BUFFER)
            post_backward(sched, u);
}

static void backward(struct schedule *sched, uint32_t d_out)
{
    build_mark(&sched->build, PHASE_BACKWARD, false);
    schedule_walk_backward(sched, d_out, pre_backward, backward_done);
    finish_open_units(sched);
    schedule_wait_for_reduce(sched);
    for (uint32_t u = 0; u < sched->plan->n_unit; u++)
        sched->units[u].done = false;
    sched->n_order = 0;
    schedule_drop_input(sched);
    build_mark(&sched->build, PHASE_BACKWARD, true);
}

static void step(struct schedule *sched, enum section_id section)
{
    sched->frees.n = 0;
    schedule_step(sched, section, forward, backward);
}

/* A steady step ends with the queue that it begins with: the one that steps before it come to. */
static void steady_step(struct schedule *sched, struct arena *arena)
{
    const struct free_events *frees = &sched->frees;
    uint32_t n, *begin = arena_array(arena, uint32_t, frees->cap);

    step(sched, SECTION_STEADY);
    do {
        n = frees->n_queue;
        memcpy(begin, frees->queue, n * sizeof *begin);
        build_rewind_section(&sched->build, SECTION_STEADY);
        step(sched, SECTION_STEADY);
    } while (n != frees->n_queue || memcmp(begin, frees->queue, n * sizeof *begin) != 0);
}

/* A unit is freed at most twice in a microbatch; the queue never holds more than three steps leave. */
static void make_free_events(struct schedule *sched, struct arena *arena)
{
    const uint32_t n = 2 * sched->plan->n_unit * (uint32_t)sched->plan->options.accum;

    sched->frees.cap = 3 * n;
    sched->frees.queue = arena_array(arena, uint32_t, sched->frees.cap);
    sched->frees.first = sched->build.program->n_event;
    sched->build.program->n_event += n;
}

void schedule_fsdp1(const struct plan *plan, const struct layout *layout,
                    const struct body_table *bodies, struct arena *arena, struct program *out)
{
    struct schedule sched;

    schedule_init(&sched, plan, layout, bodies, arena, out);
    make_free_events(&sched, arena);
    schedule_init_shards(&sched);
    step(&sched, SECTION_FIRST);
    steady_step(&sched, arena);
}
