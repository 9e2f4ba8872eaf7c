/*
 * Runs for tests of what keeps and shows them: random ones, and one of numbers made by hand.
 */
#ifndef TESTS_RUN_MAKE_H
#define TESTS_RUN_MAKE_H

#include "src/run.h"

/*
 * Random, but as a run must be: no overlap on a stream, classes that sum, samples in order. Every
 * field takes its extremes somewhere. At most n_task tasks and n_unit units.
 */
void run_make(struct run *run, struct arena *arena, uint64_t *random, uint32_t n_task,
              uint32_t n_unit);

/*
 * Two units, two collectives that are partly hidden, times in small numbers; see the .c for the
 * picture. exposed_comm_ns is 70.
 */
void run_by_hand(struct run *run);
/* The same program as it was measured in two ranks, with other times; exposed_comm_ns is 50. */
void run_by_hand_real(struct run *run);
/* The same again, but a rank died before any step was done: no tasks, no times. */
void run_by_hand_failed(struct run *run);

/* Random, what a run of kind real has beside any other; run_make() calls it for those. */
void run_make_real(struct run_real *real, struct arena *arena, uint64_t *random);

/* The first difference in words, or NULL; created_ns is not compared. */
const char *run_difference(const struct run *a, const struct run *b);
const char *run_real_difference(const struct run_real *a, const struct run_real *b);

#endif
