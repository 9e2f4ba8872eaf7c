/*
 * An address for every buffer, before execution.
 *
 * Runs the allocator over the expanded program: init, first, then steady again until the
 * allocator's state at a step's end has been seen before. Steps before the period are the
 * transient. Capacity is an input: retries and out-of-memory are found here and nowhere else.
 *
 * Where a program ties memory to time (RECORD_STREAM) there is no address before it runs:
 * sim/timed_memory.c fills a placement with that of one run, whose driver operations name no
 * instruction. Placed here all the same it is as if each event were complete at the FREE.
 */
#ifndef SRC_PLACE_H
#define SRC_PLACE_H

#include "src/alloc.h"
#include "src/expand.h"
#include "src/memory_curve.h"

enum { PLACE_MAX_STEPS = 17 }; /* first and at most sixteen steady */

struct place {
    uint32_t segment; /* UINT32_MAX: no memory (0 bytes) */
    bool placed;      /* false: this pass did not allocate it */
    uint64_t offset;
};

/* A driver operation and what it must come before. */
struct placed_op {
    struct segment_op op;
    uint32_t event; /* index in the section's expanded walk */
    uint32_t instr; /* the unit-level instruction that event came from */
};

/* One pass over one section. */
struct place_step {
    struct alloc_stats stats; /* peaks, retries and ooms are those of this pass */
    uint8_t peak_phase;       /* enum phase, when allocated peaked */
    uint16_t peak_unit;       /* or NO_UNIT */
    uint32_t peak_event;      /* index in the section's expanded walk */
    struct place *places;     /* of ids first_id … first_id + n_place - 1 */
    uint32_t first_id, n_place;
    struct placed_op *ops;
    uint32_t n_op;
};

struct placement {
    struct place_step init;
    struct place_step steps[PLACE_MAX_STEPS]; /* first, steady, steady, … */
    uint32_t n_step;
    uint32_t n_walked;  /* of these; the rest are copies */
    uint32_t period;    /* steps n_step - period … n_step - 1 repeat; 0: none found within 16 */
    bool out_of_memory; /* stopped in a pass that is not counted in n_step; where, and for what: */
    uint32_t oom_step, oom_event; /* step 0 is init */
    uint64_t oom_bytes;
};

void place_program(const struct program *program, const struct alloc_config *config,
                   struct arena *arena, struct placement *out);
/* The same, and memory over the third step; curve may be NULL. */
void place_with_curve(const struct program *program, const struct alloc_config *config,
                      struct arena *arena, struct placement *out, struct memory_curve *curve);

/*
 * The pass that serves a step: 0 is init, 1 the first, later ones transient, then the period; the
 * last one where there is no period. NULL for a step that memory did not suffice for.
 */
const struct place_step *placement_step(const struct placement *placement, uint32_t step);

/* What is reserved when most is, in init, the first step or the given one; of those that are there. */
uint64_t placement_reserved_bytes(const struct placement *placement, uint32_t step);

/* Where an expanded id lies at a step, allocated in it or before; NULL for one that is not. */
const struct place *placement_place(const struct placement *placement, uint32_t step, uint32_t id);

/* Over segments, offsets and driver operations of init and all steps. */
uint64_t placement_hash(const struct placement *placement);

#endif
