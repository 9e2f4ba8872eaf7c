/*
 * What training frameworks did in the runs that they published, beside what a table of measurements
 * says of them; see validate.h.
 *
 * A habit holds for the rows whose source begins so and that are dated so; of two the later one
 * holds. Each has where it is known from. Nothing here is a number that was fitted.
 */
#include "src/cli/validate.h"

/* of system, compile, reduce_dtype and loss; of dates */
#define ANY "", "", "", ""
#define SYSTEM(word) word, "", "", ""
/* Tables infer the loss from times. What took longer than a fused loss were two metrics behind it,
   which llm-foundry's models of that time have by default; an unfused loss would not fit. */
#define UNFUSED "", "", "", "eager"
/* submit_benchmarks.py had PURE precision and an image of PyTorch 1.13.1 together; DEFAULT reduces
   in FP32, and is of later runs of the page of January 2024 */
#define OF_PYTORCH_1 "fsdp1", "", "bf16", ""
#define ALWAYS "", "9999"

static const char LLM_FOUNDRY[] = "mosaicml/llm-foundry";
static const char TORCHTITAN[] = "pytorch/torchtitan";
static const char TORCHAO[] = "pytorch/ao";
static const char FMS_FSDP[] = "foundation-model-stack/fms-fsdp";
static const char YAFSDP[] = "yandex/YaFSDP";
static const char KEMPNER[] = "KempnerInstitute/KempnerForge";

/* clang-format off */
const struct habit validate_habits[] = {
    {LLM_FOUNDRY, ANY, ALWAYS, "units", "block", "fsdp_wrap_fn of MPTModel: blocks, and a root"},
    {LLM_FOUNDRY, ANY, ALWAYS, "positions", "seq", "max_seq_len is the length of a sequence"},
    {LLM_FOUNDRY, SYSTEM("fsdp1"), ALWAYS, "fsdp1-backward-prefetch", "post", "composer's default, which its configurations leave as it is"},
    {LLM_FOUNDRY, SYSTEM("fsdp1"), ALWAYS, "use-orig-params", "yes", "composer's default, wherever PyTorch has it"},
    {LLM_FOUNDRY, UNFUSED, "", "2024-02", "loss", "fused", "loss_fn of its models is fused_crossentropy, which no configuration changes"},
    {LLM_FOUNDRY, UNFUSED, "", "2024-02", "train-metrics", "2", "LanguageCrossEntropy and LanguagePerplexity, which composer's trainer evaluates behind each backward"},
    {LLM_FOUNDRY, OF_PYTORCH_1, "", "2024-02", "early-stop", "no", "checkpoints stop early since PyTorch 2.1 (pytorch#96866)"},
    {LLM_FOUNDRY, OF_PYTORCH_1, "", "2024-02", "use-orig-params", "no", "PyTorch has it since 2.0"},
    {LLM_FOUNDRY, OF_PYTORCH_1, "", "2024-02", "pad-grads", "yes", "F.pad before each reduce-scatter, up to PyTorch 1.13"},

    {TORCHTITAN, ANY, ALWAYS, "units", "block", "parallelize_llama: blocks; embedding, norm and head in the root (spec MEMORY 5)"},
    {TORCHTITAN, SYSTEM("fsdp1"), ALWAYS, "use-orig-params", "yes", "parallelize_llama asks for it, since torch.compile needs it"},
    {TORCHTITAN, SYSTEM("fsdp2"), ALWAYS, "reshard", "all-but-last", "the last block is not resharded (spec MEMORY 5)"},
    {TORCHTITAN, SYSTEM("fsdp2"), "2024-03", "2024-06", "pack-stream", "rs", "before pytorch#129721 (spec MEMORY 5)"},
    {TORCHTITAN, ANY, "", "2025", "norm", "composite", "its own RMSNorm, in FP32 steps (spec MEMORY 3.1)"},
    {TORCHTITAN, "", "yes", "", "", "", "2024-05", "norm", "fused", "train.py compiles the whole model, the last norm too"},
    {TORCHTITAN, ANY, "", "2024-05", "optimizer", "adamw-foreach", "train.py asks for foreach"},
    {TORCHTITAN, ANY, "", "2024-05", "loss", "eager-model", "logits cast in the model, and kept (spec MEMORY 4, B)"},
    {TORCHTITAN, ANY, "2025-06", "9999", "loss", "compiled", "the loss is compiled again (spec MEMORY 4, D)"},

    {TORCHAO, ANY, ALWAYS, "units", "torchtitan", "torchtitan of August 2025 runs it"},
    {TORCHAO, ANY, ALWAYS, "loss", "compiled", "as torchtitan"},
    {TORCHAO, ANY, ALWAYS, "allocator", "expandable", "its benchmarks run torchtitan's run_train.sh, which sets it"},

    {FMS_FSDP, ANY, ALWAYS, "units", "block", "wrapping policy: LLaMABlock"},
    {FMS_FSDP, ANY, ALWAYS, "reduce-dtype", "bf16", "mixed precision policy bfSixteen"},

    {YAFSDP, ANY, ALWAYS, "units", "block", "one unit a block, as its README compares"},

    {KEMPNER, ANY, ALWAYS, "units", "block", "blocks and a root (spec MEMORY 5)"},
    {KEMPNER, SYSTEM("fsdp2"), ALWAYS, "reshard", "yes", "its root is resharded too (spec MEMORY 5)"},
    {KEMPNER, ANY, ALWAYS, "storage-dtype", "bf16", "parameters are stored in bf16 (spec MEMORY 3.8)"},
    {KEMPNER, ANY, ALWAYS, "loss", "eager-bf16", "cross entropy of bf16 logits (spec MEMORY 4, C)"},
    {KEMPNER, ANY, ALWAYS, "sync", "last", "gradients accumulate without sync (spec MEMORY 4)"},
    {KEMPNER, ANY, ALWAYS, "norm", "composite", "its own RMSNorm (spec MEMORY 3.1)"},
};
/* clang-format on */
const uint32_t n_validate_habits = sizeof validate_habits / sizeof *validate_habits;
