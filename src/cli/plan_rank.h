/*
 * Which plan is better: order, ties, the Pareto front and the one to take. Numbers in, places out.
 *
 * Plans of one command share all constants, so that they are compared in pairs: sim/paired.h says
 * when a difference counts.
 */
#ifndef SRC_CLI_PLAN_RANK_H
#define SRC_CLI_PLAN_RANK_H

#include "src/cli/plan_row.h"

/*
 * Below 0 where a takes less time for a token. Plans are compared by that, since not all of them need
 * to have as many tokens in a step; those that do are compared by their steps.
 */
int plan_token_order(int64_t a_ns, uint64_t a_tokens, int64_t b_ns, uint64_t b_tokens);

/* Its step, had it so many tokens; and how far that may be off against one of as many. */
int64_t plan_row_step_ns(const struct plan_row *row, enum spread spread, uint64_t tokens);
int64_t plan_rows_uncertainty_ns(const struct plan_row *a, const struct plan_row *b,
                                 uint64_t tokens);

/* How much more time a takes for a token than b, as a share; mid times. */
double plan_rows_slower(const struct plan_row *a, const struct plan_row *b);

/* Of a GPU, at the mid time. */
double plan_row_tokens_per_s(const struct plan_row *row);

/* Neither is faster than the other for sure. */
bool plan_rows_tie(const struct plan_row *a, const struct plan_row *b);

/*
 * Sorts rows and fills in where each stands. First those that fit, by the mid time of a token; then those that do
 * not, by memory needed; the refused last, without a rank. Of what is equal less memory comes
 * first, then fewer units, then what was asked for first.
 *
 * on_front: no other is as fast and as small, of those that fit or, where none does, of all that
 * could be built. Of several that are equal in both only the first.
 */
void plan_rows_rank(struct plan_row *rows, uint32_t n);

/*
 * The one to take, of ranked rows: of rank 1 and those on the front that tie with it the one with
 * the fewest units, the first of these. NULL where none fits.
 */
const struct plan_row *plan_rows_best(const struct plan_row *rows, uint32_t n);

/* Of ranked rows the first one that fits beside the best; NULL where there is none. */
const struct plan_row *plan_rows_runner_up(const struct plan_row *rows, uint32_t n,
                                           const struct plan_row *best);

/* The one that needs the least memory; NULL where all are refused. */
const struct plan_row *plan_rows_smallest(const struct plan_row *rows, uint32_t n);

#endif
