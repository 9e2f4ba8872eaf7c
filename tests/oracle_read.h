/*
 * Files of recorded expectations (tests/oracle/README.md) as plain structs.
 *
 * Strict: a key that is not known, or a value that makes no sense, is an error with its place. What
 * explains a case to people is known and passed over. Everything lives in the file's arena, and
 * strings in its document.
 */
#ifndef TESTS_ORACLE_READ_H
#define TESTS_ORACLE_READ_H

#include "tests/oracle_event.h"

struct oracle_events {
    bool stated;
    struct oracle_event *at;
    uint32_t n;
};

enum { ORACLE_FORWARD, ORACLE_BACKWARD, ORACLE_SPANS };

/* By kind of event; one that is not named is 0. */
struct oracle_counts {
    bool stated;
    uint64_t of[ORACLE_EVENT_N];
};

struct oracle_param {
    const char *name, *unit;
    uint64_t shape[PARAM_MAX_DIMS];
    uint64_t dim, chunk, numel, offset;
    bool has_offset;
    uint32_t n_dim, n_rank;
    uint64_t *rows; /* by rank */
};

/* A row of the division factors; what a transcribed row does not say is not compared. */
struct oracle_divide {
    bool stated;
    uint8_t dtype;
    double factor; /* 0: none was set */
    uint64_t shard, replicate;
    bool force_sum;
    bool has_divisors, has_divisions;
    double pre, post;                   /* 1: no division */
    uint64_t divisions;                 /* how many kernels divide */
    uint8_t reduce_scatter, all_reduce; /* enum reduction; NONE: not stated */
};

enum oracle_moment {
    MOMENT_INIT,
    MOMENT_FORWARD,
    MOMENT_BACKWARD,
    MOMENT_OPTIMIZER,
    MOMENT_ZERO_GRAD,
    MOMENT_N
};

/* So many parameters of FP32, and a buffer that measurements are allowed. */
struct oracle_peak {
    enum oracle_moment moment;
    bool is_current; /* what is allocated at its end, not the most so far */
    double bound_bytes, buffer_bytes;
    double block_bytes; /* the largest block, unsharded */
};

/* Dtypes that the packs of a unit read, as sets: bit enum dtype. */
struct oracle_reads {
    const char *unit; /* NULL: every pack of every unit */
    unsigned *packs;
    uint32_t n;
};

struct oracle_case {
    const char *name;
    const char *needs; /* what no option says, or NULL */
    struct json_at model, units_file, numbers;
    bool has_model, has_units_file, has_numbers;
    const char **args;
    uint32_t n_arg;
    unsigned kinds; /* bit enum oracle_event_kind */
    struct oracle_events events, first, spans[ORACLE_SPANS];
    struct oracle_counts counts, span_counts[ORACLE_SPANS];
    struct oracle_param *params;
    uint32_t n_param;
    struct oracle_divide divide;
    struct oracle_peak *peaks;
    uint32_t n_peak;
    struct oracle_reads *reads;
    uint32_t n_read;
};

struct oracle_file {
    struct arena arena;
    struct json_doc doc;
    bool recorded;     /* else transcribed */
    const char *torch; /* of a recorded one */
    struct oracle_case *cases;
    uint32_t n_case;
};

/* To be released on every path. */
enum status oracle_read(const char *path, struct oracle_file *out, struct err *err);
void oracle_release(struct oracle_file *file);

#endif
