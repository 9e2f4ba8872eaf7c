/*
 * The few plans of a search that are placed: what the allocator reserves for them is known.
 *
 * Requested bytes say little of it: units of many sizes leave holes that units of one size fill again.
 * So not only the fastest are placed, but the fastest of each degree of evenness too, and what is on the
 * front of time and requested bytes. Where none of those fits, further ones are, the fastest and the
 * smallest, until one does or a thousand were.
 */
#ifndef SIM_FINALISTS_H
#define SIM_FINALISTS_H

#include "sim/search.h"
#include "src/alloc.h"

struct finalist {
    uint32_t found; /* index in the search's result */
    struct placed placed;
    bool on_front; /* none of those that fit is as fast and reserves as little */
};

struct finalists {
    struct finalist *at; /* those that fit first, without retries before others, and by time; then
                            those that do not, by what they reserve */
    uint32_t n, n_fit;
};

/* Everything lives in the arena. config: with the capacity that is left for torch. */
void finalists_place(const struct space *space, const struct cluster *cluster,
                     const struct body_table *bodies, const struct search_result *result,
                     const struct alloc_config *config, uint32_t jobs, struct arena *arena,
                     struct finalists *out);

#endif
