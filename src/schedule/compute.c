/*
 * What computes on stream C: bodies with their boundary tensors, the loss, and the shards' birth.
 * Lifetimes at a body's border are stated here and happen on its tape (body.h).
 */
#include "src/schedule/pieces.h"

/* The task that first fills a lasting group, one kernel a member. */
static uint32_t init_task(struct schedule *sched, uint16_t unit, uint32_t buffer, enum dtype dtype)
{
    const struct buffer *filled = &sched->build.program->buffers[buffer];
    struct task *task = build_task(&sched->build, TASK_INIT, STREAM_C, unit);

    task->dtype = (uint8_t)dtype;
    task->elements = filled->bytes / dtype_bytes(dtype);
    task->kernels = filled->n_member;
    build_access(&sched->build, buffer, ACCESS_WRITE);
    return sched->build.program->n_task - 1;
}

/* They come before the section, so that a repetition of it leaves them out. */
static void make_init_tasks(struct schedule *sched)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        const struct unit_layout *unit = layout_of(sched, u);
        struct unit_state *state = &sched->units[u];
        state->init_shard =
            init_task(sched, (uint16_t)u, state->shard, (enum dtype)unit->casts[0].storage);
        if (state->states != NO_BUFFER)
            state->init_states = init_task(sched, (uint16_t)u, state->states, DTYPE_FP32);
    }
    if (sched->ignored != NO_BUFFER)
        sched->init_ignored = init_task(sched, NO_UNIT, sched->ignored, DTYPE_U8);
}

/* As to_empty() makes them of a model on the meta device that is sharded already. */
static void bear_shards(struct schedule *sched)
{
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        build_alloc(&sched->build, sched->units[u].shard, 0);
        build_instr(&sched->build, INSTR_LAUNCH, STREAM_C, 0, sched->units[u].init_shard);
    }
}

void schedule_init_shards(struct schedule *sched)
{
    make_init_tasks(sched);
    build_section_begin(&sched->build, SECTION_INIT);
    build_mark(&sched->build, PHASE_INIT, false);
    if (is_fsdp1(sched))
        schedule_flat_births(sched, NO_UNIT);
    else
        bear_shards(sched);
    if (sched->ignored != NO_BUFFER) {
        build_alloc(&sched->build, sched->ignored, 0);
        build_instr(&sched->build, INSTR_LAUNCH, STREAM_C, 0, sched->init_ignored);
    }
    build_mark(&sched->build, PHASE_INIT, true);
    build_section_end(&sched->build);
}

/* Whether a step multiplies matrices on this host thread: 0 forward's, 1 autograd's. */
static bool uses_gemm(const struct schedule *sched, unsigned thread)
{
    const struct body_table *bodies = sched->bodies;
    bool uses = false;

    for (uint32_t s = 0; s <= sched->plan->n_segment && !uses; s++) {
        const uint32_t of = s == sched->plan->n_segment
                                ? bodies->of_loss
                                : segment_pair(bodies, &sched->plan->segments[s]);
        const struct body_pair *pair = &bodies->pairs[of];
        uses = bodies->bodies[thread == 0 ? pair->forward : pair->backward].uses_gemm;
    }
    return uses;
}

static void bear(struct schedule *sched, uint32_t buffer)
{
    if (buffer != NO_BUFFER)
        build_alloc(&sched->build, buffer, 0);
}

void schedule_init_lasting(struct schedule *sched)
{
    build_section_begin(&sched->build, SECTION_INIT);
    for (uint32_t u = 0; u < sched->plan->n_unit; u++) {
        bear(sched, sched->units[u].shard);
        bear(sched, sched->units[u].states);
    }
    bear(sched, sched->ignored);
    for (unsigned thread = 0; thread < 2; thread++) {
        sched->has_workspace[thread] = true;
        if (uses_gemm(sched, thread))
            bear(sched, sched->workspace[thread]);
    }
    build_section_end(&sched->build);
}

/* Token ids and labels of a microbatch, int64 each; hidden states of a model without embedding. */
static uint64_t input_bytes(const struct schedule *sched)
{
    const struct plan *plan = sched->plan;
    const struct segment *first = &plan->segments[0];
    const uint64_t tokens = plan->options.batch * plan->options.seq;

    if (first->kind == BODY_EMBEDDING)
        return 2 * 8 * tokens;
    const uint32_t pair = segment_pair(sched->bodies, first);
    return sched->bodies->slots[sched->bodies->pairs[pair].slot + SLOT_IN].bytes;
}

void schedule_input(struct schedule *sched)
{
    sched->input = build_buffer(&sched->build, ROLE_INPUT, STREAM_C, NO_UNIT, input_bytes(sched));
    build_alloc(&sched->build, sched->input, 0);
    struct task *task = build_launch(&sched->build, TASK_COPY_INPUT, STREAM_C, NO_UNIT);
    task->kernels = 2;
    build_access(&sched->build, sched->input, ACCESS_WRITE);
    sched->hidden = sched->input;
}

/* A tensor at the border of a body, born on its tape. */
static uint32_t boundary(struct schedule *sched, enum buffer_role role, uint32_t segment,
                         const struct body_pair *pair, uint32_t slot)
{
    const uint32_t buffer = build_buffer(&sched->build, role, STREAM_C, NO_UNIT,
                                         sched->bodies->slots[pair->slot + slot].bytes);
    sched->build.program->buffers[buffer].segment = (uint16_t)segment;
    build_alloc(&sched->build, buffer, INSTR_BY_BODY);
    return buffer;
}

/*
 * The matrix library's workspace of one host thread is born before the first body that needs it.
 * PyTorch makes it at that body's first product, one or two tensors later: same bytes, same peak.
 */
static void need_workspace(struct schedule *sched, enum task_kind kind, const struct body *body)
{
    const unsigned thread = kind == TASK_BACKWARD;

    if (body->uses_gemm && !sched->has_workspace[thread])
        build_alloc(&sched->build, sched->workspace[thread], 0);
    sched->has_workspace[thread] |= body->uses_gemm;
}

static void launch_body(struct schedule *sched, enum task_kind kind, uint16_t unit, uint32_t frame,
                        uint32_t body)
{
    const struct body *b = &sched->bodies->bodies[body];
    struct task *task = build_launch(&sched->build, kind, STREAM_C, unit);

    task->body = body;
    task->frame = frame;
    task->kernels = b->kernels;
    task->dtype = sched->plan->param_dtype;
    if (b->uses_gemm)
        build_access(&sched->build, sched->workspace[kind == TASK_BACKWARD], ACCESS_WRITE);
}

/* What a body computes with: its unit's parameters and those of units inside of it. */
static void read_params(struct schedule *sched, const struct segment *segment)
{
    build_access(&sched->build, sched->units[segment->unit].full, ACCESS_READ);
    for (uint32_t i = 0; i < segment->n_inner; i++) {
        const uint16_t inner = sched->plan->inner_units[segment->inner + i];
        build_access(&sched->build, sched->units[inner].full, ACCESS_READ);
    }
}

void schedule_forward_body(struct schedule *sched, uint32_t s)
{
    const struct segment *segment = &sched->plan->segments[s];
    const uint32_t of = segment_pair(sched->bodies, segment);
    const struct body_pair *pair = &sched->bodies->pairs[of];
    const uint32_t id = build_frame(&sched->build, of, s, 1 + segment->n_inner);
    const uint32_t in = sched->hidden;

    sched->frames[s] = id;
    need_workspace(sched, TASK_FORWARD, &sched->bodies->bodies[pair->forward]);
    const uint32_t out =
        boundary(sched, segment->kind == BODY_HEAD ? ROLE_LOGITS : ROLE_HIDDEN, s, pair, SLOT_OUT);
    sched->build.program->frames[id].in = in;
    sched->build.program->frames[id].out = out;
    launch_body(sched, TASK_FORWARD, segment->unit, id, pair->forward);
    read_params(sched, segment);
    build_access(&sched->build, in, ACCESS_READ);
    build_access(&sched->build, out, ACCESS_WRITE);
    if (pair->in_dies_in_forward)
        build_free(&sched->build, in, INSTR_BY_BODY);
    sched->hidden = out;
}

/* What the model's last piece has made in this microbatch. */
static uint32_t model_output(const struct schedule *sched)
{
    return sched->build.program->frames[sched->frames[sched->plan->n_segment - 1]].out;
}

static bool has_metrics(const struct schedule *sched)
{
    return sched->plan->options.train_metrics > 0;
}

/* Of the pair of a loss or metric: it reads logits and labels, in no unit. Returns its frame. */
static uint32_t launch_of_logits(struct schedule *sched, uint32_t of)
{
    const uint32_t id = build_frame(&sched->build, of, NO_SEGMENT, 0), logits = model_output(sched);

    sched->build.program->frames[id].in = logits;
    launch_body(sched, TASK_FORWARD, NO_UNIT, id, sched->bodies->pairs[of].forward);
    build_access(&sched->build, logits, ACCESS_READ);
    build_access(&sched->build, sched->input, ACCESS_READ);
    return id;
}

/* Forward and backward of the loss, outside every unit. Where nothing is trained that is all. */
uint32_t schedule_loss(struct schedule *sched)
{
    const struct body_pair *pair = &sched->bodies->pairs[sched->bodies->of_loss];
    const uint32_t logits = model_output(sched);

    build_mark(&sched->build, PHASE_LOSS, false);
    const uint32_t id = launch_of_logits(sched, sched->bodies->of_loss);
    if (pair->in_dies_in_forward)
        build_free(&sched->build, logits, INSTR_BY_BODY);
    if (!pair->has_d_in) {
        build_mark(&sched->build, PHASE_LOSS, true);
        return NO_BUFFER;
    }
    const bool has_head = sched->plan->segments[sched->plan->n_segment - 1].kind == BODY_HEAD;
    const uint32_t d_logits =
        boundary(sched, has_head ? ROLE_D_LOGITS : ROLE_D_HIDDEN, NO_SEGMENT, pair, SLOT_D_IN);
    sched->build.program->frames[id].d_in = d_logits;
    launch_body(sched, TASK_BACKWARD, NO_UNIT, id, pair->backward);
    build_access(&sched->build, sched->input, ACCESS_READ);
    /* of logits that outlive the loss its pair does not say whether backward reads them: it may */
    if (pair->in_dies_in_backward || has_metrics(sched))
        build_access(&sched->build, logits, ACCESS_READ);
    if (pair->in_dies_in_backward)
        build_free(&sched->build, logits, INSTR_BY_BODY);
    build_access(&sched->build, d_logits, ACCESS_WRITE);
    build_mark(&sched->build, PHASE_LOSS, true);
    return d_logits;
}

/* Behind a backward its microbatch is not needed any more, but for metrics. */
void schedule_drop_input(struct schedule *sched)
{
    if (!has_metrics(sched))
        build_free(&sched->build, sched->input, 0);
}

/* As composer has them: behind backward and its final callback, one after another. */
void schedule_metrics(struct schedule *sched)
{
    if (!has_metrics(sched))
        return;
    build_mark(&sched->build, PHASE_METRICS, false);
    for (uint64_t i = 0; i < sched->plan->options.train_metrics; i++)
        launch_of_logits(sched, sched->bodies->of_metric);
    build_free(&sched->build, model_output(sched), 0);
    build_free(&sched->build, sched->input, 0);
    build_mark(&sched->build, PHASE_METRICS, true);
}

/* The gradients of a unit are one group, born member by member on the tapes of its bodies. */
static uint32_t grads_of(struct schedule *sched, uint16_t u)
{
    const struct unit_layout *unit = layout_of(sched, u);
    struct unit_state *state = &sched->units[u];

    if (unit->n_trained == 0)
        return NO_BUFFER;
    if (state->grads == NO_BUFFER) {
        state->grads = build_group(&sched->build, ROLE_GRADS, STREAM_C, u,
                                   members_of(sched, u)->grads, unit->n_trained, unit->grad_bytes);
        build_alloc(&sched->build, state->grads, INSTR_BY_BODY);
    }
    return state->grads;
}

/* Whether the segment's tape bears gradients of the unit in this part of its frame. */
static bool bears_grads(const struct schedule *sched, const struct segment *segment, uint32_t part)
{
    const struct body_pair *pair = &sched->bodies->pairs[segment_pair(sched->bodies, segment)];
    for (uint32_t i = 0; i < pair->n_grad; i++)
        if (sched->plan->grad_places[segment->grad + i].part == part &&
            sched->bodies->slots[pair->slot + SLOT_GRAD + i].bytes > 0)
            return true;
    return false;
}

static void need_grads(struct schedule *sched, const struct segment *segment, uint32_t frame)
{
    for (uint32_t part = 0; part < 1 + segment->n_inner; part++) {
        const uint16_t u =
            part == 0 ? segment->unit : sched->plan->inner_units[segment->inner + part - 1];
        if (!bears_grads(sched, segment, part))
            continue;
        const uint32_t grads = grads_of(sched, u);
        const struct program *program = sched->build.program;
        program->frame_grads[program->frames[frame].grads + part] = grads;
    }
}

static void write_grads(struct schedule *sched, const struct frame *frame, uint32_t n_part)
{
    for (uint32_t part = 0; part < n_part; part++) {
        const uint32_t grads = sched->build.program->frame_grads[frame->grads + part];
        if (grads != NO_BUFFER)
            build_access(&sched->build, grads, ACCESS_WRITE);
    }
}

/* Accesses of a backward body, in the order of its frame. */
static void backward_accesses(struct schedule *sched, const struct frame *frame,
                              const struct body_pair *pair, const struct segment *segment)
{
    if (pair->kind != BODY_EMBEDDING)
        read_params(sched, segment);
    if (pair->in_dies_in_backward || pair->kind == BODY_EMBEDDING)
        build_access(&sched->build, frame->in, ACCESS_READ);
    build_access(&sched->build, frame->d_out, pair->d_in_place ? ACCESS_UPDATE : ACCESS_READ);
    if (pair->has_d_in && !pair->d_in_place)
        build_access(&sched->build, frame->d_in, ACCESS_WRITE);
    write_grads(sched, frame, 1 + segment->n_inner);
}

/* Returns the gradient of the segment's input, or NO_BUFFER. */
uint32_t schedule_backward_body(struct schedule *sched, uint32_t s, uint32_t d_out)
{
    const struct segment *segment = &sched->plan->segments[s];
    const struct body_pair *pair = &sched->bodies->pairs[segment_pair(sched->bodies, segment)];
    const uint32_t id = sched->frames[s];
    uint32_t d_in = pair->d_in_place ? d_out : NO_BUFFER;

    need_workspace(sched, TASK_BACKWARD, &sched->bodies->bodies[pair->backward]);
    need_grads(sched, segment, id);
    if (pair->has_d_in && !pair->d_in_place)
        d_in = boundary(sched, ROLE_D_HIDDEN, s, pair, SLOT_D_IN);
    struct frame *frame = &sched->build.program->frames[id];
    frame->d_out = d_out;
    frame->d_in = d_in;
    launch_body(sched, TASK_BACKWARD, segment->unit, id, pair->backward);
    backward_accesses(sched, frame, pair, segment);
    if (pair->in_dies_in_backward)
        build_free(&sched->build, frame->in, INSTR_BY_BODY);
    if (!pair->d_in_place)
        build_free(&sched->build, d_out, INSTR_BY_BODY);
    return d_in;
}
