/*
 * The option table; see options.h. A default stands as one would type it, or, where it is not worth
 * a word in every answer, in the text alone.
 */
#include "src/cli/options.h"

#include "gpu/devices.h"
#include "sim/judge_pool.h"
#include "sim/what_if.h"
#include "sim/without.h"
#include "src/cli/calibrate.h"
#include "src/cli/command.h"
#include "src/cli/plan_emit.h"
#include "src/cli/plan_keep.h"
#include "src/cli/plan_vary.h"
#include "src/cli/run_job.h"
#include "src/cli/term.h"
#include "src/plan.h"
#include "src/program.h"

enum {
    STORING = COMMAND_SIM | COMMAND_PLAN | COMMAND_RUN, /* the commands that store what they find */
    STEP = STORING | COMMAND_EXPLAIN,                   /* those that build a program */
    UNITS = STEP | COMMAND_CHECK,                       /* those that cut a model into units */
};

#define X(id, name) [SYSTEM_##id] = name,
static const char *const system_words[] = {SYSTEMS(X) NULL};
#undef X
static const char *const strategy_words[] = {[FSDP1_FULL_SHARD] = "full",
                                             [FSDP1_SHARD_GRAD_OP] = "grad-op",
                                             [FSDP1_NO_SHARD] = "no-shard",
                                             [FSDP1_HYBRID_SHARD] = "hybrid",
                                             NULL};
static const char *const backward_prefetch_words[] = {[FSDP1_BACKWARD_PRE] = "pre",
                                                      [FSDP1_BACKWARD_POST] = "post",
                                                      [FSDP1_BACKWARD_NONE] = "none",
                                                      NULL};
static const char *const reshard_words[] = {[RESHARD_AUTO] = "auto",
                                            [RESHARD_YES] = "yes",
                                            [RESHARD_NO] = "no",
                                            [RESHARD_ALL_BUT_LAST] = "all-but-last",
                                            NULL};
static const char *const ac_words[] = {
    [AC_NONE] = "none", [AC_FULL] = "full", [AC_OP] = "op", NULL};
static const char *const ops_words[] = {[OPS_TORCH_EAGER] = "torch-eager",
                                        [OPS_TORCH_COMPILE] = "torch-compile",
                                        [OPS_NATIVE] = "native",
                                        NULL};
static const char *const optimizer_words[] = {[OPTIMIZER_ADAMW] = "adamw-fused",
                                              [OPTIMIZER_SGD] = "sgd",
                                              [OPTIMIZER_ADAMW_FOREACH] = "adamw-foreach",
                                              [OPTIMIZER_ADAMW_COMPOSER] = "adamw-composer",
                                              NULL};
#define X(id, name) [LOSS_##id] = name,
static const char *const loss_words[] = {LOSSES(X) NULL};
#undef X
#define X(id, name) [ATTENTION_##id] = name,
static const char *const attention_words[] = {ATTENTIONS(X) NULL};
#undef X
static const char *const stamp_words[] = {[STAMPS_EVERY] = "every", [STAMPS_ALTERNATE] = "alternate", NULL};
static const char *const linear_dtype_words[] = {"bf16", "fp8", NULL};
static const char *const fp32_product_words[] = {"highest", "high", NULL};
static const char *const positions_words[] = {"seq", NULL};
static const char *const keep_words[] = {
    [KEEP_BEST] = "best", [KEEP_FRONT] = "front", [KEEP_ALL] = "all", NULL};
static const char *const norm_words[] = {
    [NORM_FUSED] = "fused", [NORM_COMPOSITE] = "composite", NULL};
static const char *const dtype_words[] = {
    [DTYPE_FP32] = "fp32", [DTYPE_BF16] = "bf16", [DTYPE_FP16] = "fp16", NULL};
#define X(id, name) [BEHAVIOR_##id] = name,
static const char *const behavior_words[] = {BEHAVIORS(X) NULL};
#undef X
#define X(id, name) [ARRANGE_##id] = name,
static const char *const arrange_words[] = {ARRANGES(X) NULL};
#undef X
static const char *const microbatch_words[] = {
    [MICROBATCH_EVERY] = "every", [MICROBATCH_LAST] = "last", NULL};
static const char *const yes_words[] = {"no", "yes", NULL};
static const char *const no_words[] = {"yes", "no", NULL};
static const char *const pack_stream_words[] = {"c", "rs", NULL};
static const char *const unused_words[] = {"skip", "zero", NULL};
static const char *const allocator_words[] = {"caching", "expandable", NULL};
static const char *const bracket_words[] = {
#define X(id, name, words) [WHAT_IF_##id] = name,
    WHAT_IFS(X)
#undef X
        NULL};
#define X(id, name, words) "; " name ": " words
static const char bracket_help[] =
    "brackets, the step again with one cost at zero; several are separated by commas" WHAT_IFS(X);
#undef X
static const char *const term_words[] = {
#define X(id, name, words) [WITHOUT_##id] = name,
    WITHOUTS(X)
#undef X
        NULL};
#define X(id, name, words) "; " name ": " words
static const char term_help[] =
    "terms of the cost model that are left out, to see what they matter; several are separated by "
    "commas" WITHOUTS(X);
#undef X
static const char *const section_words[] = {[SECTION_INIT] = "init",
                                            [SECTION_FIRST] = "first",
                                            [SECTION_STEADY] = "steady",
                                            [SECTION_N] = "all",
                                            NULL};
#define X(id, name) [DEVICE_##id] = name,
static const char *const device_words[] = {DEVICES(X) NULL};
#undef X
#define X(id, name) [TRANSPORT_##id] = name,
static const char *const transport_words[] = {TRANSPORTS(X) NULL};
#undef X
#define X(id, name, what) [AXIS_##id] = name,
#define Y(id, name) [SEARCH_##id] = name,
#define Z(id, name) [FIND_##id] = name,
static const char *const find_words[] = {FIND_QUESTIONS(Z) NULL};
#undef Z
#define Z(id, name) [OBJECTIVE_##id] = name,
static const char *const judge_words[] = {OBJECTIVES(Z) NULL};
#undef Z
static const char *const search_words[] = {AXES(X)[SEARCH_SPLIT] = "split", SEARCH_LISTS(Y) NULL};
#undef X
#undef Y
#define X(id, name, what) name ": " what "; "
static const char search_help[] =
    "what a search varies; several are separated by commas, and without --units the first four that no "
    "option fixes. " AXES(X) "split: borders between attention and MLP, where nothing is recomputed; "
    "ac, allocator, arrange, hold (--reduce-inputs), comm (--separate-reduce-comm): that option; "
    "replicas: of whole nodes; int-reshard: --reshard to groups in a node; batch: microbatches that "
    "share --batch times --accum";
#undef X
#define X(id, name) [CALIBRATE_FROM_##id] = name,
static const char *const source_words[] = {CALIBRATE_SOURCES(X) NULL};
#undef X
#define X(id, name) [EMIT_FORM_##id] = name,
static const char *const emit_words[] = {EMITS(X) NULL};
#undef X
static const char *const split_words[] = {"all", "calibrate", "test", NULL};
static const char *const color_words[] = {
    [COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never", NULL};

/* clang-format off */
const struct option_info option_table[OPTION_N] = {
    [OPTION_CLUSTER] = {
        "cluster", STEP | COMMAND_CALIBRATE, OPTION_TEXT, "NAME|FILE", .initial = "h100-sxm", .in_force = true,
        .help = "the GPUs, links and host: a name of 'unshard cluster list' or a file like those"},
    [OPTION_NIC] = {
        "nic", STEP & ~COMMAND_RUN, OPTION_REAL, "GBIT/S", .otherwise = "the cluster's",
        .in_force = true,
        .help = "what a GPU's network adapter carries one way, in Gbit/s"},
    [OPTION_HOST] = {
        "host", STEP & ~COMMAND_RUN, OPTION_TEXT, "PROFILE", .otherwise = "the cluster's",
        .in_force = true,
        .help = "what issuing costs: a profile of the cluster, which 'cluster show' has, as torch-2.4 "
                "or native, our own loop; of a release of PyTorch the newest that is no newer, or the oldest"},
    [OPTION_GPUS] = {
        "gpus", UNITS & ~COMMAND_RUN, OPTION_COUNT, "N", .least = 1, .most = PLAN_MAX_RANKS,
        .initial = "8", .in_force = true, .help = "GPUs in all; each is one rank"},
    [OPTION_RANKS] = {
        "ranks", COMMAND_RUN, OPTION_COUNT, "N", .least = 1, .most = 256, .initial = "2",
        .help = "ranks in all, each a process: forked here, or as many as mpirun started"},
    [OPTION_EMULATE_RANKS] = {
        "emulate-ranks", COMMAND_RUN, OPTION_COUNT, "N", .least = 2, .most = PLAN_MAX_RANKS,
        .otherwise = "all ranks run", .in_force = true,
        .help = "run the program of N ranks on one, alone: its collectives move its own bytes and last "
                "as long as --cluster says; what it computes means nothing"},
    [OPTION_NODES] = {
        "nodes", UNITS, OPTION_COUNT, "N", .least = 1, .most = PLAN_MAX_RANKS,
        .otherwise = "GPUs / 8, rounded up", .in_force = true,
        .help = "machines that the GPUs stand in, as many in each"},
    [OPTION_SEQ] = {
        "seq", STEP, OPTION_COUNT, "TOKENS", .least = 1,
        .otherwise = "the model's; of a config.json its max_position_embeddings, at most 8192",
        .in_force = true, .help = "length of a sequence"},
    [OPTION_POSITIONS] = {
        "positions", STEP, OPTION_WORD_OR_COUNT, "N", .words = positions_words, .least = 1,
        .most = UINT64_C(1) << 53, .otherwise = "the model's", .in_force = true,
        .help = "positions that gpt2 and mpt learn; seq: one for each token of a sequence"},
    [OPTION_BATCH] = {
        "batch", STEP, OPTION_COUNT, "N", .least = 1, .initial = "1", .list = true, .in_force = true,
        .help = "sequences in a microbatch of one GPU"},
    [OPTION_ACCUM] = {
        "accum", STEP, OPTION_COUNT, "N", .least = 1, .most = PLAN_MAX_ACCUM, .initial = "1", .list = true,
        .in_force = true, .help = "microbatches in a step; --sync says when gradients are reduced"},
    [OPTION_SYSTEM] = {
        "system", STEP, OPTION_WORD, .words = system_words, .initial = "fsdp2", .list = true,
        .in_force = true,
        .help = "fully_shard, or FullyShardedDataParallel: flat parameters, whose memory comes back "
                "when streams are done with it; simulated only, with units of one module each"},
    [OPTION_UNITS] = {
        "units", UNITS, OPTION_TEXT, "SCHEME|PATTERNS|@FILE", .initial = "torchtitan",
        .list = true,
        .in_force = true,
        .help = "how the model is cut into FSDP units: block, block*K (K blocks to a unit), "
                "attn+mlp, whole, torchtitan, piece (each thing alone), half; or module paths with * and ?, separated by commas, "
                "each match a unit; or a JSON file of such paths and of lists of them; of fsdp1 the default is block"},
    [OPTION_RESHARD] = {
        "reshard", STEP, OPTION_WORD_OR_COUNT, "RANKS", .words = reshard_words, .least = 1,
        .most = PLAN_MAX_RANKS, .initial = "auto", .list = true, .in_force = true,
        .help = "free a unit's parameters after its forward pass; auto: all units but the root; a "
                "number: keep them cut over groups of so many ranks"},
    [OPTION_NO_RESHARD] = {
        "no-reshard", STEP, OPTION_TEXT, "UNITS", .otherwise = "none", .in_force = true,
        .help = "units, as patterns, that keep their parameters whatever --reshard says"},
    [OPTION_RESHARD_BACKWARD] = {
        "reshard-backward", STEP, OPTION_WORD, .words = microbatch_words, .list = true,
        .otherwise = "every", .in_force = true,
        .help = "the microbatches after whose backward pass a unit's parameters are freed"},
    [OPTION_NO_UNSHARD_BACKWARD] = {
        "no-unshard-backward", STEP, OPTION_TEXT, "UNITS", .otherwise = "none", .in_force = true,
        .help = "units, as patterns, that are not gathered in backward, since it does not read them"},
    [OPTION_PREFETCH] = {
        "prefetch", STEP, OPTION_COUNT, "K", .initial = "0", .list = true, .in_force = true,
        .help = "all-gathers issued ahead in forward; 0: implicit, by stream order alone"},
    [OPTION_PREFETCH_BACKWARD] = {
        "prefetch-backward", STEP, OPTION_COUNT, "K", .initial = "0", .list = true,
        .in_force = true,
        .help = "the same in backward; 0: implicit, one ahead"},
    [OPTION_FSDP1_STRATEGY] = {
        "fsdp1-strategy", STEP, OPTION_WORD, .words = strategy_words, .list = true,
        .otherwise = "full", .in_force = true,
        .help = "fsdp1: FULL_SHARD; SHARD_GRAD_OP, which keeps parameters from forward to backward; "
                "NO_SHARD; HYBRID_SHARD, full within each of --replicas"},
    [OPTION_FSDP1_BACKWARD_PREFETCH] = {
        "fsdp1-backward-prefetch", STEP, OPTION_WORD, .words = backward_prefetch_words,
        .list = true, .otherwise = "pre", .in_force = true,
        .help = "fsdp1: gather the next unit before this one's backward (BACKWARD_PRE), after it, or "
                "when it is needed"},
    [OPTION_FORWARD_PREFETCH] = {
        "forward-prefetch", STEP, OPTION_WORD, .words = yes_words, .list = true,
        .otherwise = "no", .in_force = true,
        .help = "fsdp1: issue the next unit's all-gather before this one's forward"},
    [OPTION_LIMIT_ALL_GATHERS] = {
        "limit-all-gathers", STEP, OPTION_WORD, .words = yes_words, .list = true,
        .otherwise = "yes", .in_force = true,
        .help = "fsdp1: the host waits until few all-gathers are in flight"},
    [OPTION_RECORD_STREAM] = {
        "record-stream", STEP, OPTION_WORD, .words = yes_words, .list = true,
        .otherwise = "yes", .in_force = true,
        .help = "fsdp1: memory comes back when the allocator sees that all streams are done; no: "
                "streams wait for one another before it is freed, which costs overlap"},
    [OPTION_PAD_GRADS] = {
        "pad-grads", STEP, OPTION_WORD, .words = yes_words, .list = true, .otherwise = "no",
        .in_force = true,
        .help = "fsdp1: gradients are copied once more before they are reduced, as PyTorch did before "
                "2.0, padded or not"},
    [OPTION_USE_ORIG_PARAMS] = {
        "use-orig-params", STEP, OPTION_WORD, .words = yes_words, .list = true,
        .otherwise = "no, with --ops torch-compile yes", .in_force = true,
        .help = "fsdp1: the optimizer has a tensor for what a shard holds of each parameter, not one for "
                "all of a unit; memory is that of rank 0"},
    [OPTION_BUFFER_DTYPE] = {
        "buffer-dtype", STEP, OPTION_WORD, .words = dtype_words, .otherwise = "as they are",
        .in_force = true,
        .help = "fsdp1: what buffers are cast to, once, before the first step; no step changes by it"},
    [OPTION_BEHAVIOR] = {
        "behavior", UNITS, OPTION_WORD, .words = behavior_words, .initial_run = "unshard", .initial = "torch-2.11",
        .list = true, .in_force = true,
        .help = "which FSDP2 it is: releases up to 2.14, main of October 2026, the release 2.15.0, the "
                "published form of mixed packing, or this program's own kernels, the default of run"},
    [OPTION_ARRANGE] = {
        "arrange", STEP, OPTION_WORD, .words = arrange_words, .initial = "native", .list = true,
        .in_force = true,
        .help = "parameters of several compute dtypes: in one unit; in units by dtype; or in one, "
                "with gradients cast before they are packed"},
    [OPTION_STORAGE_DTYPE] = {
        "storage-dtype", UNITS, OPTION_WORD, .words = dtype_words, .initial = "fp32",
        .in_force = true, .help = "what shards are stored and updated in"},
    [OPTION_PARAM_DTYPE] = {
        "param-dtype", UNITS, OPTION_WORD, .words = dtype_words, .initial = "bf16",
        .in_force = true, .help = "what parameters are gathered and computed in"},
    [OPTION_REDUCE_DTYPE] = {
        "reduce-dtype", UNITS, OPTION_WORD, .words = dtype_words, .initial = "fp32",
        .in_force = true, .help = "what gradients are reduced in"},
    [OPTION_KEEP_FP32] = {
        "keep-fp32", UNITS, OPTION_TEXT, "PATTERNS", .otherwise = "the model family's own",
        .in_force = true,
        .help = "parameters that are gathered and computed in fp32 all the same"},
    [OPTION_FREEZE] = {
        "freeze", UNITS, OPTION_TEXT, "PATTERNS", .otherwise = "none", .in_force = true,
        .help = "parameters that are not trained"},
    [OPTION_IGNORE] = {
        "ignore", UNITS, OPTION_TEXT, "PATTERNS", .otherwise = "none", .in_force = true,
        .help = "parameters that no unit manages: each GPU has all of them"},
    [OPTION_SHARD_DIM] = {
        "shard-dim", STEP, OPTION_TEXT, "PATTERN=DIM", .otherwise = "0", .in_force = true,
        .help = "parameters that are cut along another dimension, at the cost of more copies"},
    [OPTION_SECOND_MESH] = {
        "second-mesh", STEP, OPTION_TEXT, "PATTERNS", .otherwise = "none", .in_force = true,
        .help = "parameters on another mesh of the same GPUs: in their units a group of their own, "
                "with its own all-gathers and reduce-scatters"},
    [OPTION_REPLICAS] = {
        "replicas", STEP, OPTION_COUNT, "N", .least = 1, .most = PLAN_MAX_RANKS, .otherwise = "1",
        .list = true,
        .in_force = true,
        .help = "HSDP: so many sets of all shards, each on neighbouring GPUs"},
    [OPTION_SYNC] = {
        "sync", STEP, OPTION_WORD, .words = microbatch_words, .list = true, .otherwise = "every",
        .in_force = true,
        .help = "the microbatches whose gradients are reduced; last: until then they stay whole"},
    [OPTION_ALL_REDUCE] = {
        "all-reduce", STEP, OPTION_WORD, .words = microbatch_words, .otherwise = "every",
        .in_force = true, .help = "the same over replicas"},
    [OPTION_LAST_BACKWARD] = {
        "last-backward", STEP, OPTION_WORD, .words = microbatch_words, .otherwise = "every",
        .in_force = true,
        .help = "the microbatches at whose end everything is waited for (set_is_last_backward)"},
    [OPTION_REDUCE_INPUTS] = {
        "reduce-inputs", STEP, OPTION_COUNT, "K", .least = 1, .most = 64, .list = true,
        .otherwise = "1", .in_force = true,
        .help = "packed gradients that may wait for their reduce-scatter at once"},
    [OPTION_PACK_STREAM] = {
        "pack-stream", STEP, OPTION_WORD, .words = pack_stream_words, .list = true,
        .otherwise = "c", .in_force = true,
        .help = "where gradients are packed, and whose memory that takes; rs: as FSDP2 did before "
                "pytorch#129721 of June 2024, with no wait for earlier reduce-scatters"},
    [OPTION_SEPARATE_REDUCE_COMM] = {
        "separate-reduce-comm", STEP, OPTION_WORD, .words = yes_words, .list = true,
        .otherwise = "no", .in_force = true,
        .help = "reduce-scatters on a communicator of their own, beside all-gathers"},
    [OPTION_UNUSED] = {
        "unused", STEP, OPTION_WORD, .words = unused_words, .otherwise = "skip", .in_force = true,
        .help = "parameters without gradient: not reduced, or reduced as zeros"},
    [OPTION_DIVIDE_FACTOR] = {
        "divide-factor", STEP, OPTION_REAL, "F", .otherwise = "the number of GPUs",
        .in_force = true, .help = "what the sum of gradients is divided by"},
    [OPTION_FORCE_SUM] = {
        "force-sum", STEP, OPTION_WORD, .words = yes_words, .otherwise = "no", .in_force = true,
        .help = "reduce by plain sums and divide in a kernel"},
    [OPTION_CAST_INPUTS] = {
        "cast-inputs", STEP, OPTION_WORD, .words = no_words, .otherwise = "yes", .in_force = true,
        .help = "units cast what comes in to their compute dtype (cast_forward_inputs)"},
    [OPTION_OUTPUT_DTYPE] = {
        "output-dtype", STEP, OPTION_WORD, .words = dtype_words,
        .otherwise = "that of compute", .in_force = true,
        .help = "what units cast their output to, which the next one casts back"},
    [OPTION_HOST_SYNC] = {
        "host-sync", STEP, OPTION_TEXT, "UNITS", .otherwise = "none", .in_force = true,
        .help = "units, as patterns, after whose forward the host waits for the device, so that "
                "nothing is issued ahead"},
    [OPTION_SCALER] = {
        "scaler", STEP, OPTION_WORD, .words = yes_words, .otherwise = "no", .in_force = true,
        .help = "a loss scaler for fp16: gradients are unscaled and looked through, and the host "
                "waits for the verdict"},
    [OPTION_CLIP] = {
        "clip", STEP, OPTION_REAL, "NORM", .otherwise = "none, and nothing is sent for it",
        .in_force = true, .help = "clip gradients to this norm"},
    [OPTION_OPTIMIZER] = {
        "optimizer", STEP, OPTION_WORD, .words = optimizer_words, .initial = "adamw-fused",
        .in_force = true,
        .help = "AdamW as one kernel, over lists of tensors, or in a loop as composer's; or SGD, "
                "which keeps no states"},
    [OPTION_LOG_LOSS] = {
        "log-loss", STEP, OPTION_WORD, .words = yes_words, .otherwise = "no", .in_force = true,
        .help = "the host reads the mean loss of all GPUs after each step"},
    [OPTION_AC] = {
        "ac", STEP, OPTION_WORD_OR_COUNT, "every:K", .words = ac_words, .before_count = "every:",
        .least = 1, .initial = "none", .list = true, .in_force = true,
        .help = "activation checkpointing; full: each block is computed again in backward; op: all of "
                "it but attention and every second matrix product; every:K: every K-th block as full, "
                "the others not at all"},
    [OPTION_AC_LAYERS] = {
        "ac-layers", STEP, OPTION_COUNT, "N", .least = 1, .most = MODEL_MAX_LAYERS,
        .otherwise = "all", .in_force = true,
        .help = "checkpoint only the first N blocks"},
    [OPTION_EARLY_STOP] = {
        "early-stop", STEP, OPTION_WORD, .words = yes_words, .otherwise = "yes", .in_force = true,
        .help = "a block is computed again up to the last tensor that backward needs; no: to its end, "
                "as PyTorch did before 2.1, and does under set_checkpoint_early_stop(False)"},
    [OPTION_OPS] = {
        "ops", STEP, OPTION_WORD, .words = ops_words, .initial_run = "native", .initial = "torch-eager", .in_force = true,
        .help = "whose operators and buffers a step has: PyTorch's, one by one or compiled block by "
                "block, or our own, of llama, gpt2 and kda, which are what run takes"},
    [OPTION_NORM] = {
        "norm", STEP, OPTION_WORD, .words = norm_words, .initial = "fused", .in_force = true,
        .help = "RMSNorm as one kernel, or as the operators it is made of"},
    [OPTION_LOSS] = {
        "loss", STEP, OPTION_WORD, .words = loss_words, .initial = "eager", .in_force = true,
        .help = "cross entropy as PyTorch's operators over logits that are cast in the loss, in the "
                "model, whose result is kept, or not at all; or as one kernel, handwritten or "
                "compiled"},
    [OPTION_TRAIN_METRICS] = {
        "train-metrics", STEP & ~COMMAND_RUN, OPTION_COUNT, "N", .most = 16, .otherwise = "0",
        .in_force = true,
        .help = "so many cross entropies of the logits after each backward, without gradients; composer "
                "has 2, as metrics of language models"},
    [OPTION_ATTENTION] = {
        "attention", STEP & ~COMMAND_RUN, OPTION_WORD, .words = attention_words,
        .otherwise = "sdpa", .in_force = true,
        .help = "whose attention kernel it is: PyTorch's own (FlashAttention 2), FlashAttention 3 "
                "or 4, or the Triton one of 2023; only times change"},
    [OPTION_LINEAR_DTYPE] = {
        "linear-dtype", STEP & ~COMMAND_RUN, OPTION_WORD, .words = linear_dtype_words,
        .otherwise = "bf16", .in_force = true,
        .help = "what linear layers of blocks multiply in; fp8: inputs are cast at each product "
                "with scales of their own; only times change"},
    [OPTION_FP32_PRODUCTS] = {
        "fp32-products", STEP & ~COMMAND_RUN, OPTION_WORD, .words = fp32_product_words,
        .otherwise = "highest", .in_force = true,
        .help = "torch.set_float32_matmul_precision, where parameters are computed in fp32; high: "
                "products round to TF32 and run on tensor cores; only times change"},
    [OPTION_ALLOCATOR] = {
        "allocator", STEP, OPTION_WORD, .words = allocator_words, .initial = "caching",
        .list = true, .in_force = true, .help = "PyTorch's caching allocator, or its expandable segments"},
    [OPTION_MEMORY] = {
        "memory", STEP, OPTION_BYTES, "BYTES", .otherwise = "the GPU's size",
        .in_force = true,
        .help = "memory of one GPU, as in 72GiB or 80GB; when given it is a limit: "
                "a step that does not fit ends with exit code 1"},
    [OPTION_LAYERS] = {
        "layers", UNITS | COMMAND_MODEL, OPTION_COUNT, "N", .least = 1, .most = MODEL_MAX_LAYERS,
        .otherwise = "all", .in_force = true, .help = "cut the model to its first N blocks"},
    [OPTION_LORA] = {
        "lora", UNITS | COMMAND_MODEL, OPTION_TEXT, "r=N,alpha=F,targets=A:B", .otherwise = "none",
        .in_force = true,
        .help = "freeze the model and train low-rank adapters of rank r beside the linear layers that "
                "are named; without targets the family's own, of llama q_proj and v_proj"},
    [OPTION_SEARCH] = {
        "search", COMMAND_PLAN, OPTION_WORDS, .words = search_words, .help = search_help},
    [OPTION_FIND] = {
        "find", COMMAND_PLAN, OPTION_WORD, .words = find_words,
        .help = "the largest --batch or longest --seq that fits, the fewest --gpus, or from how many "
                "GPUs on --replicas are faster (hsdp); the answer's plan is shown, and without one the "
                "exit code is 1"},
    [OPTION_JUDGE] = {
        "judge", COMMAND_PLAN, OPTION_WORD, .words = judge_words, .initial = "events",
        .help = "what a search judges plans by: the event simulation, or formulas like those of "
                "fsdp_milp, without copies, contention or the allocator; what is shown is simulated"},
    [OPTION_FIXED] = {
        "fixed", COMMAND_PLAN, OPTION_TEXT, "MODULES", .otherwise = "none",
        .help = "modules, as patterns, whose place a search leaves as --units has it"},
    [OPTION_MAX_UNITS] = {
        "max-units", COMMAND_PLAN, OPTION_COUNT, "N", .least = 1, .most = PLAN_MAX_UNITS,
        .otherwise = "as many as there are", .help = "units that a search may make"},
    [OPTION_KEEP] = {
        "keep", COMMAND_PLAN, OPTION_WORD, .words = keep_words, .initial = "best",
        .help = "which plans of a search the run history keeps; best: those of the table, as runs; "
                "front, all: also the front of time and memory, or every plan that was judged, in "
                "v_candidate"},
    [OPTION_JOBS] = {
        "jobs", COMMAND_PLAN, OPTION_COUNT, "N", .least = 1, .most = JUDGE_POOL_MAX,
        .otherwise = "one for each core", .help = "threads of a search; the answer is the same"},
    [OPTION_EMIT] = {
        "emit", COMMAND_PLAN, OPTION_WORD, .words = emit_words,
        .help = "write the best plan in place of the table, or to --output; torch: Python with the calls "
                "of fully_shard that make it; json: a file for --plan"},
    [OPTION_PLAN] = {
        "plan", UNITS, OPTION_TEXT, "FILE", .otherwise = "none",
        .help = "take the options of a plan that 'plan --emit json' wrote; what is typed holds all the "
                "same; plan begins its search there"},
    [OPTION_FROM] = {
        "from", COMMAND_CALIBRATE, OPTION_WORD, .words = source_words, .initial = "device",
        .help = "where the numbers come from; device: measured now, on --device; nccl-tests: "
                "collectives of --cluster from outputs of nccl-tests, FILE...; trace: what profiles of "
                "PyTorch (Kineto) say, FILE..., the rest from --cluster; runs: fitted to FILE, a table of "
                "measured runs as 'unshard validate' takes it, into a cluster file a platform in the "
                "folder -o"},
    [OPTION_DEVICE] = {
        "device", COMMAND_RUN | COMMAND_CALIBRATE | COMMAND_DEVICE, OPTION_WORD, .words = device_words, .initial = "host",
        .help = "what executes: threads and memory of this machine, or a GPU"},
    [OPTION_TRANSPORT] = {
        "transport", COMMAND_RUN, OPTION_WORD, .words = transport_words, .initial = "auto",
        .help = "how ranks reach one another: shm, forked here; mpi, each started by mpirun or "
                "srun; tcp, each started by torchrun, srun or a script, for --rendezvous; auto: tcp "
                "with --rendezvous, else mpi where a launcher started several"},
    [OPTION_RENDEZVOUS] = {
        "rendezvous", COMMAND_RUN, OPTION_TEXT, "FILE", .otherwise = "ranks are forked, or MPI knows them",
        .help = "where ranks that were started one by one, with RANK and WORLD_SIZE or SLURM's own, "
                "find one another: a file that all see, there while they meet"},
    [OPTION_STEPS] = {
        "steps", COMMAND_RUN, OPTION_COUNT, "N", .least = 1, .most = 1000000, .initial = "8",
        .help = "optimizer steps to run"},
    [OPTION_WARMUP] = {
        "warmup", COMMAND_RUN, OPTION_COUNT, "N", .least = 1, .most = 1000000, .initial = "3",
        .help = "steps that are run before any is measured"},
    [OPTION_SEED] = {
        "seed", COMMAND_RUN, OPTION_COUNT, "N", .most = (UINT64_C(1) << 53) - 1, .initial = "1",
        .help = "what parameters and tokens are drawn from"},
    [OPTION_LR] = {
        "lr", COMMAND_RUN, OPTION_REAL, "RATE", .otherwise = "0.001",
        .help = "learning rate of the optimizer"},
    [OPTION_SAVE] = {
        "save", COMMAND_RUN, OPTION_TEXT, "DIR", .otherwise = "nothing is saved",
        .help = "write parameters and optimizer states there after the last step, as safetensors; "
                "DIR must not exist"},
    [OPTION_RESUME] = {
        "resume", COMMAND_RUN, OPTION_TEXT, "DIR", .otherwise = "from the seed",
        .help = "begin with what --save wrote, under any plan and number of ranks"},
    [OPTION_SLOW_COMM] = {
        "slow-comm", COMMAND_RUN, OPTION_REAL, "GB/S", .otherwise = "as fast as it is",
        .help = "let each collective take as long as its bytes at this rate"},
    [OPTION_HOST_PACE] = {
        "host-pace", COMMAND_RUN, OPTION_TEXT, "PROFILE", .otherwise = "as fast as our own host is",
        .in_force = true,
        .help = "hold each launch back until this host would have issued it: a profile of the cluster, "
                "as torch-2.5, or cluster, what it has beside these; the prediction takes the same"},
    [OPTION_GRAPH] = {
        "graph", COMMAND_RUN, OPTION_SWITCH,
        .help = "capture a step as one CUDA graph when its addresses repeat, and replay it from then "
                "on; its tasks have no times of their own"},
    [OPTION_STAMPS] = {
        "stamps", COMMAND_RUN, OPTION_WORD, .words = stamp_words, .initial = "every",
        .help = "which of the measured steps have time stamps at their tasks: with alternate every "
                "second one has none, and what stamps cost is printed"},
    [OPTION_DEBUG] = {
        "debug", COMMAND_RUN, OPTION_TEXT, "WORDS", .otherwise = "none",
        .help = "poison: fill freed memory with 0xA5; jitter=SEED: random delays on every stream; "
                "alloc-bias=BYTES: count so many too much, which the check of memory has to find; "
                "no-verify: run a program that is not proved safe; die=RANK, hang=RANK: in the "
                "third step"},
    [OPTION_WHAT_IF] = {
        "what-if", COMMAND_SIM | COMMAND_EXPLAIN, OPTION_WORDS, .words = bracket_words,
        .help = bracket_help},
    [OPTION_WITHOUT] = {
        "without", COMMAND_SIM | COMMAND_EXPLAIN | COMMAND_VALIDATE, OPTION_WORDS, .words = term_words,
        .in_force = true, .help = term_help},
    [OPTION_PROGRAM] = {
        "program", COMMAND_EXPLAIN, OPTION_SWITCH,
        .help = "print the program: what the host issues, in order"},
    [OPTION_EXPAND] = {
        "expand", COMMAND_EXPLAIN, OPTION_SWITCH,
        .help = "operators and single tensors in place of bodies and groups"},
    [OPTION_SECTION] = {
        "section", COMMAND_EXPLAIN, OPTION_WORD, .words = section_words, .initial = "all",
        .help = "only this section of the program"},
    [OPTION_STATES] = {
        "states", COMMAND_MODEL, OPTION_SWITCH,
        .help = "bytes of parameters, gradients and optimizer, before any cut"},
    [OPTION_SHARDS] = {
        "shards", COMMAND_MODEL, OPTION_COUNT, "RANKS", .least = 1, .most = PLAN_MAX_RANKS,
        .help = "how each parameter is cut over so many ranks, and what padding costs"},
    [OPTION_OUTPUT] = {
        "output", COMMAND_TRACE | COMMAND_CALIBRATE | COMMAND_PLAN | COMMAND_DEVICE, OPTION_TEXT, "FILE",
        .help = "the file to write, or with --from runs the folder of files, -o for short; -: stdout; a "
                "trace is compressed where the name ends in .gz; of device beside what is printed, after "
                "each thing that is found"},
    [OPTION_LIMIT] = {
        "limit", COMMAND_HISTORY, OPTION_COUNT, "N", .least = 1, .most = INT64_MAX,
        .initial = "20", .help = "the newest N runs"},
    [OPTION_TIMEOUT] = {
        "timeout", COMMAND_QUERY | COMMAND_RUN, OPTION_COUNT, "SECONDS", .most = 1000000000,
        .initial = "30",
        .help = "how long a statement may take, or a rank may keep the others waiting; 0: as long "
                "as it likes"},
    [OPTION_DB] = {
        "db", STEP | COMMAND_COMPARE | COMMAND_HISTORY | COMMAND_QUERY | COMMAND_TRACE | COMMAND_DEVICE, OPTION_TEXT, "FILE",
        .otherwise = "UNSHARD_DB, else unshard/runs.db in XDG_DATA_HOME or ~/.local/share",
        .help = "the run history, an SQLite database"},
    [OPTION_NO_DB] = {
        "no-db", STORING, OPTION_SWITCH, .help = "do not store the run"},
    [OPTION_CSV] = {
        "csv", COMMAND_QUERY, OPTION_SWITCH, .help = "comma-separated values in place of a table"},
    [OPTION_CALIBRATED] = {
        "calibrated", COMMAND_VALIDATE, OPTION_TEXT, "DIR", .otherwise = "the built-in clusters",
        .help = "take the cluster of a row from DIR/PLATFORM.GPU.json or DIR/PLATFORM.json, where there is one"},
    [OPTION_SPLIT] = {
        "split", COMMAND_VALIDATE, OPTION_WORD, .words = split_words, .initial = "all",
        .help = "only rows of this split: calibrate, which constants may be fitted on, or test"},
    [OPTION_TOLERANCE] = {
        "tolerance", COMMAND_VALIDATE, OPTION_REAL, "PERCENT", .otherwise = "none",
        .help = "end with exit code 1 where the mean error of a platform is larger"},
    [OPTION_MARKDOWN] = {
        "markdown", COMMAND_VALIDATE, OPTION_SWITCH,
        .help = "tables of Markdown in place of text"},
    [OPTION_JSON] = {
        "json", COMMAND_ALL & ~(unsigned)COMMAND_HELP, OPTION_SWITCH,
        .help = "JSON in place of text: one object, of a query an array"},
    [OPTION_COLOR] = {
        "color", COMMAND_ALL, OPTION_WORD, .words = color_words, .initial = "auto",
        .help = "auto: on a terminal, unless NO_COLOR is set"},
    [OPTION_HELP] = {
        "help", COMMAND_ALL, OPTION_SWITCH, .help = "print this help"},
};
/* clang-format on */
