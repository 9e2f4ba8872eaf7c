/*
 * The map of src/intern.h, and the way back.
 */
#include "traces/kineto_ids.h"

#include <string.h>

uint32_t kineto_id(struct kineto_ids *ids, const void *key, size_t length)
{
    int64_t *number = intern_find(&ids->numbers, ids->arena, key, length);
    if (*number == 0) {
        char *copy = arena_alloc(ids->arena, length + 1);
        memcpy(copy, key, length);
        ids->keys = arena_grow(ids->arena, ids->keys, &ids->cap, ids->n + 1, sizeof(*ids->keys));
        ids->keys[ids->n++] = copy;
        *number = ids->n;
    }
    return (uint32_t)(*number - 1);
}
