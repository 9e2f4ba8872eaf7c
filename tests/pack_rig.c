/*
 * Memory, segments and the expected bytes of a unit; nothing here knows of tiles.
 */
#include "tests/pack_rig.h"

#include <stdlib.h>
#include <string.h>

#include "tests/slow_cast.h"
#include "tests/tap.h"

/* ---- shapes -------------------------------------------------------------------------------- */

static enum dtype random_number(uint64_t *state)
{
    return (enum dtype)tap_below(state, DTYPE_U8);
}

static struct packed_param random_param(uint64_t *state)
{
    struct packed_param param = {
        .before = 1,
        .rows = tap_below(state, 8) ? tap_below(state, 40) : tap_below(state, 3),
        .columns = 1 + tap_below(state, tap_below(state, 5) ? 60 : 1500),
        .from_dtype = random_number(state),
        .to_dtype = random_number(state),
    };
    if (tap_below(state, 3) == 0) {
        param.before = 1 + tap_below(state, 70);
        param.columns = tap_below(state, 3) ? 1 + tap_below(state, 9) : 8 * tap_below(state, 5);
    }
    if (tap_below(state, 8) == 0)
        param.from_dtype = param.to_dtype = DTYPE_U8;
    if (tap_below(state, 2))
        param.skew = (uint32_t)(tap_below(state, 16) * dtype_bytes(param.from_dtype));
    else if (tap_below(state, 4) == 0)
        param.skew = (uint32_t)tap_below(state, 33);
    return param;
}

void packed_unit_choose(struct packed_unit *unit, uint64_t *state)
{
    *unit = (struct packed_unit){
        .ranks = tap_below(state, 20) ? 1 + (uint32_t)tap_below(state, 9) : 128,
        .n_param = (uint32_t)tap_below(state, 9),
        .joins = tap_below(state, 3) == 0,
        .slot_align = tap_below(state, 2) ? 16 : 1,
        .to_skew = tap_below(state, 3) ? 0 : (uint32_t)tap_below(state, 33),
    };
    for (uint32_t i = 0; i < unit->n_param; i++)
        unit->params[i] = random_param(state);
}

/* ---- memory and segments ------------------------------------------------------------------- */

static uint64_t chunk_of(const struct packed_param *param, uint32_t ranks)
{
    return (param->rows + ranks - 1) / ranks;
}

/* Elements of one rank's shard, its padding included. */
static uint64_t shard_elements(const struct packed_param *param, uint32_t ranks)
{
    return param->before * chunk_of(param, ranks) * param->columns;
}

static void make_param(struct packed_param *param, const struct packed_unit *unit, uint64_t *state)
{
    uint64_t n = unit->joins ? unit->ranks * shard_elements(param, unit->ranks)
                             : param->before * param->rows * param->columns;
    param->n_bytes = n * dtype_bytes(param->from_dtype);
    param->block = malloc(param->skew + param->n_bytes);
    if (!param->block && param->skew + param->n_bytes)
        tap_bail("out of memory");
    param->at = param->block + param->skew;
    for (uint64_t i = 0; i < param->n_bytes; i++)
        param->at[i] = (char)tap_random(state);
}

/* Between the whole tensor and a rank's shard in the slot at to. */
static struct pack_segment segment_of(const struct packed_unit *unit, uint32_t rank,
                                      const struct packed_param *param, uint64_t to)
{
    const uint64_t chunk = chunk_of(param, unit->ranks);
    const uint64_t first = rank * chunk < param->rows ? rank * chunk : param->rows;
    const uint64_t rows = param->rows - first < chunk ? param->rows - first : chunk;
    const uint64_t from_bytes = dtype_bytes(param->from_dtype);
    const uint64_t to_bytes = dtype_bytes(param->to_dtype);
    const uint64_t whole = param->rows * param->columns, shard = chunk * param->columns;
    struct pack_segment segment = {
        .from = (uint64_t)(param->at - unit->from),
        .to = to,
        .n = rows * param->columns,
        .from_dtype = (uint8_t)param->from_dtype,
        .to_dtype = (uint8_t)param->to_dtype,
        .n_row = param->before,
        .from_pitch = (unit->joins ? shard : whole) * from_bytes,
        .to_pitch = (unit->joins ? whole : shard) * to_bytes,
    };
    if (unit->joins) {
        segment.from += rank * shard_elements(param, unit->ranks) * from_bytes;
        segment.to += first * param->columns * to_bytes;
    } else {
        segment.from += first * param->columns * from_bytes;
        segment.n_zero = (chunk - rows) * param->columns * to_bytes;
    }
    return segment;
}

static uint64_t align(const struct packed_unit *unit, uint64_t to)
{
    return to + (unit->slot_align - to % unit->slot_align) % unit->slot_align;
}

static void make_slices(struct packed_unit *unit)
{
    uint64_t to = 0;
    for (uint32_t i = 0; i < unit->n_segment; i++) {
        const struct packed_param *param = &unit->params[i % unit->n_param];
        to = align(unit, to);
        unit->segments[i] = segment_of(unit, i / unit->n_param, param, to);
        to += shard_elements(param, unit->ranks) * dtype_bytes(param->to_dtype);
    }
    unit->to_bytes = to;
}

static void make_wholes(struct packed_unit *unit)
{
    uint64_t to = 0;
    for (uint32_t i = 0; i < unit->n_segment; i++) {
        const struct packed_param *param = &unit->params[i / unit->ranks];
        if (i % unit->ranks == 0)
            to = align(unit, to);
        unit->segments[i] = segment_of(unit, i % unit->ranks, param, to);
        if (i % unit->ranks == unit->ranks - 1)
            to += param->before * param->rows * param->columns * dtype_bytes(param->to_dtype);
    }
    unit->to_bytes = to;
}

void packed_unit_fill(struct packed_unit *unit, uint64_t *state)
{
    for (uint32_t i = 0; i < unit->n_param; i++)
        make_param(&unit->params[i], unit, state);
    unit->from = unit->n_param ? unit->params[0].at : NULL;
    for (uint32_t i = 0; i < unit->n_param; i++) {
        if ((uintptr_t)unit->params[i].at < (uintptr_t)unit->from)
            unit->from = unit->params[i].at;
    }
    unit->n_segment = unit->ranks * unit->n_param;
    unit->segments = calloc(unit->n_segment + 1, sizeof *unit->segments);
    if (unit->joins)
        make_wholes(unit);
    else
        make_slices(unit);
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

/* ---- what has to be there ------------------------------------------------------------------ */

static uint64_t rows_of(const struct pack_segment *segment)
{
    return segment->n_row > 1 ? segment->n_row : 1;
}

uint8_t *packed_unit_owned(const struct packed_unit *unit)
{
    uint8_t *owned = calloc(unit->to_bytes + 1, 1);
    for (uint32_t i = 0; i < unit->n_segment; i++) {
        const struct pack_segment *segment = &unit->segments[i];
        uint64_t bytes = segment->n * dtype_bytes(segment->to_dtype) + segment->n_zero;
        for (uint64_t r = 0; r < rows_of(segment) && bytes > 0; r++)
            memset(owned + segment->to + r * segment->to_pitch, 1, bytes);
    }
    return owned;
}

static uint64_t row_faults(const struct pack_segment *segment, const char *from, const char *to)
{
    uint64_t from_bytes = dtype_bytes(segment->from_dtype), faults = 0;
    uint64_t to_bytes = dtype_bytes(segment->to_dtype);
    for (uint64_t i = 0; i < segment->n; i++) {
        char want[4];
        slow_cast(segment->from_dtype, from + i * from_bytes, segment->to_dtype, want);
        faults += segment->from_dtype == segment->to_dtype
                      ? memcmp(to + i * to_bytes, want, to_bytes) != 0
                      : !slow_same(segment->to_dtype, to + i * to_bytes, want);
    }
    for (uint64_t i = 0; i < segment->n_zero; i++)
        faults += to[segment->n * to_bytes + i] != 0;
    return faults;
}

static uint64_t segment_faults(const struct packed_unit *unit, const struct pack_segment *segment,
                               const char *to)
{
    uint64_t faults = 0;
    for (uint64_t r = 0; r < rows_of(segment); r++)
        faults += row_faults(segment, unit->from + segment->from + r * segment->from_pitch,
                             to + segment->to + r * segment->to_pitch);
    return faults;
}

static uint64_t poison_faults(const struct packed_unit *unit, const char *to)
{
    uint8_t *owned = packed_unit_owned(unit);
    uint64_t faults = 0;
    for (uint64_t i = 0; i < unit->to_bytes; i++)
        faults += !owned[i] && (unsigned char)to[i] != PACK_POISON;
    for (int i = 0; i < PACK_GUARD_BYTES; i++) {
        faults += (unsigned char)to[i - PACK_GUARD_BYTES] != PACK_POISON;
        faults += (unsigned char)to[unit->to_bytes + i] != PACK_POISON;
    }
    free(owned);
    return faults;
}

uint64_t packed_unit_faults(const struct packed_unit *unit, const char *to)
{
    uint64_t faults = poison_faults(unit, to);
    for (uint32_t i = 0; i < unit->n_segment; i++)
        faults += segment_faults(unit, &unit->segments[i], to);
    return faults;
}
