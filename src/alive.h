/*
 * What is alive at one event of a steady step, by name: the answer to which tensors make a peak.
 *
 * By the program alone, so in bytes that were asked for; what the allocator rounds up is not in it.
 * Equal tensors, of one name, class and size, are one entry.
 */
#ifndef SRC_ALIVE_H
#define SRC_ALIVE_H

#include "src/expand.h"

struct alive {
    const char *name;    /* of a body's tensor, or of a buffer's role */
    uint64_t each_bytes; /* n of these */
    uint32_t n, n_unit;  /* units that have one; 0: it belongs to none */
    uint16_t unit;       /* the first of them, or NO_UNIT */
    uint8_t memory_class;
};

/*
 * event: in the expanded walk of section steady, and done. Entries with the largest sums first, at
 * most as many as asked for. Returns their number; *out is the arena's.
 */
uint32_t alive_at(const struct program *program, uint32_t event, uint32_t most, struct arena *arena,
                  struct alive **out);

#endif
