/*
 * Classes of kernels by words in their names, first match first.
 *
 * Names are those of cuBLAS, CUTLASS, rocBLAS, flash attention, Triton and PyTorch itself; a kernel
 * that none of them fits is counted as another.
 */
#include <string.h>

#include "traces/kineto_inner.h"

const char *kineto_work_name(enum kineto_work work)
{
    static const char *const names[] = {
#define X(id, word) word,
        KINETO_WORKS(X)
#undef X
    };
    return names[work];
}

static const struct {
    const char *word; /* in lower case */
    uint8_t work;
} words[] = {
    {"nccl", KINETO_COLLECTIVE},    {"rccl", KINETO_COLLECTIVE},     {"flash", KINETO_ATTENTION},
    {"fmha", KINETO_ATTENTION},     {"attention", KINETO_ATTENTION}, {"attn", KINETO_ATTENTION},
    {"gemm", KINETO_GEMM},          {"cutlass", KINETO_GEMM},        {"cijk_", KINETO_GEMM},
    {"nvjet", KINETO_GEMM},         {"gemv", KINETO_GEMM},           {"splitk", KINETO_GEMM},
    {"elementwise", KINETO_MEMORY}, {"reduce", KINETO_MEMORY},       {"norm", KINETO_MEMORY},
    {"softmax", KINETO_MEMORY},     {"multi_tensor", KINETO_MEMORY}, {"cat", KINETO_MEMORY},
    {"copy", KINETO_MEMORY},        {"index", KINETO_MEMORY},        {"embedding", KINETO_MEMORY},
    {"transpose", KINETO_MEMORY},   {"scatter", KINETO_MEMORY},      {"gather", KINETO_MEMORY},
    {"triton_poi", KINETO_MEMORY},  {"triton_red", KINETO_MEMORY},   {"triton_per", KINETO_MEMORY},
    {"fill", KINETO_MEMORY},        {"nll_loss", KINETO_MEMORY},     {"dropout", KINETO_MEMORY},
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool contains(const char *name, const char *word)
{
    const size_t length = strlen(word);
    for (; *name; name++) {
        size_t i = 0;
        while (i < length && lower(name[i]) == word[i])
            i++;
        if (i == length)
            return true;
    }
    return false;
}

enum kineto_work kineto_work_of(const char *name)
{
    for (size_t i = 0; i < LENGTH(words); i++) {
        if (contains(name, words[i].word))
            return words[i].work;
    }
    return KINETO_OTHER;
}

/* In names of collectives without '_', and of kernels: a longer word before those in it. */
static const struct {
    const char *word, *name;
} kinds[] = {
    {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
    {"allreduce", "all_reduce"}, {"alltoall", "all_to_all"},
    {"broadcast", "broadcast"},  {"send", "send_recv"},
    {"recv", "send_recv"},       {"gather", "gather"},
    {"scatter", "scatter"},      {"reduce", "reduce"},
    {"barrier", "barrier"},      {"", "other"},
};

uint32_t kineto_collective_kind(const struct json_span *word)
{
    enum { MOST = 128 };
    char plain[MOST + 1];
    uint32_t n = 0, kind = 0;
    for (size_t i = 0; i < word->length && n < MOST; i++) {
        if (word->at[i] != '_')
            plain[n++] = word->at[i];
    }
    plain[n] = '\0';
    while (*kinds[kind].word && !contains(plain, kinds[kind].word))
        kind++;
    /* Both words of one kind are one kind. */
    while (kind > 0 && !strcmp(kinds[kind - 1].name, kinds[kind].name))
        kind--;
    return kind;
}

const char *kineto_collective_kind_name(uint32_t kind)
{
    return kinds[kind].name;
}
