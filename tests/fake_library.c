/*
 * In the place of gpu/cuda_link.c: the fake NCCL and the fake cuBLASLt are in the program itself, unless a
 * test says that one is missing.
 */
#include <string.h>

#include "gpu/cuda_library.h"
#include "tests/fake_cuda.h"

static const struct {
    const char *name;
    cuda_any_call *call;
} calls[] = {
#define X(name) {#name, (cuda_any_call *)name},
    NCCL_CALLS(X) CUBLASLT_CALLS(X)
#undef X
};

void *cuda_library_open(const char *file, const char **why)
{
    static char library;

    if (!fake_cuda_lacks(file))
        return &library;
    *why = "no such file";
    return NULL;
}

cuda_any_call *cuda_library_find(void *library, const char *name)
{
    (void)library;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, name))
            return fake_cuda_lacks(name) ? NULL : calls[i].call;
    return NULL;
}
