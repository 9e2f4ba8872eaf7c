/*
 * Memory over one step, a sample for each task: the highest since the task before, and what was in
 * it. Kept by src/place.c while it places; knows no times (a run adds when the host was there).
 *
 * Invariant: by_class of a sample sums to its allocated; the largest allocated of all samples is the
 * step's peak, where something is launched after it.
 */
#ifndef SRC_MEMORY_CURVE_H
#define SRC_MEMORY_CURVE_H

#include "src/alloc.h"

struct memory_sample {
    uint32_t task; /* when it was launched, its body's tape included */
    uint64_t allocated, reserved;
    uint64_t by_class[CLASS_N];
};

struct memory_curve {
    struct arena *arena;
    struct memory_sample *samples;
    uint32_t n, cap;
    struct memory_sample next; /* the highest so far, for the sample to come */
};

/* Begin anew, from what is allocated now. */
void memory_curve_begin(struct memory_curve *curve, struct arena *arena,
                        const struct alloc_stats *now);
void memory_curve_raise(struct memory_curve *curve, const struct alloc_stats *now);
void memory_curve_launch(struct memory_curve *curve, uint32_t task, const struct alloc_stats *now);

#endif
