/*
 * One 64-bit word after another into a hash that tells programs, states and placements apart.
 *
 * The same words give the same hash on every machine and in every version; not for keys that an
 * adversary chooses.
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
