/*
 * Casts at the borders of units: output_dtype of the one, cast_forward_inputs of the next, and the
 * same backwards for the gradient. Not here: logits, which the loss casts by itself.
 *
 * The post-forward hook reshards before it casts, the pre-forward hook casts before it gathers; so
 * backwards the casts lie between one unit's reduction and the next one's gather. Between two units
 * the tensor exists in one dtype at a time: a cast's source dies with it.
 */
#include "src/plan_check.h"
#include "src/schedule/pieces.h"

/* Whether the output of the segment is cast on its way to the next one. */
static bool is_cast(const struct schedule *sched, uint32_t s)
{
    const struct plan *plan = sched->plan;
    const enum dtype dtype = plan->options.output_dtype;

    return dtype != DTYPE_N && dtype != plan->param_dtype && s + 1 < plan->n_segment &&
           plan_unit_ends(plan, s);
}

static uint32_t cast(struct schedule *sched, uint32_t s, uint32_t from, enum buffer_role role,
                     enum dtype dtype)
{
    const struct buffer *source = &sched->build.program->buffers[from];
    const struct segment *segment = &sched->plan->segments[s];
    const struct body_pair *pair = &sched->bodies->pairs[segment_pair(sched->bodies, segment)];
    const uint64_t elements =
        sched->bodies->slots[pair->slot + SLOT_OUT].bytes / dtype_bytes(sched->plan->param_dtype);
    const enum stream pool = (enum stream)source->pool;
    const uint32_t to =
        build_buffer(&sched->build, role, pool, NO_UNIT, elements * dtype_bytes(dtype));

    sched->build.program->buffers[to].segment = (uint16_t)s;
    build_alloc(&sched->build, to, 0);
    struct task *task = build_launch(&sched->build, TASK_CAST, STREAM_C, segment->unit);
    task->dtype = (uint8_t)dtype;
    task->elements = elements;
    build_access(&sched->build, from, ACCESS_READ);
    build_access(&sched->build, to, ACCESS_WRITE);
    build_free(&sched->build, from, 0);
    return to;
}

/* What the segment after s computes from. */
void schedule_border_forward(struct schedule *sched, uint32_t s)
{
    if (!is_cast(sched, s))
        return;
    sched->hidden = cast(sched, s, sched->hidden, ROLE_HIDDEN, sched->plan->options.output_dtype);
    sched->hidden = cast(sched, s, sched->hidden, ROLE_HIDDEN, sched->plan->param_dtype);
}

/* The gradient of the output of s, from that of the input of the segment after it. */
uint32_t schedule_border_backward(struct schedule *sched, uint32_t s, uint32_t d_hidden)
{
    if (!is_cast(sched, s))
        return d_hidden;
    d_hidden = cast(sched, s, d_hidden, ROLE_D_HIDDEN, sched->plan->options.output_dtype);
    return cast(sched, s, d_hidden, ROLE_D_HIDDEN, sched->plan->param_dtype);
}
