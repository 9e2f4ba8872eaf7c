/*
 * The tables of calls, and loading them; see cuda_library.h.
 */
#include "gpu/cuda_library.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct nccl_calls nccl;
struct cublaslt_calls cublaslt;

struct entry {
    const char *name;
    void *to; /* a pointer to a function */
};

static const struct entry nccl_entries[] = {
#define X(name) {#name, &nccl.name},
    NCCL_CALLS(X)
#undef X
};
static const struct entry cublaslt_entries[] = {
#define X(name) {#name, &cublaslt.name},
    CUBLASLT_CALLS(X)
#undef X
};

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

static const struct {
    const char *name, *file;
    const struct entry *entries;
    size_t n;
} libraries[] = {
    {"cuBLASLt", "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR), cublaslt_entries,
     sizeof cublaslt_entries / sizeof *cublaslt_entries},
    {"NCCL", "libnccl.so." TEXT(NCCL_MAJOR), nccl_entries,
     sizeof nccl_entries / sizeof *nccl_entries},
};
enum { LIBRARY_N = sizeof libraries / sizeof *libraries };

static enum status load(int number, struct err *err)
{
    const char *why = "", *name = libraries[number].name;
    void *library = cuda_library_open(libraries[number].file, &why);

    if (!library)
        return err_set(err, STATUS_DEVICE,
                       "%s is not here: %s: install it, or name its folder in LD_LIBRARY_PATH",
                       name, why);
    for (size_t i = 0; i < libraries[number].n; i++) {
        const struct entry *entry = &libraries[number].entries[i];
        cuda_any_call *call = cuda_library_find(library, entry->name);
        if (!call)
            return err_set(err, STATUS_DEVICE, "%s is too old: %s has no %s", name,
                           libraries[number].file, entry->name);
        memcpy(entry->to, &call, sizeof call);
    }
    return STATUS_OK;
}

enum status cuda_libraries_load(struct err *err)
{
    static bool is_loaded;
    enum status status = STATUS_OK;

    for (int i = 0; i < LIBRARY_N && status == STATUS_OK && !is_loaded; i++)
        status = load(i, err);
    is_loaded |= status == STATUS_OK;
    return status;
}
