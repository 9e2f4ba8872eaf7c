/*
 * Memory that is tied to time: a backend that has the allocator run beside the virtual clock.
 *
 * For programs with RECORD_STREAM. Each ALLOC and FREE, those on a body's tape included, reaches the
 * allocator at the host's virtual time. A freed buffer that streams still use goes into each of them
 * as an event, and its memory comes back with the first request after all of these were reached.
 * What the driver takes back in mid-step drains the device, as ever. Everything else is the engine's.
 */
#ifndef SIM_TIMED_MEMORY_H
#define SIM_TIMED_MEMORY_H

#include "sim/engine.h"
#include "src/memory_curve.h"

struct timed_memory;

/*
 * Of each step it notes statistics in *out, and a curve of step curve_step in *curve, which may be
 * NULL. Where memory does not suffice *out says where, and the run ends with STATUS_RUN.
 */
struct timed_memory *timed_memory_new(struct engine *engine, const struct alloc_config *config,
                                      uint32_t curve_step, struct arena *arena,
                                      struct placement *out, struct memory_curve *curve);
extern const struct backend_ops timed_memory_backend; /* self: struct timed_memory * */

#endif
