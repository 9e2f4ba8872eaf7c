/*
 * The vocabulary of recorded schedules: what a step does, one event a line.
 *
 * tests/oracle/README.md defines each word. A unit's name may hold blanks and commas, so a line is
 * taken apart from both ends. Invariant: printing what was parsed gives the same line.
 */
#ifndef TESTS_ORACLE_EVENT_H
#define TESTS_ORACLE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "src/arena.h"
#include "src/json.h"
#include "src/program.h"

/* What follows the unit on the line. */
enum { EVENT_ALONE, EVENT_MOVES, EVENT_REDUCES };

/* X(ENUM, name, what follows) */
#define ORACLE_EVENTS(X)                         \
    X(COPY_IN, "copy_in", MOVES)                 \
    X(ALL_GATHER, "all_gather", MOVES)           \
    X(COPY_OUT, "copy_out", MOVES)               \
    X(RESHARD, "reshard", ALONE)                 \
    X(POST_BACKWARD, "post_backward", ALONE)     \
    X(PACK, "pack", MOVES)                       \
    X(REDUCE_SCATTER, "reduce_scatter", REDUCES) \
    X(ALL_REDUCE, "all_reduce", REDUCES)         \
    X(UNSHARD, "unshard", ALONE)

enum oracle_event_kind {
#define X(id, name, follows) ORACLE_##id,
    ORACLE_EVENTS(X)
#undef X
        ORACLE_EVENT_N
};

struct oracle_event {
    const char *unit;
    uint64_t elements;
    uint8_t kind, dtype, reduction; /* enum oracle_event_kind, dtype, reduction */
};

const char *oracle_event_name(enum oracle_event_kind kind);
/* ORACLE_EVENT_N, DTYPE_N, REDUCTION_N where no such word is known. */
enum oracle_event_kind oracle_event_kind_of(const char *word);
enum dtype oracle_dtype_of(const char *word);
enum reduction oracle_reduction_of(const char *word);

/* The string at this place. */
enum status oracle_event_parse(const struct json_at *at, struct arena *arena,
                               struct oracle_event *out, struct err *err);
void oracle_event_print(const struct oracle_event *event, struct text *out);
bool oracle_event_equal(const struct oracle_event *a, const struct oracle_event *b);

#endif
