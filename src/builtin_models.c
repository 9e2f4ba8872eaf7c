/*
 * Models that need no file: sizes and default sequence length, from their published configurations
 * (spec INPUTS 2, 2.1 to 2.4; GPU 1.2). Names only; what a family makes of the sizes is in src/arch/.
 *
 * The positions that mpt and gpt2 learn are parameters: another --seq does not change them.
 */
#include "src/model.h"

#define LLAMA(name_, layers_, hidden_, intermediate_, heads_, kv_heads_, vocab_, seq_) \
    {                                                                                  \
        .name = name_, .arch = "llama",                                                \
        .dims = {.layers = layers_,                                                    \
                 .hidden = hidden_,                                                    \
                 .intermediate = intermediate_,                                        \
                 .heads = heads_,                                                      \
                 .kv_heads = kv_heads_,                                                \
                 .head_dim = (hidden_) / (heads_),                                     \
                 .vocab = vocab_,                                                      \
                 .default_seq = seq_},                                                 \
    }

#define GPT(name_, arch_, layers_, hidden_, heads_, vocab_, positions_) \
    {                                                                   \
        .name = name_, .arch = arch_,                                   \
        .dims = {.layers = layers_,                                     \
                 .hidden = hidden_,                                     \
                 .intermediate = 4 * (hidden_),                         \
                 .heads = heads_,                                       \
                 .kv_heads = heads_,                                    \
                 .head_dim = (hidden_) / (heads_),                      \
                 .vocab = vocab_,                                       \
                 .positions = positions_,                               \
                 .default_seq = positions_,                             \
                 .tied = true,                                          \
                 .bias = true},                                         \
    }

/* Blocks alone. */
#define KDA(name_, flat_)               \
    {                                   \
        .name = name_, .arch = "kda",   \
        .dims = {.layers = 8,           \
                 .hidden = 4096,        \
                 .intermediate = 12160, \
                 .heads = 32,           \
                 .kv_heads = 32,        \
                 .head_dim = 128,       \
                 .default_seq = 2048,   \
                 .flat = flat_},        \
    }

/* Parameters alone. */
#define PARAMETERS(name_, arch_, hidden_, intermediate_, heads_) \
    {                                                            \
        .name = name_, .arch = arch_,                            \
        .dims = {.layers = 1,                                    \
                 .hidden = hidden_,                              \
                 .intermediate = intermediate_,                  \
                 .heads = heads_,                                \
                 .kv_heads = heads_,                             \
                 .head_dim = (hidden_) / (heads_),               \
                 .default_seq = 2048},                           \
    }

/* clang-format off */
const struct builtin_model builtin_models[] = {
    /*    name            L   hidden   FFN  heads  kv   vocab   seq */
    LLAMA("llama2-7b",    32,  4096, 11008,  32,  32,  32000, 4096),
    LLAMA("llama2-13b",   40,  5120, 13824,  40,  40,  32000, 4096),
    LLAMA("llama2-34b",   48,  8192, 22016,  64,   8,  32000, 4096),
    LLAMA("llama2-70b",   80,  8192, 28672,  64,   8,  32000, 4096),
    LLAMA("llama3-8b",    32,  4096, 14336,  32,   8, 128256, 8192),
    LLAMA("llama3-13b-kempner", 40, 5120, 17920, 40, 8, 128256, 4096),
    LLAMA("llama3-70b",   80,  8192, 28672,  64,   8, 128256, 8192),
    LLAMA("llama3-405b", 126, 16384, 53248, 128,   8, 128256, 8192),
    LLAMA("llama-tiny",    2,    64,   160,   4,   2,    256,   64),
    /*  name           family  L  hidden heads vocab positions */
    GPT("gpt2",        "gpt2", 12,   768,  12, 50257, 1024),
    GPT("gpt2-medium", "gpt2", 24,  1024,  16, 50257, 1024),
    GPT("gpt2-large",  "gpt2", 36,  1280,  20, 50257, 1024),
    GPT("gpt2-xl",     "gpt2", 48,  1600,  25, 50257, 1024),
    GPT("gpt-tiny",    "gpt2",  2,    64,   4,   256,   64),
    GPT("mpt-125m",    "mpt",  12,   768,  12, 50368, 2048),
    GPT("mpt-350m",    "mpt",  24,  1024,  16, 50368, 2048),
    GPT("mpt-760m",    "mpt",  24,  1536,  12, 50368, 2048),
    GPT("mpt-1b",      "mpt",  24,  2048,  16, 50368, 2048),
    GPT("mpt-3b",      "mpt",  32,  2560,  20, 50368, 2048),
    GPT("mpt-7b",      "mpt",  32,  4096,  32, 50368, 2048),
    GPT("mpt-13b",     "mpt",  40,  5120,  40, 50368, 2048),
    GPT("mpt-30b",     "mpt",  48,  7168,  56, 50368, 2048),
    GPT("mpt-70b",     "mpt",  80,  8192,  64, 50368, 2048),
    KDA("kda-1.75b", false),
    KDA("kda-flat",  true),
    {.name = "kda-tiny", .arch = "kda",
     .dims = {.layers = 2, .hidden = 64, .intermediate = 160, .heads = 2, .kv_heads = 2,
              .head_dim = 32, .vocab = 256, .default_seq = 64}},
    {.name = "simple-llm", .arch = "simple-llm",
     .dims = {.layers = 4, .hidden = 256, .intermediate = 682, .heads = 4, .kv_heads = 4,
              .head_dim = 64, .vocab = 1000, .default_seq = 32}},
    PARAMETERS("pack-50m",   "pack",    2048, 8192, 16),
    PARAMETERS("copyin-500", "copy-in", 1024, 2048,  8),
};
/* clang-format on */
const uint32_t n_builtin_models = sizeof(builtin_models) / sizeof(*builtin_models);
