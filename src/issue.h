/*
 * Instructions to calls of a backend, inline: where the operations are constants the calls are direct.
 *
 * For src/exec.c, and for a backend that a search runs by the thousand (sim/engine.c). Order is
 * all that is decided here. ALLOC and FREE reach a backend that asks for them, but not those that
 * happen within a body.
 */
#ifndef SRC_ISSUE_H
#define SRC_ISSUE_H

#include "src/backend.h"

/* All that is neither a launch nor a record nor a wait. */
enum status issue_rare(const struct backend_ops *ops, void *backend, const struct instr *instr,
                       struct err *err);

/* Three cases and the rest: so few become branches, which are foretold better than a jump table. */
static inline enum status issue(const struct backend_ops *ops, void *backend,
                                const struct instr *instr, uint32_t step, uint32_t body_op,
                                struct err *err)
{
    switch ((enum instr_op)instr->op) {
    case INSTR_LAUNCH: {
        const struct launch launch = {.step = step, .task = instr->id, .body_op = body_op};
        return ops->launch(backend, &launch, err);
    }
    case INSTR_RECORD:
        return ops->record(backend, instr->id, (enum stream)instr->stream, err);
    case INSTR_WAIT:
        return ops->wait(backend, instr->id, (enum stream)instr->stream, err);
    default:
        return issue_rare(ops, backend, instr, err);
    }
}

/* Instructions of a program, without driver operations in between. */
static inline enum status issue_range(const struct backend_ops *ops, void *backend,
                                      const struct program *program, struct section range,
                                      uint32_t step, struct err *err)
{
    const uint32_t of_buffers = 1u << INSTR_ALLOC | 1u << INSTR_FREE | 1u << INSTR_RECORD_STREAM;
    const uint32_t skipped = ops->buf_alloc ? 0 : of_buffers;
    const struct instr *end = &program->instrs[range.end];

    for (const struct instr *at = &program->instrs[range.begin]; at < end; at++) {
        if ((skipped >> at->op & 1) != 0 || (at->flags & INSTR_BY_BODY) != 0)
            continue;
        const enum status status = issue(ops, backend, at, step, NO_OP, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

#endif
