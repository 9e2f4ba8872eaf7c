/*
 * A plan that is compared with others: the numbers that decide, and where it stands among them.
 *
 * Plain data, so that ranking and picture need no simulation. Made by cmd_plan.c, put in order by
 * plan_rank.c.
 */
#ifndef SRC_CLI_PLAN_ROW_H
#define SRC_CLI_PLAN_ROW_H

#include "sim/paired.h"
#include "src/cli/options.h"
#include "src/cli/packing.h"
#include "src/cluster.h"

enum { PLAN_NO_RANK = 0 };
struct cJSON;

struct plan_row {
    struct options options; /* of this plan alone, one value each */
    const char *label;      /* its units in words */
    const char *refused;    /* why it cannot be built; nothing below then; or NULL */
    enum status status;     /* of the refusal */

    uint32_t search;       /* which search it is of, from 1; 0: it was named */
    uint64_t program_hash; /* 0: it cannot be built */
    uint64_t tokens;       /* of a GPU in a step */
    int64_t step_ns[SPREAD_N];
    struct paired_shift shift; /* what is uncertain about that, group by group */
    int64_t exposed_ns;
    double overlap_pct; /* NAN without communication */
    /* the highest of initialisation, first and reported step; total has what is outside torch */
    uint64_t allocated_bytes, active_bytes, reserved_bytes, total_bytes;
    uint64_t moved_bytes; /* of all collectives of a step */
    uint32_t n_unit, n_collective;
    struct packing packing;
    bool fits, near_limit, may_not_fit;
    bool retries;     /* as in struct sim_report */
    bool withheld;    /* its times are of a GPU that has less (sim/withheld.h) */
    const char *peak; /* which moment and class make it as large as it is */

    struct cJSON *json; /* the row but for where it stands, or NULL where nobody asked */

    uint32_t rank;       /* from 1, or PLAN_NO_RANK */
    bool tied, on_front; /* with rank 1; of time and memory */
    bool chosen;         /* what another judge than the event simulation takes */
};

#endif
