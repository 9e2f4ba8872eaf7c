/*
 * Points that were met: each once, with an index in the order of coming.
 *
 * Open addressing over a table that doubles; points lie one behind the other and never move, so that
 * what points at one stays good.
 */
#ifndef SIM_POINT_SET_H
#define SIM_POINT_SET_H

#include <stdbool.h>

#include "src/arena.h"

struct point_set {
    struct arena *arena;
    uint32_t point_bytes;
    const uint8_t **points; /* by index */
    uint32_t n, cap;
    uint32_t *table, n_table; /* a power of two; index + 1, or 0 */
};

void point_set_init(struct point_set *set, uint32_t point_bytes, struct arena *arena);

bool point_set_has(const struct point_set *set, const uint8_t *point);

/* Copies the point; false where it was there. */
bool point_set_add(struct point_set *set, const uint8_t *point);

#endif
