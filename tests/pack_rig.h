/*
 * A unit to pack: parameters in memory of their own, cut by rows over ranks, and a table's segments.
 *
 * Each parameter's memory ends where the parameter does, so that the address sanitizer sees a read
 * behind it. The destination is one buffer, poisoned, with guards on both sides; between slots there
 * may be bytes that belong to nobody and have to stay poison.
 */
#ifndef TESTS_PACK_RIG_H
#define TESTS_PACK_RIG_H

#include "gpu/pack.h"

enum { PACK_POISON = 0xa5, PACK_MOST_PARAMS = 24, PACK_GUARD_BYTES = 64 };

struct packed_param {
    uint64_t rows, columns;
    enum dtype from_dtype, to_dtype;
    uint32_t skew;    /* bytes between malloc's boundary and the first element */
    char *block, *at; /* at: the elements */
    uint64_t n_bytes;
};

struct packed_unit {
    uint32_t n_param, ranks;
    struct packed_param params[PACK_MOST_PARAMS];
    uint32_t slot_align;           /* of each slot in the destination; 1: packed without gaps */
    uint32_t to_skew;              /* of the destination itself */
    const char *from;              /* what offsets count from: the lowest parameter */
    struct pack_segment *segments; /* [rank][param] */
    uint32_t n_segment;
    uint64_t to_bytes;
};

/* Shapes, dtypes, skews and alignments are the caller's; this gives memory, random elements and
   segments: rank r gets the rows from r * ceil(rows / ranks), and zeros for those that are not. */
void packed_unit_fill(struct packed_unit *unit, uint64_t *state);
void packed_unit_release(struct packed_unit *unit);

/* A buffer of to_bytes at to_skew, poisoned, with guards. Free block. */
char *packed_unit_destination(const struct packed_unit *unit, char **block);

/* What the destination has to be, element by element. Returns how many bytes or elements of a
   destination, guards included, are not. */
uint64_t packed_unit_faults(const struct packed_unit *unit, const char *to);

/* The parameter that an address of a tile's source lies in; NULL: none. */
const struct packed_param *packed_unit_param(const struct packed_unit *unit, const char *at);

#endif
