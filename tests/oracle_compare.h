/*
 * Our program held against a recorded case: equal, or one line about the first difference.
 *
 * A check compares what the case states and nothing else. Exact everywhere but for bounds on
 * memory. Knows no case by name.
 */
#ifndef TESTS_ORACLE_COMPARE_H
#define TESTS_ORACLE_COMPARE_H

#include "tests/oracle_project.h"

/* A case and what we made of it. */
struct oracle_subject {
    const struct oracle_case *of;
    const struct prepared *prepared; /* NULL for a case without model */
    struct oracle_projection steady, first;
};

/* prepared may be NULL; the arena holds the projections. */
struct oracle_subject oracle_subject_of(const struct oracle_case *of,
                                        const struct prepared *prepared, struct arena *arena);

/* X(ENUM, name) */
#define ORACLE_CHECKS(X)                 \
    X(EVENTS, "events of a steady step") \
    X(FIRST, "events of the first step") \
    X(COUNTS, "counts")                  \
    X(PARAMS, "layout")                  \
    X(DIVIDE, "division")                \
    X(READS, "dtypes of gradients")      \
    X(PEAKS, "peaks of memory")

enum oracle_check {
#define X(id, name) ORACLE_CHECK_##id,
    ORACLE_CHECKS(X)
#undef X
        ORACLE_CHECK_N
};
const char *oracle_check_name(enum oracle_check check);
bool oracle_check_stated(const struct oracle_case *of, enum oracle_check check);

/* why is added to where they differ. */
bool oracle_agrees(const struct oracle_subject *subject, enum oracle_check check, struct text *why);

#endif
