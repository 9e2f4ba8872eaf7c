/*
 * From a placed program to work: every launch of a step with its addresses, for one rank.
 *
 * Steps that share a placement share their work, which is made at the first of them. Where each byte
 * of a parameter goes is said here and in bind_pack.c, from layout and placement alone; which task
 * does it and when is the program's. Nothing is executed.
 *
 * Invariant: bound work stays valid until bind_forget(), which whoever unmaps memory calls after the
 * device has drained.
 */
#ifndef GPU_BIND_H
#define GPU_BIND_H

#include "gpu/device.h"
#include "gpu/values.h"
#include "src/backend.h"

struct bind_setup {
    const struct program *program;
    const struct placement *placement;
    uint32_t rank;
    const struct device_ops *device;
    void *device_self;
    const struct values *values;
    const struct optimizer_options *optimizer;
    float max_norm; /* of a plan that clips */
    struct step_state *state;
    const int64_t
        *emulated_ns; /* by task: how long its stand-in lasts; NULL: collectives are real */
};

struct bind;
struct bind *bind_new(const struct bind_setup *setup); /* ends with bind_free() */
void bind_free(struct bind *bind);

/* One launch: works to submit one after the other. */
struct bound {
    const struct work *works;
    uint32_t n_work;
};

/* The n-th launch of a step, counted from its begin; launch as exec gives it. */
enum status bind_launch(struct bind *bind, const struct launch *launch, uint32_t n,
                        struct bound *out, struct err *err);
void bind_forget(struct bind *bind);

/* Where an expanded id lies at a step; NULL: it has no bytes. */
char *bind_address(struct bind *bind, uint32_t step, uint32_t expanded_id);

/* The rank's place in the group of a communicator: ranks are written to ranks[], of as many as
   comm_ranks_of() says. */
struct comm_group bind_group(const struct plan *plan, enum comm comm, uint32_t rank,
                             uint32_t *ranks);
/* Of every communicator that a task uses; groups[], by enum comm, comes in zeroed. */
void bind_groups(const struct program *program, uint32_t rank, struct arena *arena,
                 struct comm_group *groups);

#endif
