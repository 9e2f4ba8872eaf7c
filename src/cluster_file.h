/*
 * A cluster that was measured as a file that cluster_open() reads. What a file's format cannot say is
 * brought to its bound; three numbers come in the order that they need.
 */
#ifndef SRC_CLUSTER_FILE_H
#define SRC_CLUSTER_FILE_H

#include "src/cluster.h"
#include "src/json.h"

/* Of a cluster with rates; every rate and size has a source. Belongs to the caller: json_free(). */
struct cJSON *cluster_to_file(const struct cluster *cluster);

#endif
