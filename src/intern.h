/*
 * Which number stands for these bytes: a map that only grows.
 */
#ifndef SRC_INTERN_H
#define SRC_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "src/arena.h"

struct intern_entry;

struct intern {
    struct intern_entry *entries;
    uint32_t n, cap; /* cap: a power of two, more than n */
};

/* The place of the number, which is 0 where the bytes are new; valid until the next call. */
int64_t *intern_find(struct intern *intern, struct arena *arena, const void *key, size_t length);

#endif
