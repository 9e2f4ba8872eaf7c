/*
 * Requested bytes of a unit-level program, by prefix sums over its instructions and the exact
 * summaries of its bodies. No allocator, no addresses: what search uses. Invariant: equal to the
 * peak of requested bytes of the expansion, section by section.
 */
#ifndef SRC_SUMMARY_H
#define SRC_SUMMARY_H

#include "src/program.h"

struct summary {
    uint64_t peak_bytes[SECTION_N]; /* what is alive at the section's start is in it */
    uint64_t end_bytes[SECTION_N];  /* alive when the section is over */
};

void summary_of(const struct program *program, struct summary *out);

#endif
