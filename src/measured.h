/*
 * Measured training runs from a CSV table: what was run, on what, and how long a step took.
 *
 * One struct a row, by the columns below; it predicts nothing and judges nothing. A column that is
 * not in the list is an error, one that is missing or empty is the value that the list names.
 */
#ifndef SRC_MEASURED_H
#define SRC_MEASURED_H

#include "src/csv.h"

/*
 * X(member, "column", least, otherwise): counts. Ranks that share a model, replicas, tensor,
 * pipeline and context parallelism; tokens of a sequence; microbatches of a step. A least of 1 and
 * an otherwise of 0: the column is needed.
 */
#define MEASURED_COUNTS(X)                  \
    X(gpus, "gpus", 1, 0)                   \
    X(gpus_per_node, "gpus_per_node", 1, 8) \
    X(shard, "shard", 0, 0)                 \
    X(replicate, "replicate", 1, 1)         \
    X(tp, "tp", 1, 1)                       \
    X(pp, "pp", 1, 1)                       \
    X(cp, "cp", 1, 1)                       \
    X(micro_batch, "micro_batch", 1, 0)     \
    X(seq_len, "seq_len", 1, 0)             \
    X(grad_accum, "grad_accum", 1, 1)

/* X(member, "column", needed): numbers above 0; NAN where there is none */
#define MEASURED_NUMBERS(X)                        \
    X(nic_gbps_per_gpu, "nic_gbps_per_gpu", false) \
    X(step_s, "step_s", true)                      \
    X(tokens_s_gpu, "tokens_s_gpu", false)         \
    X(mfu_pct, "mfu_pct", false)                   \
    X(peak_gib, "peak_gib", false)

/* X(member, "column", otherwise): words; NULL: the column is needed */
#define MEASURED_WORDS(X)                   \
    X(id, "id", NULL)                       \
    X(platform, "platform", "")             \
    X(model, "model", NULL)                 \
    X(gpu, "gpu", NULL)                     \
    X(system, "system", "fsdp2")            \
    X(reshard, "reshard", "yes")            \
    X(ac, "ac", "none")                     \
    X(compile, "compile", "no")             \
    X(attention, "attention", "")           \
    X(loss, "loss", "")                     \
    X(optimizer, "optimizer", "")           \
    X(torch, "torch", "")                   \
    X(param_dtype, "param_dtype", "bf16")   \
    X(reduce_dtype, "reduce_dtype", "fp32") \
    X(linear_fp8, "linear_fp8", "no")       \
    X(gather_fp8, "gather_fp8", "no")       \
    X(peak_kind, "peak_kind", "")           \
    X(date, "date", "")                     \
    X(trust, "trust", "high")               \
    X(split, "split", "")                   \
    X(source, "source", "")

struct measured_run {
    uint32_t line; /* of the file */
#define X(member, column, least, otherwise) uint64_t member;
    MEASURED_COUNTS(X)
#undef X
#define X(member, column, needed) double member;
    MEASURED_NUMBERS(X)
#undef X
#define X(member, column, otherwise) const char *member;
    MEASURED_WORDS(X)
#undef X
};

struct measured {
    const struct measured_run *runs;
    uint32_t n;
};

/* STATUS_INPUT with file, line and column. Ids are there once. path lives as long as the result. */
enum status measured_read(const char *path, struct arena *arena, struct measured *out,
                          struct err *err);
enum status measured_from_csv(const struct csv *csv, struct arena *arena, struct measured *out,
                              struct err *err);

#endif
