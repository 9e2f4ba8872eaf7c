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
    /* What two sections of a unit and microbatch come to: no growth in the usual case. */
    const uint32_t n = (plan->n_unit + 4) * (uint32_t)plan->options.accum;
    program->instrs = arena_grow(arena, NULL, &builder->cap_instr, 100 * n, sizeof(struct instr));
    program->tasks = arena_grow(arena, NULL, &builder->cap_task, 22 * n, sizeof(struct task));
    program->accesses =
        arena_grow(arena, NULL, &builder->cap_access, 72 * n, sizeof(struct access));
    program->buffers = arena_grow(arena, NULL, &builder->cap_buffer, 24 * n, sizeof(struct buffer));
    program->frames = arena_grow(arena, NULL, &builder->cap_frame, 5 * n, sizeof(struct frame));
}

void build_section_begin(struct program_builder *builder, enum section_id section)
{
    struct program *p = builder->program;
    builder->section = (uint8_t)section;
    p->sections[section] = (struct section){.begin = p->n_instr, .end = p->n_instr};
}

void build_section_end(struct program_builder *builder)
{
    struct program *p = builder->program;
    p->sections[builder->section].end = p->n_instr;
}

#define GROW(builder, array, cap)                                                        \
    (array) = arena_grow((builder)->arena, (array), &(cap), (cap) + 1, sizeof *(array))

void build_grow_instrs(struct program_builder *builder)
{
    GROW(builder, builder->program->instrs, builder->cap_instr);
}

void build_grow_tasks(struct program_builder *builder)
{
    GROW(builder, builder->program->tasks, builder->cap_task);
}

void build_grow_accesses(struct program_builder *builder)
{
    GROW(builder, builder->program->accesses, builder->cap_access);
}

void build_grow_buffers(struct program_builder *builder)
{
    GROW(builder, builder->program->buffers, builder->cap_buffer);
}

void build_grow_frames(struct program_builder *builder)
{
    GROW(builder, builder->program->frames, builder->cap_frame);
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
