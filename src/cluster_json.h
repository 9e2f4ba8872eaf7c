/*
 * A cluster as one JSON document with every number, its spread and its source.
 *
 * For people (`unshard cluster show --json`) and for the run history, which tells clusters apart by
 * this text: equal clusters have equal text, and others have not. Not the format of a cluster file.
 */
#ifndef SRC_CLUSTER_JSON_H
#define SRC_CLUSTER_JSON_H

#include "src/cluster.h"
#include "src/json.h"

/* Belongs to the caller: json_free(). */
struct cJSON *cluster_to_json(const struct cluster *cluster);

#endif
