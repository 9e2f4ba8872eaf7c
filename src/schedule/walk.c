/*
 * The order in which modules run, and so the order in which hooks on them fire. Systems differ in
 * what their hooks do.
 */
#include "src/schedule/pieces.h"

/* Units around the segment that begin with it, outermost first. */
static void each_begin(struct schedule *sched, uint32_t u, uint32_t s, unit_hook *fire)
{
    if (u == NO_UNIT || sched->plan->units[u].first_segment != s)
        return;
    each_begin(sched, sched->plan->units[u].outer, s, fire);
    fire(sched, u);
}

/* The same, innermost first. */
static void each_begin_inside_out(struct schedule *sched, uint32_t u, uint32_t s, unit_hook *fire)
{
    for (; u != NO_UNIT && sched->plan->units[u].first_segment == s;
         u = sched->plan->units[u].outer)
        fire(sched, u);
}

/* Units around the segment that end with it, innermost first: that is the order in which hooks on
   one output were registered. */
static void each_end(struct schedule *sched, uint32_t u, uint32_t s, unit_hook *fire)
{
    for (; u != NO_UNIT && sched->plan->units[u].last_segment == s; u = sched->plan->units[u].outer)
        fire(sched, u);
}

/* Units inside of a body, which is launched as a whole: their hooks fire before and after it. */
static void each_inner(struct schedule *sched, uint32_t s, unit_hook *fire)
{
    const struct segment *segment = &sched->plan->segments[s];

    for (uint32_t i = 0; i < segment->n_inner; i++)
        fire(sched, sched->plan->inner_units[segment->inner + i]);
}

static void each_inner_backward(struct schedule *sched, uint32_t s, unit_hook *fire)
{
    const struct segment *segment = &sched->plan->segments[s];

    for (uint32_t i = segment->n_inner; i-- > 0;)
        fire(sched, sched->plan->inner_units[segment->inner + i]);
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
        each_inner_backward(sched, s, pre);
        d_out = schedule_backward_body(sched, s, d_out);
        each_inner_backward(sched, s, done);
        each_begin_inside_out(sched, u, s, done);
    }
}
