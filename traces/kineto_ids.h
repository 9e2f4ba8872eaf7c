/*
 * Equal bytes get the same small number, in the order in which they are first seen, and numbers lead
 * back to their bytes: names, and structs without padding.
 */
#ifndef TRACES_KINETO_IDS_H
#define TRACES_KINETO_IDS_H

#include "src/intern.h"

struct kineto_ids {
    struct arena *arena;
    struct intern numbers; /* 1 + what stands for the bytes */
    const void **keys;     /* copies, each with a NUL behind it, so that a name is a string */
    uint32_t n, cap;
};

uint32_t kineto_id(struct kineto_ids *ids, const void *key, size_t length);

#endif
