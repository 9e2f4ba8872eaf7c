/*
 * The table of element types, unrolled into one array for each of its columns.
 *
 * No conversion of values lives here. Each type of DTYPES has a row; an index past the last one is
 * a fault of the caller.
 */
#include "src/dtype.h"

#include <assert.h>

uint64_t dtype_bytes(enum dtype dtype)
{
    static const uint64_t sizes[] = {
#define X(id, name, bytes) bytes,
        DTYPES(X)
#undef X
    };
    assert(dtype < DTYPE_N);
    return sizes[dtype];
}

const char *dtype_name(enum dtype dtype)
{
    static const char *const names[] = {
#define X(id, name, bytes) name,
        DTYPES(X)
#undef X
    };
    assert(dtype < DTYPE_N);
    return names[dtype];
}
