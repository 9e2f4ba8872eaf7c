/*
 * Names of what a run is and of its numbers; the record itself has no behaviour.
 */
#include "src/run.h"

#define X(id, name) name,
static const char *const kind_names[] = {RUN_KINDS(X)};
static const char *const metric_names[] = {RUN_METRICS(X)};
#undef X

const char *run_kind_name(enum run_kind kind)
{
    return kind_names[kind];
}

const char *run_metric_name(enum run_metric metric)
{
    return metric_names[metric];
}
