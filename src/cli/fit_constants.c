/*
 * The constants of a fit and what they move; see fit_constants.h.
 */
#include "src/cli/fit_constants.h"

#include <math.h>
#include <stddef.h>

/*
 * Derates differ between GPUs of one kind by their power limit (0.61 against 0.89 on H100), and
 * kernels by their age; memory by what a framework's operators read twice. Of the network, of
 * contention and of stragglers little more is known than an order of magnitude (spec COST 6).
 */
static const double sds[FIT_CONSTANT_N] = {
    [FIT_GEMM] = 0.2,       [FIT_ATTENTION] = 0.2, [FIT_MEMORY] = 0.2,
    [FIT_CONTENTION] = 0.5, [FIT_NIC] = 0.5,       [FIT_RANK] = 0.7,
    [FIT_STRAGGLER] = 0.7,  [FIT_HOST] = 0.3,      [FIT_FP8] = 0.2,
};

const struct fit_rate fit_rates[] = {
#define RATE(constant, member, attention)                           \
    {                                                               \
        FIT_##constant, attention, offsetof(struct cluster, member) \
    }
    RATE(GEMM, gemm_derate, ATTENTION_N),
    RATE(ATTENTION, attention_derate, ATTENTION_SDPA),
    RATE(ATTENTION, fa3_derate, ATTENTION_FA3),
    RATE(ATTENTION, fa4_derate, ATTENTION_FA4),
    RATE(ATTENTION, triton_2023_derate, ATTENTION_TRITON_2023),
    RATE(MEMORY, memory_slowdown, ATTENTION_N),
    RATE(CONTENTION, contention, ATTENTION_N),
    RATE(NIC, nic_efficiency, ATTENTION_N),
    RATE(RANK, rank_latency_s, ATTENTION_N),
    RATE(STRAGGLER, straggler, ATTENTION_N),
    RATE(HOST, host_launch_s, ATTENTION_N),
    RATE(FP8, fp8_derate, ATTENTION_N),
#undef RATE
};
const uint32_t n_fit_rates = sizeof fit_rates / sizeof *fit_rates;

double fit_constant_sd(enum fit_constant constant)
{
    return sds[constant];
}

struct rate *fit_rate_of(struct cluster *cluster, const struct fit_rate *rate)
{
    return (struct rate *)((char *)cluster + rate->offset);
}

void fit_move(struct cluster *cluster, const double x[FIT_CONSTANT_N])
{
    for (uint32_t i = 0; i < n_fit_rates; i++)
        fit_rate_of(cluster, &fit_rates[i])->at[SPREAD_MID] *= exp(x[fit_rates[i].constant]);
}

const struct rate_field *fit_field(const struct fit_rate *rate)
{
    for (uint32_t f = 0; f < n_cluster_rate_fields; f++)
        if (cluster_rate_fields[f].offset == rate->offset)
            return &cluster_rate_fields[f];
    return NULL;
}

/* A rate of 0 says that the GPU has no such kernel, and stays it. */
void fit_bounds(const struct cluster *cluster, double least[FIT_CONSTANT_N],
                double most[FIT_CONSTANT_N])
{
    for (uint32_t i = 0; i < n_fit_rates; i++) {
        const struct rate_field *field = fit_field(&fit_rates[i]);
        const double now = cluster_rate(cluster, field)->at[SPREAD_MID] / field->unit;
        const enum fit_constant c = fit_rates[i].constant;
        if (!(now > 0))
            continue;
        least[c] = fmax(least[c], log(field->least / now));
        most[c] = fmin(most[c], log(field->most / now));
    }
}
