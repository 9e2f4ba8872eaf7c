/*
 * Libraries by the dynamic linker; see cuda_library.h. They stay: what they started does not end before
 * the process does.
 */
#include <dlfcn.h>
#include <string.h>

#include "gpu/cuda_library.h"

void *cuda_library_open(const char *file, const char **why)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        *why = dlerror();
    return library;
}

/* What POSIX lets one do with dlsym's pointer, in C. */
cuda_any_call *cuda_library_find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    cuda_any_call *call = NULL;

    memcpy(&call, &found, sizeof call);
    return call;
}
