/*
 * What is uncertain about the difference of two plans.
 *
 * Plans of one cluster share its constants, so that most of what is uncertain about a step is
 * uncertain about both in the same way and cancels. Constants fall into groups that are wrong
 * independently of one another. Of each plan the step is simulated again with one group at its fast
 * and at its slow end and all others at mid; by how much the step moves is the plan's shift. Two
 * plans that a group moves alike differ by nothing for it, whatever its constants are:
 *
 *     uncertainty = sqrt(sum over groups of max over both ends of (shift of a - shift of b)^2)
 *
 * Groups are those of the task whose price they are: bodies are compute; collectives, and how much
 * they slow compute beside them, communication; launches and the issue of all-gathers host; every
 * other task of a unit copies. The price of a retry of the allocator is in no group: whatever it
 * is, a plan that has more of them is slower for it. Nothing here is an error of the model itself:
 * PAIRED_LEAST_SHARE is.
 */
#ifndef SIM_PAIRED_H
#define SIM_PAIRED_H

#include "sim/simulate.h"

/* X(ENUM, name) */
#define PAIRED_GROUPS(X)              \
    X(COMPUTE, "compute")             \
    X(COMMUNICATION, "communication") \
    X(COPIES, "copies")               \
    X(HOST, "host")

enum paired_group {
#define X(id, name) PAIRED_##id,
    PAIRED_GROUPS(X)
#undef X
        PAIRED_GROUP_N
};
const char *paired_group_name(enum paired_group group);

enum { PAIRED_FAST, PAIRED_SLOW, PAIRED_END_N };

/* What moves the step of one plan: its time with one group at one end less that at mid. */
struct paired_shift {
    int64_t ns[PAIRED_GROUP_N][PAIRED_END_N];
};

/*
 * Less of the faster one's mid time is no difference: public runs of one model on the same GPUs
 * differ by 1 % and more (spec COST 7).
 */
#define PAIRED_LEAST_SHARE 0.01

/*
 * prices: of all spreads, of this program. Nine simulations, in memory of its own. placement as in
 * simulate(); NULL also where memory is tied to time.
 */
enum status paired_simulate(const struct program *program, const struct prices prices[SPREAD_N],
                            const struct placement *placement, struct paired_shift *out,
                            struct err *err);

/* See above; rounded up. */
int64_t paired_uncertainty_ns(const struct paired_shift *a, const struct paired_shift *b);

/*
 * Neither is faster for sure: their mid times are less than PAIRED_LEAST_SHARE or no more than the
 * uncertainty apart, or their order is not the same with all constants low, mid and high.
 */
bool paired_tie(const int64_t a_ns[SPREAD_N], const struct paired_shift *a,
                const int64_t b_ns[SPREAD_N], const struct paired_shift *b);

#endif
