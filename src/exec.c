/*
 * The walk over a program; see exec.h.
 *
 * It decides nothing but order: driver operations first, then the instruction or event that they
 * were placed before. ALLOC and FREE reach only a backend that asks for them (buf_ at the unit level,
 * touch at the expanded one): to any other, where memory lies was settled by placement.
 * Invariant: after the first status that is not OK the backend is closed and nothing else.
 */
#include "src/exec.h"

#include <assert.h>

struct walk {
    const struct program *program;
    const struct placement *placement;
    const struct backend_ops *ops;
    void *backend;
    struct err *err;
    uint32_t step;
    const struct placed_op *segment; /* the step's next driver operation, and how many are left */
    uint32_t n_segment;
};

static inline bool reaches_backend(const struct walk *walk, const struct instr *instr)
{
    return !instr_has_buffer(instr->op) ||
           (walk->ops->buf_alloc && (instr->flags & INSTR_BY_BODY) == 0);
}

static enum status issue_rare(const struct walk *walk, enum instr_op op, uint32_t id,
                              enum stream stream, uint16_t flags)
{
    const struct backend_ops *ops = walk->ops;

    switch (op) {
    case INSTR_ALLOC:
        return ops->buf_alloc(walk->backend, id, walk->err);
    case INSTR_FREE:
        return ops->buf_free(walk->backend, id, walk->err);
    case INSTR_RECORD_STREAM:
        return ops->buf_record_stream(walk->backend, id, stream, walk->err);
    case INSTR_HOST_WAIT:
        return ops->host_wait(walk->backend, id, walk->err);
    default:
        return ops->mark ? ops->mark(walk->backend, (enum phase)id, (flags & INSTR_MARK_END) != 0,
                                     walk->err)
                         : STATUS_OK;
    }
}

/* Three cases and the rest: so few become branches, which are foretold better than a jump table. */
static inline enum status issue(const struct walk *walk, enum instr_op op, uint32_t id,
                                enum stream stream, uint16_t flags, uint32_t body_op)
{
    switch (op) {
    case INSTR_LAUNCH: {
        const struct launch launch = {.step = walk->step, .task = id, .body_op = body_op};
        return walk->ops->launch(walk->backend, &launch, walk->err);
    }
    case INSTR_RECORD:
        return walk->ops->record(walk->backend, id, stream, walk->err);
    case INSTR_WAIT:
        return walk->ops->wait(walk->backend, id, stream, walk->err);
    default:
        return issue_rare(walk, op, id, stream, flags);
    }
}

static enum status next_segment(struct walk *walk)
{
    const struct segment_op *op = &walk->segment->op;

    walk->segment++;
    walk->n_segment--;
    return walk->ops->segment ? walk->ops->segment(walk->backend, op, walk->err) : STATUS_OK;
}

/* The unit-level instruction that the next driver operation comes before. */
static uint32_t due_instr(const struct walk *walk)
{
    return walk->n_segment > 0 ? walk->segment->instr : UINT32_MAX;
}

static enum status walk_units(struct walk *walk, const struct section *section)
{
    const struct instr *instrs = walk->program->instrs;
    uint32_t due = due_instr(walk);

    for (uint32_t i = section->begin; i < section->end; i++) {
        enum status status = STATUS_OK;
        for (; due == i && status == STATUS_OK; due = due_instr(walk))
            status = next_segment(walk);
        if (status == STATUS_OK && reaches_backend(walk, &instrs[i]))
            status =
                issue(walk, instrs[i].op, instrs[i].id, instrs[i].stream, instrs[i].flags, NO_OP);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status issue_expanded(const struct walk *walk, const struct expanded *at)
{
    if (!instr_has_buffer(at->op))
        return issue(walk, at->op, at->id, at->stream, at->flags, at->body_op);
    if (!walk->ops->touch || at->op == INSTR_RECORD_STREAM)
        return STATUS_OK;
    return walk->ops->touch(walk->backend, at->id, at->bytes, at->stream, at->op == INSTR_FREE,
                            walk->err);
}

static enum status walk_expanded(struct walk *walk, enum section_id section)
{
    enum status status = STATUS_OK;
    struct expand cursor;
    struct expanded at;

    expand_begin(&cursor, walk->program, section);
    for (uint32_t i = 0; status == STATUS_OK && expand_next(&cursor, &at); i++) {
        while (status == STATUS_OK && walk->n_segment > 0 && walk->segment->event == i)
            status = next_segment(walk);
        if (status == STATUS_OK)
            status = issue_expanded(walk, &at);
    }
    return status;
}

static enum status walk_step(struct walk *walk, enum exec_level level)
{
    const enum section_id section = walk->step < SECTION_STEADY ? walk->step : SECTION_STEADY;
    enum status status;

    if (walk->placement) {
        const struct place_step *placed = placement_step(walk->placement, walk->step);
        walk->segment = placed->ops;
        walk->n_segment = placed->n_op;
    }
    if (level == EXEC_UNIT)
        status = walk_units(walk, &walk->program->sections[section]);
    else
        status = walk_expanded(walk, section);
    assert(status != STATUS_OK || walk->n_segment == 0);
    if (status == STATUS_OK && walk->ops->step_end)
        status = walk->ops->step_end(walk->backend, walk->step, walk->err);
    return status;
}

static enum status walk_run(struct walk *walk, enum exec_level level, uint32_t steps)
{
    const struct placement *placement = walk->placement;
    enum status status;

    if (placement && placement->out_of_memory && placement->oom_step <= steps)
        return err_set(walk->err, STATUS_RUN,
                       "out of memory in step %u: no room for another %llu bytes; nothing is run",
                       placement->oom_step, (unsigned long long)placement->oom_bytes);
    status = walk->ops->open(walk->backend, walk->program, placement, walk->err);
    for (walk->step = 0; status == STATUS_OK && walk->step <= steps; walk->step++)
        status = walk_step(walk, level);
    return status == STATUS_OK ? walk->ops->finish(walk->backend, walk->err) : status;
}

enum status exec_program(const struct program *program, enum exec_level level,
                         const struct placement *placement, uint32_t steps,
                         const struct backend_ops *ops, void *backend, struct err *err)
{
    struct walk walk = {
        .program = program,
        .placement = placement,
        .ops = ops,
        .backend = backend,
        .err = err,
    };
    const enum status status = walk_run(&walk, level, steps);

    ops->close(backend);
    return status;
}
