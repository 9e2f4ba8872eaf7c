/*
 * What each task of a program costs on a cluster: rates become int64 nanoseconds here and nowhere
 * else.
 *
 * Formulas: spec COST sections 1 to 5, in double seconds and bytes; one function rounds. Operators
 * are priced once per distinct body, unit tasks once per distinct unit shape. No time, no queue and
 * no contention lives here: that is sim/engine.
 */
#ifndef SIM_COST_H
#define SIM_COST_H

#include "src/cluster.h"
#include "src/text.h"

/*
 * A range in which a cluster was measured and which a program leaves. What is priced from it has
 * its low divided and its high multiplied by widening; see sim/cost_range.h.
 */
struct table_left {
    const char *quantity; /* "hidden"; of a row of collectives "ranks in a node" */
    const char *tables;   /* whose range it is: "gemm.derate", "collectives", "all_gather" */
    bool has_range;       /* else it is no range: nothing was measured at all */
    uint64_t seen, min, max;
    double widening;
    const char *text; /* all of that in words */
};

struct tables_left {
    const struct table_left *at;
    uint32_t n;
};

struct prices {
    const int64_t *task_ns;       /* by task: alone on the device */
    const int64_t *last_ns;       /* by task: its last kernel; a body ends no earlier than this
                                     after the host's last launch */
    int64_t host_launch_ns;       /* host time of one kernel launch */
    int64_t host_all_gather_ns;   /* of a unit's unshard and wait, in place of their launches */
    int64_t host_retry_ns;        /* of a retry of the allocator, beside its wait for the device */
    uint32_t contention_permille; /* c * 1000 */
    double peak_flops;            /* dense peak for MFU; 0 on a cluster that has prices only */
    struct tables_left left;      /* the ranges that some price lies outside of */
};

/* STATUS_INPUT: a price passes 2^62 ns. STATUS_USAGE: the cluster cannot hold the plan. */
enum status cost_price(const struct cluster *cluster, enum spread spread,
                       const struct program *program, struct arena *arena, struct prices *out,
                       struct err *err);

/* The same for a search: nothing is said of what left its tables, and nothing but the arena is used. */
enum status cost_price_times(const struct cluster *cluster, enum spread spread,
                             const struct program *program, struct arena *arena, struct prices *out,
                             struct err *err);

/* A paragraph of all; nothing where the list is empty. */
void tables_left_text(const struct tables_left *left, struct text *out);
/* Adds what the list does not have yet; the arena takes copies. */
void tables_left_add(struct tables_left *list, const struct tables_left *more, struct arena *arena);

/* Seconds to ns: rounded to nearest, at least 1 where the work is not zero. */
enum status cost_ns(double seconds, bool has_work, int64_t *out, struct err *err);

#endif
