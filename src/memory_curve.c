/*
 * Memory over one step; see memory_curve.h.
 */
#include "src/memory_curve.h"

#include <string.h>

static void set_next(struct memory_curve *curve, const struct alloc_stats *now)
{
    curve->next.allocated = now->allocated;
    curve->next.reserved = now->reserved;
    memcpy(curve->next.by_class, now->by_class, sizeof curve->next.by_class);
}

void memory_curve_begin(struct memory_curve *curve, struct arena *arena,
                        const struct alloc_stats *now)
{
    curve->arena = arena;
    curve->n = 0;
    set_next(curve, now);
}

void memory_curve_raise(struct memory_curve *curve, const struct alloc_stats *now)
{
    if (now->allocated > curve->next.allocated)
        set_next(curve, now);
}

void memory_curve_launch(struct memory_curve *curve, uint32_t task, const struct alloc_stats *now)
{
    if (curve->n == curve->cap)
        curve->samples = arena_grow(curve->arena, curve->samples, &curve->cap, curve->n + 1,
                                    sizeof *curve->samples);
    curve->next.task = task;
    curve->samples[curve->n++] = curve->next;
    set_next(curve, now);
}
