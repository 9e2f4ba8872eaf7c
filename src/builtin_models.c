/*
 * Models that need no file: sizes and default sequence length, from their published configurations
 * (spec INPUTS 2.1). Names only; what a family makes of the sizes is in src/arch/.
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

/* clang-format off */
const struct builtin_model builtin_models[] = {
    /*    name            L   hidden   FFN  heads  kv   vocab   seq */
    LLAMA("llama2-7b",    32,  4096, 11008,  32,  32,  32000, 4096),
    LLAMA("llama2-13b",   40,  5120, 13824,  40,  40,  32000, 4096),
    LLAMA("llama2-70b",   80,  8192, 28672,  64,   8,  32000, 4096),
    LLAMA("llama3-8b",    32,  4096, 14336,  32,   8, 128256, 8192),
    LLAMA("llama3-70b",   80,  8192, 28672,  64,   8, 128256, 8192),
    LLAMA("llama3-405b", 126, 16384, 53248, 128,   8, 128256, 8192),
};
/* clang-format on */
const uint32_t n_builtin_models = sizeof(builtin_models) / sizeof(*builtin_models);
