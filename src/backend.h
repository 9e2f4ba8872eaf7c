/*
 * The seam between the one executor loop and what executes.
 *
 * A backend decides nothing: order, streams, waits, lifetimes and addresses are given. Calls come
 * in host order from src/exec.c alone. Memory reaches a backend as segments only, and only where
 * there is a placement: before the instruction (unit level) or event (expanded level) that needs
 * them. release and unmap drain the device first. Every call but close returns a status; after a
 * status that is not OK only close is called. Optional members (NULL): segment, mark, step_end, touch,
 * and the three buf_ together. Those are for memory that is tied to time, of a program without
 * placement at the unit level: what a body's tape does belongs to its LAUNCH. touch is for who watches
 * memory at the expanded level: each birth and death, of members of groups and of slots on tapes too.
 */
#ifndef SRC_BACKEND_H
#define SRC_BACKEND_H

#include "src/place.h"

struct launch {
    uint32_t step; /* 0 is init, 1 the first step, … */
    uint32_t task;
    uint32_t body_op; /* expanded level: in body_table.ops; NO_OP for a task that is no body */
};

struct backend_ops {
    const char *name;
    enum status (*open)(void *self, const struct program *program,
                        const struct placement *placement, struct err *err);
    enum status (*segment)(void *self, const struct segment_op *op, struct err *err);
    enum status (*buf_alloc)(void *self, uint32_t buffer, struct err *err);
    enum status (*buf_free)(void *self, uint32_t buffer, struct err *err);
    enum status (*buf_record_stream)(void *self, uint32_t buffer, enum stream user,
                                     struct err *err);
    enum status (*touch)(void *self, uint32_t expanded_id, uint64_t bytes, enum stream pool,
                         bool freed, struct err *err);
    enum status (*launch)(void *self, const struct launch *launch, struct err *err);
    enum status (*record)(void *self, uint32_t event, enum stream stream, struct err *err);
    enum status (*wait)(void *self, uint32_t event, enum stream stream, struct err *err);
    enum status (*host_wait)(void *self, uint32_t event, struct err *err);
    enum status (*mark)(void *self, enum phase phase, bool end, struct err *err);
    enum status (*step_end)(void *self, uint32_t step, struct err *err); /* not a synchronisation */
    enum status (*finish)(void *self, struct err *err); /* all is done when it returns */
    void (*close)(void *self);
};

#endif
