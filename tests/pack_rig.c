/*
 * Memory, segments and the expected bytes of a unit; nothing here knows of tiles.
 */
#include "tests/pack_rig.h"

#include <stdlib.h>
#include <string.h>

#include "tests/slow_cast.h"
#include "tests/tap.h"

static void make_param(struct packed_param *param, uint64_t *state)
{
    param->n_bytes = param->rows * param->columns * dtype_bytes(param->from_dtype);
    param->block = malloc(param->skew + param->n_bytes);
    if (!param->block && param->skew + param->n_bytes)
        tap_bail("out of memory");
    param->at = param->block + param->skew;
    for (uint64_t i = 0; i < param->n_bytes; i++)
        param->at[i] = (char)tap_random(state);
}

static uint64_t rows_of(const struct packed_param *param, uint32_t ranks)
{
    return (param->rows + ranks - 1) / ranks;
}

static struct pack_segment segment_of(const struct packed_unit *unit, uint32_t rank,
                                      const struct packed_param *param, uint64_t to)
{
    uint64_t chunk = rows_of(param, unit->ranks), first = rank * chunk;
    uint64_t rows = first < param->rows ? param->rows - first : 0;
    rows = rows < chunk ? rows : chunk;
    first = first < param->rows ? first : param->rows;
    uint64_t row_bytes = param->columns * dtype_bytes(param->from_dtype);
    return (struct pack_segment){
        .from = (uint64_t)(param->at - unit->from) + first * row_bytes,
        .to = to,
        .n = rows * param->columns,
        .n_zero = (chunk - rows) * param->columns * dtype_bytes(param->to_dtype),
        .from_dtype = (uint8_t)param->from_dtype,
        .to_dtype = (uint8_t)param->to_dtype,
    };
}

static void make_segments(struct packed_unit *unit)
{
    uint64_t to = 0;
    unit->n_segment = unit->ranks * unit->n_param;
    unit->segments = calloc(unit->n_segment + 1, sizeof *unit->segments);
    for (uint32_t i = 0; i < unit->n_segment; i++) {
        const struct packed_param *param = &unit->params[i % unit->n_param];
        to += (unit->slot_align - to % unit->slot_align) % unit->slot_align;
        unit->segments[i] = segment_of(unit, i / unit->n_param, param, to);
        to += rows_of(param, unit->ranks) * param->columns * dtype_bytes(param->to_dtype);
    }
    unit->to_bytes = to;
}

void packed_unit_fill(struct packed_unit *unit, uint64_t *state)
{
    for (uint32_t i = 0; i < unit->n_param; i++)
        make_param(&unit->params[i], state);
    unit->from = unit->n_param ? unit->params[0].at : NULL;
    for (uint32_t i = 0; i < unit->n_param; i++) {
        if ((uintptr_t)unit->params[i].at < (uintptr_t)unit->from)
            unit->from = unit->params[i].at;
    }
    make_segments(unit);
}

void packed_unit_release(struct packed_unit *unit)
{
    for (uint32_t i = 0; i < unit->n_param; i++)
        free(unit->params[i].block);
    free(unit->segments);
}

char *packed_unit_destination(const struct packed_unit *unit, char **block)
{
    uint64_t bytes = PACK_GUARD_BYTES + unit->to_skew + unit->to_bytes + PACK_GUARD_BYTES;
    bytes += PACK_GUARD_BYTES - bytes % PACK_GUARD_BYTES;
    *block = aligned_alloc(PACK_GUARD_BYTES, bytes);
    if (!*block)
        tap_bail("out of memory");
    memset(*block, PACK_POISON, bytes);
    return *block + PACK_GUARD_BYTES + unit->to_skew;
}

static bool is_poison(const char *at, const char *end)
{
    while (at < end && (unsigned char)*at == PACK_POISON)
        at++;
    return at >= end;
}

static uint64_t segment_faults(const struct packed_unit *unit, const struct pack_segment *segment,
                               const char *to)
{
    uint64_t from_bytes = dtype_bytes(segment->from_dtype), faults = 0;
    uint64_t to_bytes = dtype_bytes(segment->to_dtype);
    for (uint64_t i = 0; i < segment->n; i++) {
        char want[4];
        slow_cast(segment->from_dtype, unit->from + segment->from + i * from_bytes,
                  segment->to_dtype, want);
        faults += segment->from_dtype == segment->to_dtype
                      ? memcmp(to + i * to_bytes, want, to_bytes) != 0
                      : !slow_same(segment->to_dtype, to + i * to_bytes, want);
    }
    for (uint64_t i = 0; i < segment->n_zero; i++)
        faults += to[segment->n * to_bytes + i] != 0;
    return faults;
}

uint64_t packed_unit_faults(const struct packed_unit *unit, const char *to)
{
    const char *done = to - PACK_GUARD_BYTES;
    uint64_t faults = 0;
    for (uint32_t i = 0; i < unit->n_segment; i++) {
        const struct pack_segment *segment = &unit->segments[i];
        faults += segment_faults(unit, segment, to + segment->to);
        faults += !is_poison(done, to + segment->to);
        done = to + segment->to + segment->n * dtype_bytes(segment->to_dtype) + segment->n_zero;
    }
    return faults + !is_poison(done, to + unit->to_bytes + PACK_GUARD_BYTES);
}

const struct packed_param *packed_unit_param(const struct packed_unit *unit, const char *at)
{
    for (uint32_t i = 0; i < unit->n_param; i++) {
        const struct packed_param *param = &unit->params[i];
        if (at >= param->at && at < param->at + param->n_bytes)
            return param;
    }
    return NULL;
}
