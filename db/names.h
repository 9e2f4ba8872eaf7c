/*
 * The names by which the database knows kinds, streams, dtypes and the like, as numbers of this
 * program again. Private to db/.
 *
 * A name that is not known here means that another version stored it.
 */
#ifndef DB_NAMES_H
#define DB_NAMES_H

#include <stdbool.h>

/* X(ENUM, what it is in messages) */
#define NAME_SETS(X)          \
    X(RUN_KIND, "kind")       \
    X(TASK_KIND, "task kind") \
    X(STREAM, "stream")       \
    X(PHASE, "phase")         \
    X(DTYPE, "dtype")         \
    X(COMM, "communicator")   \
    X(REDUCTION, "reduction") \
    X(CLASS, "memory class")  \
    X(METRIC, "metric")

enum name_set {
#define X(id, what) NAMES_##id,
    NAME_SETS(X)
#undef X
        NAME_SET_N
};
const char *names_what(enum name_set set);

/* False where the set has no such name; a name of NULL is in none. */
bool names_find(enum name_set set, const char *name, int *out);

#endif
