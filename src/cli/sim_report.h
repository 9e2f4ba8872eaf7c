/*
 * A simulated step with everything that is said about it, and its two shapes: text and JSON.
 *
 * Holds numbers that were computed elsewhere and simple quotients of them; both shapes are made
 * from this struct alone, so that they cannot disagree.
 */
#ifndef SRC_CLI_SIM_REPORT_H
#define SRC_CLI_SIM_REPORT_H

#include "sim/what_if.h"
#include "sim/withheld.h"
#include "src/alive.h"
#include "src/cli/command.h"
#include "src/cli/prepare.h"
#include "src/place.h"

/* One message shape of a step, and how often a rank takes part in it. */
struct collective_count {
    uint8_t kind, comm, dtype, reduction;
    uint64_t elements, bytes;
    uint64_t ranks; /* of the communicator's group */
    uint32_t count;
};

struct sim_report {
    const struct prepared *prepared;
    const struct options *options;
    struct prices prices[SPREAD_N];
    struct step_time time[SPREAD_N];
    struct tables_left left; /* tables that some price is read outside of */
    struct engine *engine;   /* the mid times came from; has the spans */
    uint64_t what_if;        /* brackets that were asked for, as bits, and their mid times */
    int64_t what_if_ns[WHAT_IF_N];

    /* NAN where there is nothing to divide by */
    double tokens_per_s, mfu_pct, hfu_pct, overlap_pct;
    struct collective_count *collectives;
    uint32_t n_collective;

    bool timed;               /* memory is tied to time: placement is that of the mid times */
    uint32_t steps;           /* the reported one is the last of so many in placement */
    struct retries whole;     /* retries with all the memory */
    struct withheld withheld; /* from the GPU that the mid times are of */
    struct placement placement;
    struct memory_curve curve;                      /* of the reported step */
    const struct place_step *init, *first, *steady; /* of placement */
    const struct alive *largest; /* when the reported one's allocated bytes peak */
    uint32_t n_largest;          /* 0: nobody asked */
    uint64_t reserved_bytes;     /* the largest of the three peaks */
    uint64_t outside_bytes, limit_bytes;
    uint64_t reserved_low, reserved_high; /* where the reported step's may really be */
    bool fits, near_limit, may_not_fit;   /* may not: at the upper end of that */
    bool retries;      /* it fits because the allocator gives memory back and asks again */
    bool unlimited;    /* it ran out of memory: placed again without a limit */
    uint32_t oom_step; /* where it ran out, and for what */
    uint64_t oom_bytes;

    int64_t run_id; /* in the history; 0: not stored */
};

/* Those that the mid times have. */
static inline struct retries sim_report_retries(const struct sim_report *report)
{
    return report->withheld.bytes > 0 ? report->withheld.retries : report->whole;
}

/* What they take of the mean step: the host waits for the device and for the driver. */
static inline int64_t sim_report_retry_ns(const struct sim_report *report)
{
    const struct retries retries = sim_report_retries(report);
    const int64_t each_ns = report->prices[SPREAD_MID].host_retry_ns;
    return retries.steps == 0 ? 0 : retries.n * each_ns / retries.steps;
}

/* Where memory ran out, at what request, and of how much: for a step that does not fit. */
void sim_report_shortage(const struct sim_report *report, struct text *out);
/* A line for each: it does not fit; addresses do not repeat. */
void sim_report_warn(const struct sim_report *report, struct text *warnings);
const char *sim_report_unit(const struct sim_report *report, uint16_t unit); /* NULL: no unit */

/* The brackets that were asked for; nothing where there are none. */
void sim_report_what_if_text(const struct sim_report *report, const struct term *term,
                             struct text *out);
void sim_report_what_if_json(const struct sim_report *report, struct cJSON *object);

/* The tables that are left: in words, null where there are none, and as an array "tables_left". */
void sim_report_left_json(const struct tables_left *left, const char *words_key,
                          struct cJSON *object);

void sim_report_text(const struct sim_report *report, const struct term *term, struct text *out);
void sim_report_json(const struct sim_report *report, struct text *out);
/* What that has below its schema, as members of another object. */
void sim_report_fields(const struct sim_report *report, struct cJSON *object);

#endif
