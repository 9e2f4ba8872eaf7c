/*
 * Appending to a program; see program_builder.h. Arrays grow by doubling in the program's arena.
 */
#include "src/program_builder.h"

#include <string.h>

void program_builder_init(struct program_builder *builder, const struct plan *plan,
                          const struct layout *layout, const struct body_table *bodies,
                          struct arena *arena, struct program *program)
{
    *builder = (struct program_builder){.program = program, .arena = arena};
    *program = (struct program){.plan = plan, .layout = layout, .bodies = bodies};
    /* What two sections come to by units and segments: no growth in the usual case. */
    const uint32_t times = (uint32_t)plan->options.accum;
    const uint32_t units = (plan->n_unit + 4) * times, segments = (plan->n_segment + 4) * times;
    builder->cap_instr = 96 * units + 12 * segments;
    builder->cap_task = 18 * units + 4 * segments;
    builder->cap_access = 30 * units + 30 * segments;
    builder->cap_buffer = 18 * units + 5 * segments;
    builder->cap_frame = 3 * segments + 2 * (uint32_t)plan->options.train_metrics * times;
    builder->cap_frame_grad = 3 * segments;
    program->instrs = arena_take(arena, builder->cap_instr * sizeof(struct instr));
    program->tasks = arena_take(arena, builder->cap_task * sizeof(struct task));
    program->accesses = arena_take(arena, builder->cap_access * sizeof(struct access));
    program->buffers = arena_take(arena, builder->cap_buffer * sizeof(struct buffer));
    program->frames = arena_take(arena, builder->cap_frame * sizeof(struct frame));
    program->frame_grads = arena_take(arena, builder->cap_frame_grad * sizeof(uint32_t));
}

void build_section_begin(struct program_builder *builder, enum section_id section)
{
    struct program *p = builder->program;
    builder->section = (uint8_t)section;
    p->sections[section] = (struct section){.begin = p->n_instr, .end = p->n_instr};
    builder->start[section] = (struct section_start){.buffer = p->n_buffer,
                                                     .task = p->n_task,
                                                     .access = p->n_access,
                                                     .frame = p->n_frame,
                                                     .event = p->n_event,
                                                     .frame_grad = p->n_frame_grad,
                                                     .expanded = p->n_expanded};
}

void build_rewind_section(struct program_builder *builder, enum section_id section)
{
    struct program *p = builder->program;
    const struct section_start *start = &builder->start[section];

    p->n_instr = p->sections[section].begin;
    p->n_buffer = start->buffer;
    p->n_task = start->task;
    p->n_access = start->access;
    p->n_frame = start->frame;
    p->n_event = start->event;
    p->n_frame_grad = start->frame_grad;
    p->n_expanded = start->expanded;
}

void build_section_end(struct program_builder *builder)
{
    struct program *p = builder->program;
    p->sections[builder->section].end = p->n_instr;
}

#define GROW(builder, array, n, cap) \
    (array) = arena_grow((builder)->arena, (array), &(cap), (n), sizeof *(array))

void build_grow_instrs(struct program_builder *builder, uint32_t n)
{
    struct program *p = builder->program;
    GROW(builder, p->instrs, p->n_instr + n, builder->cap_instr);
}

void build_grow_tasks(struct program_builder *builder, uint32_t n)
{
    struct program *p = builder->program;
    GROW(builder, p->tasks, p->n_task + n, builder->cap_task);
}

void build_grow_accesses(struct program_builder *builder, uint32_t n)
{
    struct program *p = builder->program;
    GROW(builder, p->accesses, p->n_access + n, builder->cap_access);
}

void build_grow_buffers(struct program_builder *builder, uint32_t n)
{
    struct program *p = builder->program;
    GROW(builder, p->buffers, p->n_buffer + n, builder->cap_buffer);
}

void build_grow_frames(struct program_builder *builder, uint32_t n)
{
    struct program *p = builder->program;
    GROW(builder, p->frames, p->n_frame + n, builder->cap_frame);
}

void build_grow_frame_grads(struct program_builder *builder, uint32_t n)
{
    struct program *p = builder->program;
    GROW(builder, p->frame_grads, p->n_frame_grad + n, builder->cap_frame_grad);
}

uint32_t build_members(struct program_builder *builder, const uint64_t *bytes, uint32_t n)
{
    struct program *p = builder->program;
    const uint32_t first = p->n_member;
    if (p->n_member + n > builder->cap_member)
        p->member_bytes = arena_grow(builder->arena, p->member_bytes, &builder->cap_member,
                                     p->n_member + n, sizeof *p->member_bytes);
    memcpy(p->member_bytes + first, bytes, n * sizeof *bytes);
    p->n_member += n;
    return first;
}

/* Ids from first on are moved up by this much in a repetition; older ones stay. */
struct shift {
    uint32_t first, by;
};

static uint32_t shifted(uint32_t id, struct shift shift)
{
    return id >= shift.first && id != UINT32_MAX ? id + shift.by : id;
}

static void repeat_instrs(struct program_builder *builder, struct section from,
                          struct shift buffers, struct shift tasks, struct shift events)
{
    const struct shift of_op[INSTR_N] = {
        [INSTR_ALLOC] = buffers, [INSTR_FREE] = buffers,          [INSTR_LAUNCH] = tasks,
        [INSTR_RECORD] = events, [INSTR_WAIT] = events,           [INSTR_HOST_WAIT] = events,
        [INSTR_MARK] = {0},      [INSTR_RECORD_STREAM] = buffers,
    };
    struct program *p = builder->program;

    build_grow_instrs(builder, from.end - from.begin);
    const struct instr *end = &p->instrs[from.end];
    struct instr *out = &p->instrs[p->n_instr];
    for (const struct instr *in = &p->instrs[from.begin]; in < end; in++) {
        const struct shift shift = of_op[in->op];
        if (in->id < shift.first) /* older than the section, so it begins in it */
            continue;
        *out = *in;
        out++->id += shift.by;
    }
    p->n_instr = (uint32_t)(out - p->instrs);
}

static void repeat_buffers(struct program_builder *builder, uint32_t first, uint32_t n)
{
    struct program *p = builder->program;
    uint32_t expanded = p->n_expanded;

    build_grow_buffers(builder, n);
    struct buffer *out = &p->buffers[p->n_buffer];
    for (uint32_t i = 0; i < n; i++) {
        out[i] = p->buffers[first + i];
        out[i].expanded = expanded;
        expanded += out[i].n_member;
    }
    p->n_buffer += n;
    p->n_expanded = expanded;
}

static void repeat_tasks(struct program_builder *builder, uint32_t first, uint32_t n,
                         uint32_t accesses, uint32_t frames)
{
    struct program *p = builder->program;

    build_grow_tasks(builder, n);
    struct task *out = &p->tasks[p->n_task];
    for (uint32_t i = 0; i < n; i++) {
        out[i] = p->tasks[first + i];
        out[i].access += accesses;
        out[i].frame += out[i].frame == NO_FRAME ? 0 : frames;
    }
    p->n_task += n;
}

static void repeat_accesses(struct program_builder *builder, uint32_t first, uint32_t n,
                            struct shift buffers)
{
    struct program *p = builder->program;

    build_grow_accesses(builder, n);
    struct access *out = &p->accesses[p->n_access];
    for (uint32_t i = 0; i < n; i++) {
        out[i] = p->accesses[first + i];
        if (out[i].buffer >= buffers.first)
            out[i].buffer += buffers.by;
    }
    p->n_access += n;
}

/* end: of the frame's gradients. */
static void repeat_frame(struct program_builder *builder, uint32_t id, uint32_t end,
                         struct shift buffers)
{
    struct program *p = builder->program;
    const struct frame old = p->frames[id];
    const uint32_t repeated = build_frame(builder, old.pair, old.segment, end - old.grads);
    struct frame *frame = &p->frames[repeated]; /* frames may have moved */

    frame->in = shifted(old.in, buffers);
    frame->out = shifted(old.out, buffers);
    frame->d_out = shifted(old.d_out, buffers);
    frame->d_in = shifted(old.d_in, buffers);
    for (uint32_t i = old.grads; i < end; i++)
        p->frame_grads[frame->grads + i - old.grads] = shifted(p->frame_grads[i], buffers);
}

static void repeat_frames(struct program_builder *builder, uint32_t first, uint32_t n,
                          struct shift buffers)
{
    const struct program *p = builder->program;
    const uint32_t end = p->n_frame_grad;

    for (uint32_t i = first; i < first + n; i++)
        repeat_frame(builder, i, i + 1 < first + n ? p->frames[i + 1].grads : end, buffers);
}

void build_repeat_section(struct program_builder *builder, enum section_id from, enum section_id to)
{
    struct program *p = builder->program;
    const struct section_start start = builder->start[from];
    const struct shift buffers = {start.buffer, p->n_buffer - start.buffer};
    const struct shift tasks = {start.task, p->n_task - start.task};
    const struct shift events = {start.event, p->n_event - start.event};
    const uint32_t n_access = p->n_access - start.access, n_frame = p->n_frame - start.frame;

    build_section_begin(builder, to);
    repeat_buffers(builder, start.buffer, buffers.by);
    repeat_frames(builder, start.frame, n_frame, buffers);
    repeat_accesses(builder, start.access, n_access, buffers);
    repeat_tasks(builder, start.task, tasks.by, n_access, n_frame);
    repeat_instrs(builder, p->sections[from], buffers, tasks, events);
    p->n_event += events.by;
    build_section_end(builder);
}
