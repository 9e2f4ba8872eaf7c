/*
 * The tables of a cluster that a program leaves, as a list to be shown.
 *
 * Says what was left, by whom it is owned and how much wider that makes low and high; it changes no
 * price, that is sim/cost.c with sim/cost_range.h.
 */
#ifndef SIM_COST_LEFT_H
#define SIM_COST_LEFT_H

#include "sim/cost.h"
#include "sim/cost_range.h"

/* extent: all that the program asks for. row_readers: by kind the communicators, as bits, that read
   a row of it. The list and its texts are the arena's. */
struct tables_left cost_tables_left(const struct cluster *cluster, const struct program *program,
                                    const struct cost_extent *extent,
                                    const uint8_t row_readers[TASK_KIND_N], struct arena *arena);

#endif
