/*
 * A plan in two numbers once more, by formulas in place of events: an objective like that of PyTorch's
 * fsdp_milp, to see what such an objective costs.
 *
 * That one chooses units by integer programming, with a time that is linear in its unknowns. While a
 * unit computes, the next one is gathered and, in backward, the one before is reduced, each for a
 * latency and its bytes over a bandwidth; what of that is longer than the unit's compute is exposed, and
 * so are the first gather and the last reduction. Memory is what modules keep at their worst, gradients
 * of the unit included, and twice the parameters of the largest unit. It decides nothing but units; that
 * parameters may be kept from forward to backward is said in the same terms here.
 *
 * So there are no copies in and out, nothing that compute is slowed by, no host that could be late, no
 * queue for a collective to wait in, no depth of prefetching, and no moment of a buffer's birth or death.
 * Compute and collectives cost what they do for events.
 */
#ifndef SIM_MILP_JUDGE_H
#define SIM_MILP_JUDGE_H

#include "sim/judge.h"

/* As judge_plan(); peak_bytes is this objective's own. */
enum status milp_judge_plan(struct judge *judge, const struct plan *plan, struct judged *out,
                            struct err *err);

#endif
