/*
 * Times of a collective by the size of its message, as they were measured, and the points of a row that
 * become of them.
 *
 * Noise only adds: a size that took longer than a larger one had a hiccup, and is no point. Where the
 * next size is more than twice as large, NCCL may change algorithm or protocol on the way: there, at
 * powers of two, points are filled in by the steps of another machine of the kind. Prices nothing:
 * between points sim/cost_comm goes straight.
 */
#ifndef SRC_CLI_MEASURED_ROW_H
#define SRC_CLI_MEASURED_ROW_H

#include "src/cluster.h"

/* So that there is room for every power of two among the points. */
enum { MEASURED_MOST_SIZES = CLUSTER_MAX_POINTS - 64 };

struct measured_row {
    uint8_t kind;                          /* as of a row of collectives, as are these */
    uint32_t ranks, nodes;                 /* nodes: 0 and 1: in one */
    const struct collective_point *points; /* by bytes, each once, at most MEASURED_MOST_SIZES */
    uint32_t n_point;
    const struct collective_row *steps; /* measured_row_steps(); NULL: nothing is filled in */
};

/* The row of a cluster for the same ranks, if it has a shape; or NULL. */
const struct collective_row *measured_row_steps(const struct measured_row *row,
                                                const struct cluster *cluster);

/* Whether the time of point i has more noise in it than repeats differ by. */
bool measured_row_is_hiccup(const struct measured_row *row, uint32_t i);

/* All others, in their order. Returns how many; out has room for all. */
uint32_t measured_row_kept(const struct measured_row *row, struct collective_point *out);

/* Those, n of them and at least one, and what is filled in between; out: for CLUSTER_MAX_POINTS. */
uint32_t measured_row_fill(const struct measured_row *row, const struct collective_point *kept,
                           uint32_t n, struct collective_point *out);

/*
 * What a row says of a message of its own ranks and nodes, without the floor, which is of launches and
 * not of what was measured.
 */
double measured_row_s(const struct collective_row *row, double bytes);

#endif
