/*
 * Seconds of the kernels of one GPU: products, attention, everything else; see cost_formula.h.
 *
 * Constants that belong to a formula stand here, those that belong to a GPU in its cluster file.
 * Source: spec COST sections 1 to 3. FP16 is taken as BF16, with which it shares its peak.
 */
#include <math.h>

#include "sim/cost_formula.h"

static const double BF16_BYTES = 2, FP32_BYTES = 4;
/* Share of the memory bandwidth that a product reaches where memory binds it (section 1). */
static const double GEMM_MEMORY_SHARE = 0.8;
/* Gradients of weights against products of forward, per their own m, n, k (section 1). */
static const double WGRAD_FACTOR = 1.04;
/*
 * Of attention against forward: 2.5 times the FLOP at 0.85 of the speed (section 2). The kernel of
 * 2023 got less of it: public runs of llm-foundry with and without recomputation, which is forward
 * alone, agree at 3.5 to 4.2 times.
 */
static const double ATTENTION_BACKWARD = 2.94, TRITON_2023_BACKWARD = 3.8;
static const double NARROW_HEAD = 64;

struct cost_rates cost_rates_at(const struct cluster *cluster, enum spread spread)
{
    return (struct cost_rates){.spread = spread,
                               .product_bytes = BF16_BYTES,
#define X(member, section, key, unit, more_is_faster, least, most) \
    .member = cluster->member.at[spread],
                               CLUSTER_RATES(X)
#undef X
            .attention_backward = ATTENTION_BACKWARD,
    };
}

/* At the share of the peak that BF16 reaches: nothing but the peak is known (section 1). */
static void take_fp32(struct cost_rates *rates, bool tf32)
{
    rates->gemm_flops = tf32 ? rates->tf32_flops : rates->fp32_flops;
    rates->product_bytes = FP32_BYTES;
}

/* The factor of narrow heads was measured on kernels that came after Triton's (section 2). */
struct cost_rates cost_rates_of(const struct cluster *cluster, enum spread spread,
                                const struct plan_options *options)
{
    struct cost_rates rates = cost_rates_at(cluster, spread);
    const double derates[ATTENTION_N] = {[ATTENTION_SDPA] = rates.attention_derate,
                                         [ATTENTION_FA3] = rates.fa3_derate,
                                         [ATTENTION_FA4] = rates.fa4_derate,
                                         [ATTENTION_TRITON_2023] = rates.triton_2023_derate};

    rates.attention_derate = derates[options->attention];
    if (options->policy.param == DTYPE_FP32)
        take_fp32(&rates, options->tf32);
    if (options->attention == ATTENTION_TRITON_2023) {
        rates.attention_head64 = 1;
        rates.attention_backward = TRITON_2023_BACKWARD;
    }
    return rates;
}

double cost_gemm_s(const struct cost_rates *r, double m, double n, double k)
{
    const double flops_s =
        2 * m * n * (k + r->gemm_k0) / (r->gemm_flops * r->gemm_efficiency * r->gemm_derate);
    const double bytes = (m * k + k * n + m * n) * r->product_bytes;
    return r->gemm_start_s + fmax(flops_s, bytes / (GEMM_MEMORY_SHARE * r->memory_bytes_per_s));
}

/* Causal: half of the square, hence 2 and not 4 FLOP. rows = batch * heads. */
double cost_attention_s(const struct cost_rates *r, double rows, double seq, double head_dim)
{
    const double flops = 2 * rows * seq * seq * head_dim;
    const double width = head_dim <= NARROW_HEAD ? r->attention_head64 : 1;
    const double efficiency = r->attention_efficiency * r->attention_derate * width;
    return flops / (r->gemm_flops * efficiency * (seq / (seq + r->attention_s0)));
}

/* Against what attention reaches on long sequences. */
static double delta_rule_s(const struct cost_rates *r, const struct op *op)
{
    uint64_t flops = 0;
    op_flops(op, &flops); /* in range: the builder refuses what is not */
    const double efficiency = r->attention_efficiency * r->attention_derate * r->delta_rule;
    const double flops_s = (double)flops / (r->gemm_flops * efficiency);
    return fmax(flops_s, cost_memory_s(r, (double)op->bytes));
}

double cost_memory_s(const struct cost_rates *r, double bytes)
{
    return r->memory_slowdown * bytes / (r->memory_bytes_per_s * r->memory_efficiency);
}

double cost_op_s(const struct cost_rates *r, const struct op *op)
{
    const bool forward = op->pass == PASS_FORWARD || op->pass == PASS_RECOMPUTE;

    switch (op_kind_cost(op->kind)) {
    case COST_GEMM:
        return cost_gemm_s(r, (double)op->m, (double)op->n, (double)op->k) *
               (op->pass == PASS_WGRAD ? WGRAD_FACTOR : 1);
    case COST_ATTENTION:
        return cost_attention_s(r, (double)op->m, (double)op->n, (double)op->k) *
               (forward ? 1 : r->attention_backward);
    case COST_DELTA_RULE:
        return delta_rule_s(r, op);
    case COST_MEMORY:
        break;
    }
    return cost_memory_s(r, (double)op->bytes);
}

/*
 * Of its own shape: inputs are scaled and cast in forward (5 bytes an element), gradients of outputs
 * in backward (7), and inputs once more, transposed, for the gradient of the weight (2): section 3.
 * Each is the first operand of the product, m by k or k by m.
 */
double cost_op_fp8_s(const struct cost_rates *r, const struct op *op)
{
    static const double cast_bytes[] = {
        [PASS_FORWARD] = 5, [PASS_RECOMPUTE] = 5, [PASS_DGRAD] = 7, [PASS_WGRAD] = 2};
    const struct cost_rates fp8 = {
        .gemm_flops = r->fp8_flops,
        .gemm_start_s = r->gemm_start_s,
        .gemm_efficiency = r->fp8_efficiency,
        .gemm_derate = r->fp8_derate,
        .gemm_k0 = r->gemm_k0,
        .memory_bytes_per_s = r->memory_bytes_per_s,
        .product_bytes = r->product_bytes,
    };

    if (op_kind_cost(op->kind) != COST_GEMM)
        return cost_op_s(r, op);
    return cost_op_s(&fp8, op) +
           cost_memory_s(r, cast_bytes[op->pass] * (double)op->m * (double)op->k);
}

double cost_copy_s(const struct cost_rates *r, double launches, double bytes, double fraction)
{
    return launches * r->copy_launch_s + bytes / (r->memory_bytes_per_s * fraction);
}
