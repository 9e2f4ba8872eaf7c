/*
 * Names of element types. No conversion of values lives here. An index past the last type is a fault
 * of the caller.
 */
#include "src/dtype.h"

#include <assert.h>

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
