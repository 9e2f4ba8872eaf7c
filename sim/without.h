/*
 * The terms of the cost model, each of which can be left out: how much one of them matters is how
 * much worse measured runs are predicted without it.
 *
 * Nothing else is fitted again, so that what a missing term was worth stays an error. The program,
 * and so memory, is the same. Where sim/what_if.h asks what a step could gain, this asks what the
 * model would be wrong by.
 */
#ifndef SIM_WITHOUT_H
#define SIM_WITHOUT_H

#include "sim/cost_formula.h"

/* X(ENUM, name, words) */
#define WITHOUTS(X)                                                                             \
    X(ATTENTION_KERNEL, "attention-kernel",                                                     \
      "attention is as fast as its benchmark, whatever runs")                                   \
    X(ELEMENTWISE, "elementwise",                                                               \
      "operators that only move bytes take no time, those of the loss included")                \
    X(LOSS, "loss", "operators of the loss take no time, but for the head's products")          \
    X(COMM, "comm", "collectives take no time")                                                 \
    X(CONTENTION, "contention", "collectives do not slow compute")                              \
    X(PACKING, "packing", "packing gradients takes no time")                                    \
    X(RING, "ring", "ranks add no latency and nodes take no bandwidth")                         \
    X(EARLY_STOP, "early-stop", "full checkpointing computes a block's last product again too") \
    X(OPTIMIZER, "optimizer", "the update takes no time")                                       \
    X(GEMM_RAMP, "gemm-ramp", "products start at once and are as fast at any depth")            \
    X(STRAGGLERS, "stragglers", "more ranks do not slow compute")                               \
    X(ATTENTION_RAMP, "attention-ramp", "attention is as fast on short sequences")              \
    X(COPIES, "copies", "copy_in, copy_out, pack and post_reduce take no time")                 \
    X(HOST, "host", "issuing takes no time")

enum without {
#define X(id, name, words) WITHOUT_##id,
    WITHOUTS(X)
#undef X
        WITHOUT_N
};

static inline bool is_without(const struct cluster *cluster, enum without term)
{
    return cluster->without >> term & 1;
}

/* Rates of the cluster at this end, less the terms that are rates. */
void without_rates(const struct cluster *cluster, enum spread spread, struct cost_rates *rates);
/* Whether such tasks, such operators cost nothing. of_logits: of a loss's body, or a metric's. */
bool without_task(const struct cluster *cluster, const struct task *task);
bool without_op(const struct cluster *cluster, const struct op *op, bool of_logits);

#endif
