/*
 * From options to what ranks are to do: steps, numbers, debugging; see gpu/ranks.h.
 */
#ifndef SRC_CLI_RUN_JOB_H
#define SRC_CLI_RUN_JOB_H

#include "gpu/devices.h"
#include "gpu/ranks.h"
#include "gpu/resume.h"
#include "sim/engine.h"
#include "src/cli/prepare.h"
#include "src/cli/run_debug.h"
#include "src/run.h"

/* Which measured steps have time stamps at their tasks. */
enum run_stamps { STAMPS_EVERY, STAMPS_ALTERNATE };

struct run_asked {
    struct run_job job;
    struct run_real real; /* device, transport, seed, warm-up */
    struct run_debug debug;
    const struct plan *plan;
    struct resume *from;         /* NULL: from the seed */
    struct checkpoint *to;       /* NULL: nothing is saved */
    struct seeded_values seeded; /* of the rank whose process this is */
    struct resumed_values resumed;
};

/* --host-pace: what the host that is predicted with spends on each task, as the simulation has it; NULL: it is
   not asked for. */
const int64_t *run_pace(const struct options *options, const struct program *program,
                        const struct prices *prices, struct arena *arena);

/* --emulate-ranks: how long each task's stand-in lasts, which is the price of the collective; NULL: all
   ranks run. */
const int64_t *run_emulation(const struct options *options, const struct prices *prices);

/* What `run` cannot do: STATUS_USAGE, or STATUS_DEVICE for a device that is not here. */
enum status run_refuse(const struct options *options, struct err *err);

/* All of it but program and placement, which are in what is prepared. out must not move after; to be
   released on every path. A checkpoint that is to be saved has its place from here on; rank 0 of
   launched ranks makes it. */
enum status run_asked_make(const struct options *options, const struct prepared *prepared,
                           const struct placement *placement, const struct world *world,
                           struct run_asked *out, struct err *err);
/* --timeout, of which 0 is as long as it likes. */
int64_t run_timeout_ns(const struct options *options);

/* The run did all: its checkpoint is where it was asked for. */
enum status run_asked_commit(struct run_asked *asked, struct err *err);
void run_asked_release(struct run_asked *asked);

#endif
