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

#include "src/issue.h"

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

enum status issue_rare(const struct backend_ops *ops, void *backend, const struct instr *instr,
                       struct err *err)
{
    const bool end = (instr->flags & INSTR_MARK_END) != 0;

    switch ((enum instr_op)instr->op) {
    case INSTR_ALLOC:
        return ops->buf_alloc(backend, instr->id, err);
    case INSTR_FREE:
        return ops->buf_free(backend, instr->id, err);
    case INSTR_RECORD_STREAM:
        return ops->buf_record_stream(backend, instr->id, (enum stream)instr->stream, err);
    case INSTR_HOST_WAIT:
        return ops->host_wait(backend, instr->id, err);
    default:
        return ops->mark ? ops->mark(backend, (enum phase)instr->id, end, err) : STATUS_OK;
    }
}

static enum status next_segment(struct walk *walk)
{
    const struct segment_op *op = &walk->segment->op;

    walk->segment++;
    walk->n_segment--;
    return walk->ops->segment ? walk->ops->segment(walk->backend, op, walk->err) : STATUS_OK;
}

static enum status walk_range(const struct walk *walk, uint32_t begin, uint32_t end)
{
    const struct section range = {.begin = begin, .end = end};
    return issue_range(walk->ops, walk->backend, walk->program, range, walk->step, walk->err);
}

static enum status walk_units(struct walk *walk, const struct section *section)
{
    uint32_t next = section->begin;
    enum status status = STATUS_OK;

    while (status == STATUS_OK && walk->n_segment > 0) {
        const uint32_t due = walk->segment->instr;
        status = walk_range(walk, next, due);
        if (status == STATUS_OK)
            status = next_segment(walk);
        next = due;
    }
    return status == STATUS_OK ? walk_range(walk, next, section->end) : status;
}

static enum status issue_expanded(const struct walk *walk, const struct expanded *at)
{
    if (!instr_has_buffer(at->op)) {
        const struct instr instr = {
            .op = (uint8_t)at->op, .stream = (uint8_t)at->stream, .flags = at->flags, .id = at->id};
        return issue(walk->ops, walk->backend, &instr, walk->step, at->body_op, walk->err);
    }
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
