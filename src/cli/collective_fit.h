/*
 * A cluster's numbers for collectives from times that were measured.
 *
 * Of each kind, number of ranks and of nodes a row: its formula, and the times themselves as points.
 * Of all-gathers and reduce-scatters between nodes also the network, for numbers of nodes that were
 * not measured. Judged by what sim/cost says. Errors are relative: each message counts as any other.
 */
#ifndef SRC_CLI_COLLECTIVE_FIT_H
#define SRC_CLI_COLLECTIVE_FIT_H

#include "src/cluster.h"

/* A row needs as many sizes: three make a formula, one is left out in turn. */
enum { FIT_LEAST_SIZES = 4, FIT_LEAST_BYTES = 65536 };

/* How far predictions are from what was measured; shares of a prediction. */
struct fit_errors {
    double faster, slower; /* nine of ten are not further off to either side */
    double median, worst;  /* to either side */
    double worst_bytes;    /* of the message that is worst */
};

/*
 * a, b and B, and the points; kind, ranks and nodes are there. points: by bytes, each once, at
 * least FIT_LEAST_SIZES - 1; they become the row's.
 */
void collective_fit_row(struct collective_row *row, const struct collective_point *points,
                        uint32_t n);

/* Of one point: measured over predicted, less 1, by a row that is fitted without it. */
double collective_fit_error(const struct collective_row *row, uint32_t left_out);
/* Of all points, each predicted so. */
struct fit_errors collective_fit_errors(const struct collective_row *row);

struct node_sample {
    uint8_t kind;          /* for the network: TASK_ALL_GATHER or TASK_REDUCE_SCATTER */
    uint32_t ranks, nodes; /* ranks of all nodes together */
    double bytes, seconds;
};

/*
 * nic_efficiency and rank_latency_s of a cluster that has rows of one node; a spread, no source. Of
 * messages between nodes, at least one. The adapter's own rate and node_decay stay: such times show
 * only their product with the efficiency and their sum with the latency (spec COST section 4). An
 * all-reduce tells nothing of a ring's network: NCCL has trees and switches that add for it.
 */
struct fit_errors collective_fit_network(struct cluster *cluster, const struct node_sample *samples,
                                         uint32_t n);

#endif
