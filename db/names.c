/*
 * One list of names a set, in the order of its enumeration.
 */
#include "db/names.h"

#include <string.h>

#include "src/run.h"

#define X(id, name) name,
#define X3(id, name, bytes) name,
static const char *const run_kinds[] = {RUN_KINDS(X)}, *const task_kinds[] = {TASK_KINDS(X)},
                         *const streams[] = {STREAMS(X)}, *const phases[] = {PHASES(X)},
                         *const dtypes[] = {DTYPES(X3)}, *const comms[] = {COMMS(X)},
                         *const reductions[] = {REDUCTIONS(X)},
                         *const classes[] = {MEMORY_CLASSES(X)},
                         *const metrics[] = {RUN_METRICS(X)};
#undef X
#undef X3

static const struct {
    const char *const *names;
    int n;
} sets[] = {
    [NAMES_RUN_KIND] = {run_kinds, RUN_KIND_N},
    [NAMES_TASK_KIND] = {task_kinds, TASK_KIND_N},
    [NAMES_STREAM] = {streams, STREAM_N},
    [NAMES_PHASE] = {phases, PHASE_N},
    [NAMES_DTYPE] = {dtypes, DTYPE_N},
    [NAMES_COMM] = {comms, COMM_N},
    [NAMES_REDUCTION] = {reductions, REDUCTION_N},
    [NAMES_CLASS] = {classes, CLASS_N},
    [NAMES_METRIC] = {metrics, RUN_METRIC_N},
};
_Static_assert(sizeof(sets) / sizeof(sets[0]) == NAME_SET_N, "a list for each set");

const char *names_what(enum name_set set)
{
    static const char *const words[] = {
#define X(id, what) what,
        NAME_SETS(X)
#undef X
    };
    return words[set];
}

bool names_find(enum name_set set, const char *name, int *out)
{
    for (int i = 0; name && i < sets[set].n; i++) {
        if (!strcmp(sets[set].names[i], name)) {
            *out = i;
            return true;
        }
    }
    return false;
}
