/*
 * Numbers of a run as the database holds them. Private to db/.
 */
#ifndef DB_NUMBER_H
#define DB_NUMBER_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "src/plan.h"

enum { NUMBER_HEX_CHARS = 17 };

/* A hash: 16 hexadecimal digits, since its upper half would be negative. Returns buffer. */
static inline const char *number_to_hex(uint64_t hash, char *buffer)
{
    snprintf(buffer, NUMBER_HEX_CHARS, "%016" PRIx64, hash);
    return buffer;
}

/* Units and microbatches: -1 for none. */
static inline int64_t number_of_unit(uint16_t unit)
{
    return unit == NO_UNIT ? -1 : unit;
}
static inline uint16_t number_to_unit(int64_t number)
{
    return number < 0 || number >= NO_UNIT ? NO_UNIT : (uint16_t)number;
}

#endif
