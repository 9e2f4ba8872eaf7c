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

/* [before][rows][columns], of which the rows are sharded. A shard is [before][chunk][columns]. */
struct packed_param {
    uint64_t before, rows, columns;
    enum dtype from_dtype, to_dtype;
    uint32_t skew;    /* bytes between malloc's boundary and the first element */
    char *block, *at; /* at: the elements */
    uint64_t n_bytes;
};

struct packed_unit {
    uint32_t n_param, ranks;
    struct packed_param params[PACK_MOST_PARAMS];
    bool joins;                    /* from the shards of all ranks to whole tensors, else back */
    uint32_t slot_align;           /* of each slot in the destination; 1: packed without gaps */
    uint32_t to_skew;              /* of the destination itself */
    const char *from;              /* what offsets count from: the lowest parameter */
    struct pack_segment *segments; /* [rank][param]; joins: [param][rank] */
    uint32_t n_segment;
    uint64_t to_bytes;
};

/* Shapes, dtypes, skews and alignments, all at random. */
void packed_unit_choose(struct packed_unit *unit, uint64_t *state);

/* Shapes, dtypes, skews and alignments are the caller's; this gives memory, random elements and
   segments: rank r gets the rows from r * ceil(rows / ranks), and zeros for those that are not. */
void packed_unit_fill(struct packed_unit *unit, uint64_t *state);
void packed_unit_release(struct packed_unit *unit);

/* A buffer of to_bytes at to_skew, poisoned, with guards. Free block. */
char *packed_unit_destination(const struct packed_unit *unit, char **block);

/* How often each byte of the destination has to be written: once or not at all. Free it. */
uint8_t *packed_unit_owned(const struct packed_unit *unit);

/* What the destination has to be, element by element. Returns how many bytes or elements of a
   destination, guards included, are not. */
uint64_t packed_unit_faults(const struct packed_unit *unit, const char *to);

/* What a packing does to memory beyond the bytes it leaves: what a device would fault on or race
   about. Free written. */
struct pack_watch {
    const struct packed_unit *unit;
    const char *to;
    uint8_t *written; /* how often, by byte of the destination */
    bool warp;        /* vectors have to be aligned */
    uint64_t outside, unaligned, stray;
};

struct pack_watch pack_watch_of(const struct packed_unit *unit, const char *to, bool warp);
/* An access: reads lie in one parameter, writes in the destination. */
void pack_watch_look(struct pack_watch *watch, const char *at, uint32_t bytes, bool writes);
/* Faults of accesses and of the bytes left; says which, if there are any. */
uint64_t pack_watch_faults(const struct pack_watch *watch);

#endif
