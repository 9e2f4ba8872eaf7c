/*
 * One 64-bit word after another into a hash that tells states and placements apart.
 *
 * Not for keys that an adversary chooses, and no identity on disk: its value may change.
 */
#ifndef SRC_HASH_H
#define SRC_HASH_H

#include <stdint.h>

static inline uint64_t hash_add(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

#endif
