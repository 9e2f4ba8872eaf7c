/*
 * A cluster: what a GPU, its links and its host cost, as numbers with a spread and a source.
 *
 * Read from JSON, compiled in (sim/clusters/) or given by name of a file; holds no formula, that is
 * sim/cost. low / mid / high are fast / expected / slow, so that low gives the shortest time.
 * Numbers stand in the file in the unit that their key names, here in seconds, bytes and FLOP. The
 * lists below are the file format: reader, `cluster show` and pricing are all made from them.
 */
#ifndef SRC_CLUSTER_H
#define SRC_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/arena.h"
#include "src/body.h"
#include "src/err.h"
#include "src/program.h"

enum spread { SPREAD_LOW, SPREAD_MID, SPREAD_HIGH, SPREAD_N };

/* What a rate may be bound to: outside [min, max] a price leaves its table. X(ENUM, name) */
#define QUANTITIES(X)                   \
    X(HIDDEN, "hidden")                 \
    X(TOKENS, "tokens")                 \
    X(SEQ, "seq")                       \
    X(ATTENTION_ROWS, "attention_rows") \
    X(HEAD_DIM, "head_dim")             \
    X(GEMM_DIM, "gemm_dim")             \
    X(GPUS, "gpus")                     \
    X(RANKS, "ranks") /* of a collective */

enum quantity {
#define X(id, name) QUANTITY_##id,
    QUANTITIES(X)
#undef X
        QUANTITY_N
};
const char *quantity_name(enum quantity quantity);

struct valid_range {
    uint64_t min, max;
    uint8_t quantity;
};

struct rate {
    double at[SPREAD_N];
    const char *source;
    const struct valid_range *valid;
    uint32_t n_valid;
};

/*
 * X(member, section, key, unit, more_is_faster, least, most). Bounds are of the file's number, both
 * allowed. A share of what a data sheet promises ends at 1, a factor on what a formula says at 2, one
 * between kinds of kernels far beyond.
 * What divides a time stays so far above 0 that no price is out of range; where 0 is allowed it says
 * that the GPU has no such thing, and a plan that asks for it is refused.
 */
#define CLUSTER_RATES(X)                                                        \
    X(gemm_flops, "gemm", "bf16_tflops", 1e12, true, 0.1, 1e6)                  \
    X(gemm_start_s, "gemm", "start_us", 1e-6, false, 0, 1e6)                    \
    X(gemm_efficiency, "gemm", "efficiency", 1, true, 1e-2, 1)                  \
    X(gemm_k0, "gemm", "k0", 1, false, 0, 1e4)                                  \
    X(gemm_derate, "gemm", "derate", 1, true, 1e-2, 2)                          \
    X(fp8_flops, "gemm", "fp8_tflops", 1e12, true, 0, 1e6)                      \
    X(fp8_efficiency, "gemm", "fp8_efficiency", 1, true, 1e-2, 1)               \
    X(fp8_derate, "gemm", "fp8_derate", 1, true, 1e-2, 2)                       \
    X(fp32_flops, "gemm", "fp32_tflops", 1e12, true, 0, 1e6)                    \
    X(tf32_flops, "gemm", "tf32_tflops", 1e12, true, 0, 1e6)                    \
    X(attention_efficiency, "attention", "efficiency", 1, true, 1e-3, 1)        \
    X(attention_s0, "attention", "s0_tokens", 1, false, 0, 1e5)                 \
    X(attention_head64, "attention", "head64_factor", 1, true, 1e-2, 2)         \
    X(delta_rule, "attention", "delta_rule_factor", 1, true, 1e-2, 100)         \
    X(attention_derate, "attention", "derate", 1, true, 0.1, 2)                 \
    X(fa3_derate, "attention", "fa3_derate", 1, true, 0, 2)                     \
    X(fa4_derate, "attention", "fa4_derate", 1, true, 0, 2)                     \
    X(triton_2023_derate, "attention", "triton_2023_derate", 1, true, 0, 2)     \
    X(memory_bytes_per_s, "memory", "tb_per_s", 1e12, true, 1e-3, 1e3)          \
    X(memory_efficiency, "memory", "efficiency", 1, true, 1e-2, 1)              \
    X(memory_slowdown, "memory", "slowdown", 1, false, 0.1, 30)                 \
    X(copy_launch_s, "copies", "launch_us", 1e-6, false, 0, 1e6)                \
    X(copy_cast, "copies", "cast_fraction", 1, true, 1e-2, 1)                   \
    X(copy_in, "copies", "copy_in_fraction", 1, true, 1e-2, 1)                  \
    X(copy_out, "copies", "copy_out_fraction", 1, true, 1e-2, 1)                \
    X(pack_widen, "copies", "pack_bf16_to_fp32_fraction", 1, true, 1e-2, 1)     \
    X(pack_same, "copies", "pack_bf16_to_bf16_fraction", 1, true, 1e-2, 1)      \
    X(pack_fp32, "copies", "pack_fp32_to_fp32_fraction", 1, true, 1e-2, 1)      \
    X(mixed_slowdown, "copies", "mixed_copy_slowdown", 1, false, 1, 10)         \
    X(own_kernels, "copies", "unshard_kernels_fraction", 1, true, 1e-2, 1)      \
    X(collective_floor_s, "network", "floor_us", 1e-6, false, 0, 1e6)           \
    X(nic_bytes_per_s, "network", "nic_gb_per_s_per_gpu", 1e9, true, 1e-2, 1e5) \
    X(nic_efficiency, "network", "nic_efficiency", 1, true, 1e-2, 1)            \
    X(rank_latency_s, "network", "us_per_rank", 1e-6, false, 0, 1e6)            \
    X(node_decay, "network", "decay_nodes", 1, true, 1, 1e9)                    \
    X(straggler, "compute", "straggler_per_doubling", 1, false, 0, 0.1)         \
    X(contention, "compute", "contention", 1, false, 0, 10)                     \
    X(host_launch_s, "host", "launch_us", 1e-6, false, 0, 1e6)                  \
    X(host_all_gather_s, "host", "all_gather_us", 1e-6, false, 0, 1e6)          \
    X(host_retry_s, "host", "retry_us", 1e-6, false, 0, 1e7)

/* X(member, key, unit, least): single numbers of section "gpu", rounded to whole bytes or GPUs */
#define CLUSTER_SIZES(X)                                       \
    X(memory_bytes, "memory_gib", 1073741824.0, 1)             \
    X(workspace_bytes, "workspace_bytes", 1, 0)                \
    X(context_bytes, "context_gib", 1073741824.0, 0)           \
    X(communicator_bytes, "communicator_gib", 1073741824.0, 0) \
    X(headroom_bytes, "headroom_gib", 1073741824.0, 0)         \
    X(max_gpus_per_node, "max_gpus_per_node", 1, 1)

/* X(member, key, unit, least, most): numbers of a row of collectives, bounds as above */
#define CLUSTER_ROW_NUMBERS(X)                              \
    X(a_s, "start_us", 1e-6, 0, 1e6)                        \
    X(b_s_per_sqrt_mb, "root_us_per_sqrt_mb", 1e-6, 0, 1e6) \
    X(bytes_per_s, "gb_per_s", 1e9, 1e-2, 1e5)

/* X(member, key, most): of a row, optional: shares of its time that its spread goes down and up by */
#define CLUSTER_ROW_SHARES(X)  \
    X(faster, "faster", 0.999) \
    X(slower, "slower", 1000)

/* A whole message, and how long it took. */
struct collective_point {
    double bytes, seconds;
};
enum { CLUSTER_MAX_POINTS = 192, CLUSTER_MAX_ROWS = 256 };

/*
 * t = max(a, floor) + b*sqrt(s) + s/B, s = bytes*(W-1)/W; one row per kind, number of ranks and of
 * nodes. A row may also have points, which hold in place of the formula. Its shape prices nothing: it
 * is where a machine of this kind has its steps, by which src/cli/measured_row.h fills what was not
 * measured.
 */
struct collective_row {
    uint8_t kind;   /* TASK_ALL_GATHER, TASK_REDUCE_SCATTER or TASK_ALL_REDUCE */
    uint32_t ranks; /* of all nodes together */
    uint32_t nodes; /* 0 and 1: in one. Of more: for these alone, adapters included */
#define X(member, key, unit, least, most) double member;
    CLUSTER_ROW_NUMBERS(X)
#undef X
#define X(member, key, most) double member;
    CLUSTER_ROW_SHARES(X)
#undef X
    const struct collective_point *points, *shape; /* by bytes, which rise */
    uint32_t n_point, n_shape;
    const char *source;
};

static inline uint32_t collective_row_nodes(const struct collective_row *row)
{
    return row->nodes > 1 ? row->nodes : 1;
}

/*
 * What the host costs under another release of PyTorch, or under our own loop: section "host" once
 * more, under a name ("torch-2.4"). What a profile does not give is the cluster's own.
 */
struct host_profile {
    const char *name;
    struct rate launch_s, all_gather_s, retry_s;
};

/* Prices go up to this, so that no sum over a body of any length comes near 2^62. */
enum { CLUSTER_MAX_PRICE_NS = 1000000000 };

/* X(member, key, most): of section "prices", beside task_ns and op_ns */
#define CLUSTER_PRICES(X)                                                   \
    X(host_launch_price_ns, "host_launch_ns", CLUSTER_MAX_PRICE_NS)         \
    X(host_all_gather_price_ns, "host_all_gather_ns", CLUSTER_MAX_PRICE_NS) \
    X(contention_permille, "contention_permille", 1000000)

/*
 * memory: of one GPU, as the driver reports it. workspace: the matrix library's, one per host
 * thread. context and communicator (the first): outside torch, together outside_bytes. headroom:
 * what a step whose memory is tied to time has to leave free beside them, or a real allocator
 * retries though the simulated one does not. The host's retry_us: of a retry, beside its wait for
 * the device. A file may leave out these two, which are 0 then.
 */
struct cluster {
    const char *name, *description;
#define X(member, key, unit, least) uint64_t member;
    CLUSTER_SIZES(X)
#undef X
    uint64_t outside_bytes;
#define X(member, key, unit, least) const char *member##_source;
    CLUSTER_SIZES(X)
#undef X

    /* A cluster with prices has only these, in ns, and no rates (toy). Bodies: sum of their ops. */
    bool has_prices;
    int64_t task_price_ns[TASK_KIND_N], op_price_ns[OP_KIND_N];
#define X(member, key, most) int64_t member;
    CLUSTER_PRICES(X)
#undef X

    /* The others have these, and no prices. Formulas: spec COST sections 1 to 5. */
#define X(member, section, key, unit, more_is_faster, least, most) struct rate member;
    CLUSTER_RATES(X)
#undef X
    const struct collective_row *collectives;
    uint32_t n_collective;
    const struct host_profile *host_profiles;
    uint32_t n_host_profile;

    uint64_t without; /* terms of the cost model that are left out, as bits (sim/without.h); of no
                         file */
};

struct rate_field {
    const char *section, *key;
    double unit; /* a number of the file times this is a number here */
    bool more_is_faster;
    double least, most; /* of the file's number */
    size_t offset;      /* of its struct rate in struct cluster */
};
extern const struct rate_field cluster_rate_fields[];
extern const uint32_t n_cluster_rate_fields;
const struct rate *cluster_rate(const struct cluster *cluster, const struct rate_field *field);

/* what: a built-in name or a file. STATUS_USAGE (nearest name) or STATUS_INPUT. */
enum status cluster_open(const char *what, struct arena *arena, struct cluster *out,
                         struct err *err);

/*
 * Another network adapter for each GPU; rows of several nodes, which have the old one in them, go.
 * STATUS_USAGE for a cluster with prices, which has none.
 */
enum status cluster_set_nic(struct cluster *cluster, double gbit_per_s, struct arena *arena,
                            struct err *err);

/*
 * The host of this profile. "torch-X.Y" is the newest of PyTorch that is no newer, or the oldest.
 * STATUS_USAGE with the names there are, and for a cluster with prices.
 */
enum status cluster_set_host(struct cluster *cluster, const char *name, struct err *err);
/* The cluster with a profile's host in place of its own. */
struct cluster cluster_with_host(const struct cluster *cluster, const struct host_profile *profile);

struct builtin_cluster {
    const char *name, *json;
};
extern const struct builtin_cluster builtin_clusters[];
extern const uint32_t n_builtin_clusters;

#endif
