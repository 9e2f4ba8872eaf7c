/*
 * The order in which modules run, and so the order in which hooks on them fire. Systems differ in
 * what their hooks do.
 */
#include "src/schedule/pieces.h"

static void each_group(struct schedule *sched, uint32_t u, unit_hook *fire)
{
    for (; u != NO_UNIT; u = sched->plan->units[u].next_group)
        fire(sched, u);
}

void schedule_each_group_backward(struct schedule *sched, uint32_t u, unit_hook *fire)
{
    if (u == NO_UNIT)
        return;
    schedule_each_group_backward(sched, sched->plan->units[u].next_group, fire);
    fire(sched, u);
}

/* Units around the segment that begin with it, outermost first. */
static void each_begin(struct schedule *sched, uint32_t u, uint32_t s, unit_hook *fire)
{
    if (u == NO_UNIT || sched->plan->units[u].first_segment != s)
        return;
    each_begin(sched, sched->plan->units[u].outer, s, fire);
    each_group(sched, u, fire);
}

/* The same, innermost first. */
static void each_begin_inside_out(struct schedule *sched, uint32_t u, uint32_t s, unit_hook *fire)
{
    for (; u != NO_UNIT && sched->plan->units[u].first_segment == s;
         u = sched->plan->units[u].outer)
        schedule_each_group_backward(sched, u, fire);
}

/* Units around the segment that end with it, innermost first: that is the order in which hooks on
   one output were registered. */
static void each_end(struct schedule *sched, uint32_t u, uint32_t s, unit_hook *fire)
{
    for (; u != NO_UNIT && sched->plan->units[u].last_segment == s; u = sched->plan->units[u].outer)
        each_group(sched, u, fire);
}

/* The i-th module inside of the segment that is a unit, or NO_UNIT for the second group of one. */
static uint32_t inner_unit(const struct schedule *sched, const struct segment *segment, uint32_t i)
{
    const uint32_t u = sched->plan->inner_units[segment->inner + i];
    return sched->plan->units[u].group == 0 ? u : NO_UNIT;
}

/* Units inside of a body, which is launched as a whole: their hooks fire before and after it. */
static void each_inner(struct schedule *sched, uint32_t s, unit_hook *fire)
{
    const struct segment *segment = &sched->plan->segments[s];

    for (uint32_t i = 0; i < segment->n_inner; i++)
        each_group(sched, inner_unit(sched, segment, i), fire);
}

/* in_order: of groups; hooks before a backward are called in order, those behind it in reverse. */
static void each_inner_backward(struct schedule *sched, uint32_t s, unit_hook *fire, bool in_order)
{
    const struct segment *segment = &sched->plan->segments[s];

    for (uint32_t i = segment->n_inner; i-- > 0;) {
        const uint32_t u = inner_unit(sched, segment, i);
        if (in_order)
            each_group(sched, u, fire);
        else
            schedule_each_group_backward(sched, u, fire);
    }
}

void schedule_walk_forward(struct schedule *sched, unit_hook *pre, unit_hook *post)
{
    for (uint32_t s = 0; s < sched->plan->n_segment; s++) {
        const uint32_t u = sched->plan->segments[s].unit;
        each_begin(sched, u, s, pre);
        each_inner(sched, s, pre);
        schedule_forward_body(sched, s);
        each_inner(sched, s, post);
        each_end(sched, u, s, post);
        schedule_border_forward(sched, s);
    }
}

/* Autograd ends where nothing before carries a gradient. */
void schedule_walk_backward(struct schedule *sched, uint32_t d_out, unit_hook *pre, unit_hook *done)
{
    for (uint32_t s = sched->plan->n_segment; s-- > 0 && d_out != NO_BUFFER;) {
        const uint32_t u = sched->plan->segments[s].unit;
        d_out = schedule_border_backward(sched, s, d_out);
        each_end(sched, u, s, pre);
        each_inner_backward(sched, s, pre, true);
        d_out = schedule_backward_body(sched, s, d_out);
        each_inner_backward(sched, s, done, false);
        each_begin_inside_out(sched, u, s, done);
    }
}

void schedule_step(struct schedule *sched, enum section_id section, forward_pass *forward,
                   backward_pass *backward)
{
    build_section_begin(&sched->build, section);
    for (uint64_t m = 0; m < sched->plan->options.accum; m++) {
        sched->build.microbatch = (uint16_t)m;
        forward(sched);
        backward(sched, schedule_loss(sched));
        schedule_metrics(sched);
    }
    sched->build.microbatch = 0;
    schedule_optimizer(sched);
    build_section_end(&sched->build);
}
