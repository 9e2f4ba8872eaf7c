/*
 * A cluster's numbers for collectives from times that were measured.
 *
 * Of each kind, number of ranks and of nodes a row: its formula, and as points the times themselves, as
 * measured_row.h takes them. Of all-gathers and reduce-scatters between nodes also the network, for
 * numbers of nodes that were not measured. Judged by what sim/cost says. Errors are relative: each
 * message counts as any other.
 */
#ifndef SRC_CLI_COLLECTIVE_FIT_H
#define SRC_CLI_COLLECTIVE_FIT_H

#include "src/cli/measured_row.h"

/* A row needs as many sizes that are no hiccups: three make a formula, one is left out in turn. */
enum { FIT_LEAST_SIZES = 4, FIT_LEAST_BYTES = 65536 };

/* How far predictions are from what was measured; shares of a prediction. */
struct fit_errors {
    double faster, slower; /* nine of ten are not further off to either side */
    double median, worst;  /* to either side */
    double worst_bytes;    /* of the message that is worst */
};

/*
 * The formula of what was measured and kept, and its points, with those that are filled in; no spread
 * and no source. points: room for CLUSTER_MAX_POINTS; they become the row's. At least
 * FIT_LEAST_SIZES - 1 have to be kept.
 */
void collective_fit_row(const struct measured_row *measured, struct collective_point *points,
                        struct collective_row *out);

/* Of one size: measured over predicted, less 1, by a row that is fitted as if it had never been. */
double collective_fit_error(const struct measured_row *measured, uint32_t left_out);
/* Of all sizes, hiccups too, each predicted so. */
struct fit_errors collective_fit_errors(const struct measured_row *measured);

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
