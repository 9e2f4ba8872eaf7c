/*
 * Fills of what was freed; see poison.h.
 */
#include "gpu/poison.h"

#include <string.h>

enum { POISON = 0xA5 };

void poison_init(struct poison *poison, const struct program *program,
                 const struct device_ops *device, void *device_self, struct arena *arena)
{
    *poison = (struct poison){.program = program,
                              .device = device,
                              .device_self = device_self,
                              .arena = arena,
                              .born = arena_array(arena, uint32_t, program->n_expanded + 1)};
}

void poison_note_birth(struct poison *poison, uint32_t expanded_id)
{
    poison->born[expanded_id] = ++poison->now;
}

void poison_note_death(struct poison *poison, enum stream pool, char *at, uint64_t bytes)
{
    struct freed_list *list = &poison->freed[pool];

    list->at = arena_grow(poison->arena, list->at, &list->cap, list->n + 1, sizeof *list->at);
    list->at[list->n++] = (struct freed){.at = at, .bytes = bytes, .when = ++poison->now};
}

void poison_forget(struct poison *poison)
{
    for (int s = 0; s < STREAM_N; s++)
        poison->freed[s].n = 0;
}

static enum status fill(struct poison *poison, enum stream stream, const struct freed *freed,
                        struct err *err)
{
    struct work *work = arena_array(poison->arena, struct work, 1);
    const struct submission submission = {.work = work};

    *work = (struct work){.kind = WORK_FILL,
                          .is.fill = {.to = freed->at, .bytes = freed->bytes, .value = POISON}};
    return poison->device->submit(poison->device_self, stream, &submission, err);
}

/* What was freed before the one that is written now was born. */
static enum status take_older(struct poison *poison, enum stream pool, uint32_t born, bool fills,
                              struct err *err)
{
    struct freed_list *list = &poison->freed[pool];
    enum status status = STATUS_OK;
    uint32_t n = 0;

    for (; n < list->n && list->at[n].when < born && status == STATUS_OK; n++)
        if (fills)
            status = fill(poison, pool, &list->at[n], err);
    if (n == 0)
        return STATUS_OK;
    list->n -= n;
    memmove(list->at, list->at + n, list->n * sizeof *list->at);
    return status;
}

/* Bodies write what is born on their tape, on the stream of their pool. */
enum status poison_before(struct poison *poison, const struct launch *launch, struct err *err)
{
    const struct program *program = poison->program;
    const struct task *task = &program->tasks[launch->task];
    enum status status = STATUS_OK;

    if (launch->body_op != NO_OP)
        return take_older(poison, STREAM_C, UINT32_MAX, true, err);
    for (uint32_t i = 0; i < task->n_access && status == STATUS_OK; i++) {
        const struct access *access = &program->accesses[task->access + i];
        const struct buffer *buffer = &program->buffers[access->buffer];
        if (access->mode != ACCESS_READ)
            status = take_older(poison, (enum stream)buffer->pool, poison->born[buffer->expanded],
                                buffer->pool == task->stream, err);
    }
    return status;
}
