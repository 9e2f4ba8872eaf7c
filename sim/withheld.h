/*
 * Times of a step on a GPU that has less than it has, where memory is tied to time.
 *
 * Ranks differ, and what streams use comes back late on any of them: a real allocator needs more
 * than the simulated one, which is that of a single rank. So times near the limit are those with
 * some of the memory withheld (cluster.headroom_bytes). Memory itself, and whether a step fits, are
 * not: they are what the simulated allocator says of the whole GPU. Where both numbers are from:
 * doc/accuracy.md.
 */
#ifndef SIM_WITHHELD_H
#define SIM_WITHHELD_H

#include "sim/simulate.h"

struct withheld {
    uint64_t bytes;         /* 0: nothing, and what follows is nothing either */
    struct retries retries; /* those that times have then */
};

/*
 * config: of the whole GPU, on which the step gets through. Of most_bytes as many sixteenths are
 * withheld as it gets through without; time and engine (dies with arena) are those of that. They
 * are untouched, and nothing is withheld, where that is none, or where the step happens to be no
 * slower than *time without. Errors are those of simulate_timed() but for memory that is short.
 */
enum status simulate_withheld(const struct program *program, const struct prices *prices,
                              const struct alloc_config *config, uint64_t most_bytes,
                              struct arena *arena, struct step_time *time, struct engine **engine,
                              struct withheld *out, struct err *err);

#endif
