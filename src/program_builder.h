/*
 * Appending to a program: what the schedulers in src/schedule/ share.
 *
 * Every buffer, task and event is made here, so that ids stay dense and groups share their member
 * sizes. The builder decides nothing: which stream, which wait, which lifetime is the scheduler's.
 */
#ifndef SRC_PROGRAM_BUILDER_H
#define SRC_PROGRAM_BUILDER_H

#include "src/program.h"

struct program_builder {
    struct program *program;
    struct arena *arena;
    uint32_t cap_instr, cap_task, cap_access, cap_buffer, cap_frame, cap_frame_grad, cap_member;
    struct task *task;   /* the last one, to which accesses are added */
    uint16_t microbatch; /* of all that is made next */
    uint8_t section;     /* enum section_id */
    struct section_start {
        uint32_t buffer, task, access, frame, event; /* the first that are the section's own */
        uint32_t frame_grad, expanded;
    } start[SECTION_N];
};

void program_builder_init(struct program_builder *builder, const struct plan *plan,
                          const struct layout *layout, const struct body_table *bodies,
                          struct arena *arena, struct program *program);
void build_section_begin(struct program_builder *builder, enum section_id section);
void build_section_end(struct program_builder *builder);

/* Forget what the last section has, to build it again. */
void build_rewind_section(struct program_builder *builder, enum section_id section);

/*
 * The last section once more, as another one: with buffers, tasks, frames and events of its own.
 * What was made before the section and only begins in it (an ALLOC of scope RUN, a task of
 * TASK_INIT) is left out.
 */
void build_repeat_section(struct program_builder *builder, enum section_id from,
                          enum section_id to);

/* A run of n member sizes; returns its index, to be used by as many groups as are equal. */
uint32_t build_members(struct program_builder *builder, const uint64_t *bytes, uint32_t n);

/*
 * The rest is inline: a search builds a program per candidate, and most of its time is here. Arrays
 * grow out of line; pointers into them are good until the next append of the same kind.
 */
void build_grow_instrs(struct program_builder *builder, uint32_t n); /* room for n more */
void build_grow_tasks(struct program_builder *builder, uint32_t n);
void build_grow_accesses(struct program_builder *builder, uint32_t n);
void build_grow_buffers(struct program_builder *builder, uint32_t n);
void build_grow_frames(struct program_builder *builder, uint32_t n);
void build_grow_frame_grads(struct program_builder *builder, uint32_t n);

/* A buffer of a run of members. Not yet allocated. */
static inline uint32_t build_group(struct program_builder *builder, enum buffer_role role,
                                   enum stream pool, uint16_t unit, uint32_t member,
                                   uint32_t n_member, uint64_t bytes)
{
    struct program *p = builder->program;
    if (p->n_buffer == builder->cap_buffer)
        build_grow_buffers(builder, 1);
    p->buffers[p->n_buffer] = (struct buffer){
        .bytes = bytes,
        .member = member,
        .n_member = n_member,
        .expanded = p->n_expanded,
        .unit = unit,
        .segment = NO_SEGMENT,
        .microbatch = builder->microbatch,
        .role = (uint8_t)role,
        .pool = (uint8_t)pool,
        .scope = SCOPE_STEP,
    };
    p->n_expanded += n_member;
    return p->n_buffer++;
}

/* A buffer of one member. */
static inline uint32_t build_buffer(struct program_builder *builder, enum buffer_role role,
                                    enum stream pool, uint16_t unit, uint64_t bytes)
{
    return build_group(builder, role, pool, unit, NO_MEMBER, 1, bytes);
}

/* With n_part units whose gradients it yields: none so far. */
static inline uint32_t build_frame(struct program_builder *builder, uint32_t pair, uint32_t segment,
                                   uint32_t n_part)
{
    struct program *p = builder->program;
    if (p->n_frame == builder->cap_frame)
        build_grow_frames(builder, 1);
    if (p->n_frame_grad + n_part > builder->cap_frame_grad)
        build_grow_frame_grads(builder, n_part);
    p->frames[p->n_frame] = (struct frame){
        .pair = pair,
        .segment = segment,
        .expanded = p->n_expanded,
        .in = NO_BUFFER,
        .out = NO_BUFFER,
        .d_out = NO_BUFFER,
        .d_in = NO_BUFFER,
        .grads = p->n_frame_grad,
    };
    for (uint32_t i = 0; i < n_part; i++)
        p->frame_grads[p->n_frame_grad++] = NO_BUFFER;
    p->n_expanded += p->bodies->pairs[pair].n_slot;
    return p->n_frame++;
}

static inline void build_instr(struct program_builder *builder, enum instr_op op, uint8_t stream,
                               uint16_t flags, uint32_t id)
{
    struct program *p = builder->program;
    if (p->n_instr == builder->cap_instr)
        build_grow_instrs(builder, 1);
    p->instrs[p->n_instr++] =
        (struct instr){.op = (uint8_t)op, .stream = stream, .flags = flags, .id = id};
}

static inline void build_alloc(struct program_builder *builder, uint32_t buffer, uint16_t flags)
{
    build_instr(builder, INSTR_ALLOC, builder->program->buffers[buffer].pool, flags, buffer);
}

static inline void build_free(struct program_builder *builder, uint32_t buffer, uint16_t flags)
{
    build_instr(builder, INSTR_FREE, builder->program->buffers[buffer].pool, flags, buffer);
}

static inline void build_record_stream(struct program_builder *builder, uint32_t buffer,
                                       enum stream user)
{
    build_instr(builder, INSTR_RECORD_STREAM, (uint8_t)user, 0, buffer);
}

/* A task that is launched later; accesses are then added to it, before the next task. */
static inline struct task *build_task(struct program_builder *builder, enum task_kind kind,
                                      enum stream stream, uint16_t unit)
{
    struct program *p = builder->program;
    if (p->n_task == builder->cap_task)
        build_grow_tasks(builder, 1);
    struct task *task = builder->task = &p->tasks[p->n_task++];
    *task = (struct task){
        .kind = (uint8_t)kind,
        .stream = (uint8_t)stream,
        .comm = COMM_NONE,
        .kernels = 1,
        .unit = unit,
        .microbatch = builder->microbatch,
        .body = NO_BODY,
        .frame = NO_FRAME,
        .access = p->n_access,
        .divisor = 1,
    };
    return task;
}

/* A task and its LAUNCH. */
static inline struct task *build_launch(struct program_builder *builder, enum task_kind kind,
                                        enum stream stream, uint16_t unit)
{
    build_instr(builder, INSTR_LAUNCH, (uint8_t)stream, 0, builder->program->n_task);
    return build_task(builder, kind, stream, unit);
}

static inline void build_access(struct program_builder *builder, uint32_t buffer,
                                enum access_mode mode)
{
    struct program *p = builder->program;
    if (p->n_access == builder->cap_access)
        build_grow_accesses(builder, 1);
    p->accesses[p->n_access++] = (struct access){.buffer = buffer, .mode = mode};
    builder->task->n_access++;
}

/* Returns the event. */
static inline uint32_t build_record(struct program_builder *builder, enum stream stream)
{
    const uint32_t event = builder->program->n_event++;
    build_instr(builder, INSTR_RECORD, (uint8_t)stream, 0, event);
    return event;
}

static inline void build_wait(struct program_builder *builder, enum stream stream, uint32_t event)
{
    build_instr(builder, INSTR_WAIT, (uint8_t)stream, 0, event);
}

static inline void build_host_wait(struct program_builder *builder, uint32_t event)
{
    build_instr(builder, INSTR_HOST_WAIT, STREAM_C, 0, event);
    builder->program->host_waits = true;
}

static inline void build_mark(struct program_builder *builder, enum phase phase, bool end)
{
    build_instr(builder, INSTR_MARK, STREAM_C, end ? INSTR_MARK_END : 0, phase);
}

#endif
