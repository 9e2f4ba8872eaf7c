/*
 * One plan in two numbers, as fast as a search needs them: the time of a steady step, from the event
 * simulation, and the peak of requested bytes, from body summaries.
 *
 * No addresses, no spread, no proof of safety: that is for the few plans that are left. Equal to what
 * simulate() says at the mid prices without a placement, and to the highest of what summary_of() says,
 * on every plan (tests/judge.c).
 *
 * Why one step is enough, most of the time. A step of FSDP2 begins on stream C, which every other
 * stream waits for, and ends on it. So, where the host is never late, each step is the first one
 * shifted, in whole nanoseconds. That it is not late in the third step, the one that is reported,
 * follows from a step that is simulated without any host: if each task could have been issued before
 * its start, were the two steps before no longer than what C computes in them. Else, or where the
 * host waits for the device, three steps are simulated as anywhere.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "sim/engine.h"
#include "src/alloc.h"
#include "src/summary.h"

struct judge; /* of one thread: it runs in memory of its own */

struct judged {
    int64_t step_ns;
    uint64_t peak_bytes; /* requested, of the highest moment of any step */
};

/* bodies: of every plan that will be judged. Both outlive the judge. */
struct judge *judge_new(const struct cluster *cluster, const struct body_table *bodies);
void judge_free(struct judge *judge);

/* A plan of FSDP2. STATUS_INPUT, STATUS_USAGE: as layout_build() and cost_price_times(). */
enum status judge_plan(struct judge *judge, const struct plan *plan, struct judged *out,
                       struct err *err);

/* The first half of that: a program and its prices, which are then known. */
enum status judge_price(struct judge *judge, const struct plan *plan, struct err *err);

/* What the allocator reserves for all of a plan; the same errors. */
struct placed {
    uint64_t reserved_bytes; /* the highest of initialisation, first and third step */
    bool fits;               /* into the capacity; else reserved is what it would be without one */
    bool retries;            /* only because memory is given back to the driver, which takes time */
};
enum status judge_place(struct judge *judge, const struct plan *plan,
                        const struct alloc_config *config, struct placed *out, struct err *err);

/* Memory until the next plan is judged: a plan that is made in it costs no malloc. */
struct arena *judge_arena(struct judge *judge);

/* What was judged last, a program without a first step, and its prices: until the next one. */
const struct program *judge_program(const struct judge *judge);
const struct prices *judge_prices(const struct judge *judge);

/* How many plans were judged, and how many of them by three steps. */
struct judge_count {
    uint64_t all, three;
};
struct judge_count judge_count(const struct judge *judge);

#endif
