/*
 * One pass of the allocator over a section, act by act: what placement before a run (src/place.c)
 * and memory that depends on times (sim/timed_memory.c) share.
 *
 * One allocator lives through all passes, and one handle per expanded id: a section's ids are
 * allocated anew in each pass, ids that live on keep their handle. Streams and pools are the same
 * numbers. Nothing here decides an address or knows a time; who knows it is told of each act.
 *
 * A pass is what expand_next() would walk, with events counted alike, but each body's tape is read
 * once and kept as the acts on memory in it: most passes over a body are repetitions.
 */
#ifndef SRC_PLACE_PASS_H
#define SRC_PLACE_PASS_H

#include "src/place.h"

struct pass_clock {
    void *self;
    /* kernels: launches that the host has made of the body at hand, 0 outside of one. */
    void (*before_alloc)(void *self, uint32_t kernels);
    /* What was freed waits for an event on each of these streams; bits. */
    void (*deferred)(void *self, uint32_t streams);
};

struct memory_act {
    uint64_t bytes;
    uint32_t slot, event; /* event: index in the body's tape */
    uint32_t kernels;     /* launches before it */
    uint8_t memory_class; /* of internal slots */
    bool frees, boundary;
};

struct body_acts {
    struct memory_act *acts; /* NULL: not read yet */
    uint32_t n;
};

struct place_pass {
    const struct program *program;
    struct alloc *alloc;
    const struct alloc_stats *stats; /* the allocator's, now */
    alloc_block *blocks;             /* by expanded id */
    struct body_acts *bodies;
    struct arena *arena;
    struct placement *out;
    struct memory_curve *curve;     /* NULL: not of this pass */
    const struct pass_clock *clock; /* NULL: events are complete at once */

    struct place_step *step; /* the current pass */
    struct alloc_stats before;
    uint32_t cap_op;
    uint32_t instr, event; /* where in it: at the unit level, the caller's; of the expanded walk */
    uint32_t kernels;      /* of the body at hand */
    uint16_t unit;         /* whose memory or body it is */
    uint8_t phase;
    uint64_t peak_bytes;
    uint32_t driver_calls; /* as far as they are noted */
};

void place_pass_init(struct place_pass *pass, const struct program *program,
                     const struct alloc_config *config, struct arena *arena, struct placement *out);
void place_pass_begin(struct place_pass *pass, enum section_id section, struct place_step *step);
void place_pass_end(struct place_pass *pass); /* statistics of the pass */

/* All members of a buffer. false: memory did not suffice; where, and for what, is in *out. */
bool place_pass_alloc(struct place_pass *pass, uint32_t buffer);
void place_pass_free(struct place_pass *pass, uint32_t buffer);
void place_pass_record_stream(struct place_pass *pass, uint32_t buffer, enum stream user);
/* A LAUNCH with the tape of its body; false as above. */
bool place_pass_launch(struct place_pass *pass, uint32_t task);
void place_pass_mark(struct place_pass *pass, enum phase phase, bool end);

#endif
