/*
 * Tensors alive at an event; see alive.h. Three steps: walk there and note what lives, give each a
 * name by its expanded id, fold equal ones. Ids grow with the number of a buffer, and of a frame.
 */
#include "src/alive.h"

#include <stdlib.h>
#include <string.h>

struct life {
    uint64_t bytes;
    uint8_t memory_class;
    bool alive;
};

static void walk_section(const struct program *program, enum section_id section, uint32_t n_event,
                         struct life *lives)
{
    struct expand walk;
    struct expanded event;

    expand_begin(&walk, program, section);
    for (uint32_t i = 0; i < n_event && expand_next(&walk, &event); i++)
        if (event.op == INSTR_ALLOC || event.op == INSTR_FREE)
            lives[event.id] = (struct life){.bytes = event.bytes,
                                            .memory_class = event.memory_class,
                                            .alive = event.op == INSTR_ALLOC && event.bytes > 0};
}

/* The last buffer whose first member is not behind the id. */
static const struct buffer *buffer_before(const struct program *program, uint32_t id)
{
    uint32_t low = 0, high = program->n_buffer;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (program->buffers[middle].expanded <= id)
            low = middle;
        else
            high = middle;
    }
    return &program->buffers[low];
}

static const struct frame *frame_before(const struct program *program, uint32_t id)
{
    uint32_t low = 0, high = program->n_frame;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (program->frames[middle].expanded <= id)
            low = middle;
        else
            high = middle;
    }
    return &program->frames[low];
}

static uint16_t unit_of(const struct program *program, uint32_t segment)
{
    return segment == NO_SEGMENT ? NO_UNIT : program->plan->segments[segment].unit;
}

/* A member of a buffer, or else a slot of a frame. */
static struct alive name_of(const struct program *program, uint32_t id)
{
    const struct buffer *buffer = buffer_before(program, id);

    if (id - buffer->expanded < buffer->n_member)
        return (struct alive){.name = buffer_role_name((enum buffer_role)buffer->role),
                              .unit = buffer->unit != NO_UNIT ? buffer->unit
                                                              : unit_of(program, buffer->segment)};
    const struct frame *frame = frame_before(program, id);
    const struct body_pair *pair = &program->bodies->pairs[frame->pair];
    return (struct alive){.name = program->bodies->slots[pair->slot + id - frame->expanded].name,
                          .unit = unit_of(program, frame->segment)};
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_kinds(const struct alive *x, const struct alive *y)
{
    int order = strcmp(x->name, y->name);
    order = order ? order : ORDER(x->memory_class, y->memory_class);
    return order ? order : ORDER(y->each_bytes, x->each_bytes);
}

static int by_kind(const void *a, const void *b)
{
    const struct alive *x = a, *y = b;
    const int order = compare_kinds(x, y);
    return order ? order : ORDER(x->unit, y->unit);
}

static int by_sum(const void *a, const void *b)
{
    const struct alive *x = a, *y = b;
    const int order = ORDER(y->n * y->each_bytes, x->n * x->each_bytes);
    return order ? order : compare_kinds(x, y);
}

/* Of the sorted n, equal ones into the first of them. Returns how many are left. */
static uint32_t fold(struct alive *all, uint32_t n)
{
    uint32_t distinct = 0;
    uint16_t unit = NO_UNIT;

    for (uint32_t i = 0; i < n; i++) {
        const bool is_new = distinct == 0 || compare_kinds(&all[distinct - 1], &all[i]) != 0;
        if (is_new)
            all[distinct++] = all[i];
        else
            all[distinct - 1].n++;
        all[distinct - 1].n_unit += all[i].unit != NO_UNIT && (is_new || all[i].unit != unit);
        unit = all[i].unit;
    }
    return distinct;
}

uint32_t alive_at(const struct program *program, uint32_t event, uint32_t most, struct arena *arena,
                  struct alive **out)
{
    struct life *lives = arena_array(arena, struct life, program->n_expanded + 1);
    uint32_t n = 0;

    walk_section(program, SECTION_INIT, UINT32_MAX, lives);
    walk_section(program, SECTION_FIRST, UINT32_MAX, lives);
    walk_section(program, SECTION_STEADY, event + 1, lives);
    for (uint32_t id = 0; id < program->n_expanded; id++)
        n += lives[id].alive;
    struct alive *all = arena_array(arena, struct alive, n + 1);
    n = 0;
    for (uint32_t id = 0; id < program->n_expanded; id++) {
        if (!lives[id].alive)
            continue;
        all[n] = name_of(program, id);
        all[n].each_bytes = lives[id].bytes;
        all[n].memory_class = lives[id].memory_class;
        all[n++].n = 1;
    }
    qsort(all, n, sizeof *all, by_kind);
    n = fold(all, n);
    qsort(all, n, sizeof *all, by_sum);
    *out = all;
    return n < most ? n : most;
}
