/*
 * Units of the device check and the tables that pack them; see device_part.h.
 *
 * Built here from shapes, as spec GPU 2.1 says, and not by what a program's tasks are bound with: a
 * mistake in one does not hide in the other.
 */
#include "src/cli/device_part.h"

enum { SLOT_BYTES = 16, SIDE = 2048, WIDE = 8192, GATES = 16, MATRICES = 6, SHORT_ONES = 4 };

static uint64_t shrunk(uint64_t side, uint64_t shrink)
{
    return side / shrink > 0 ? side / shrink : 1;
}

struct device_unit device_unit_block(uint64_t shrink, uint32_t ranks, bool is_mixed,
                                     struct arena *arena)
{
    static const uint64_t sides[MATRICES][2] = {{SIDE, SIDE}, {SIDE, SIDE}, {SIDE, SIDE},
                                                {SIDE, SIDE}, {WIDE, SIDE}, {SIDE, WIDE}};
    static const uint64_t lengths[SHORT_ONES] = {SIDE, SIDE, SIDE, GATES};
    struct device_param *params = arena_array(arena, struct device_param, MATRICES + SHORT_ONES);
    const uint32_t n = is_mixed ? MATRICES + SHORT_ONES : MATRICES;

    for (uint32_t i = 0; i < MATRICES; i++)
        params[i] = (struct device_param){shrunk(sides[i][0], shrink), shrunk(sides[i][1], shrink),
                                          DTYPE_BF16};
    for (uint32_t i = 0; i < SHORT_ONES; i++)
        params[MATRICES + i] = (struct device_param){shrunk(lengths[i], shrink), 1, DTYPE_FP32};
    return (struct device_unit){is_mixed ? "mixed" : "uniform", params, n, ranks};
}

/* The short ones stand among the others, not behind them. */
struct device_unit device_unit_of(uint32_t n, uint64_t shrink, uint32_t ranks, bool is_mixed,
                                  struct arena *arena)
{
    struct device_param *params = arena_array(arena, struct device_param, n);
    const uint32_t every = n < 100 ? n / 2 : 50;
    const uint64_t rows = n < 100 ? WIDE : SIDE;

    for (uint32_t i = 0; i < n; i++) {
        const bool is_short = i % every == every - 1;
        params[i] =
            (struct device_param){is_short ? shrunk(SIDE / 2, shrink) : shrunk(rows, shrink),
                                  is_short ? 1 : shrunk(SIDE / 2, shrink),
                                  is_short && is_mixed ? DTYPE_FP32 : DTYPE_BF16};
    }
    return (struct device_unit){is_mixed ? "mixed" : "uniform", params, n, ranks};
}

/* ---- tables ----------------------------------------------------------------------------------------- */

struct sides {
    uint64_t from, to; /* bytes so far */
    struct pack_segment *segments;
    uint32_t n;
};

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + SLOT_BYTES - 1) / SLOT_BYTES * SLOT_BYTES;
}

static uint64_t chunk_rows(const struct device_unit *unit, const struct device_param *param)
{
    return (param->rows + unit->ranks - 1) / unit->ranks;
}

/* Rows that the rank has; the rest of its chunk is zeros. */
static uint64_t rows_of(const struct device_unit *unit, const struct device_param *param,
                        uint32_t rank)
{
    const uint64_t chunk = chunk_rows(unit, param), first = rank * chunk;
    return first >= param->rows ? 0 : param->rows - first < chunk ? param->rows - first : chunk;
}

static void add(struct sides *sides, struct pack_segment segment)
{
    if (segment.n > 0 || segment.n_zero > 0)
        sides->segments[sides->n++] = segment;
}

static uint64_t whole_bytes(const struct device_param *param)
{
    return aligned(param->rows * param->columns * dtype_bytes((enum dtype)param->dtype));
}

uint64_t device_unit_offset(const struct device_unit *unit, uint32_t param)
{
    uint64_t bytes = 0;

    for (uint32_t p = 0; p < param; p++)
        bytes += whole_bytes(&unit->params[p]);
    return bytes;
}

/* FP32 shards, padded, one behind the other, into the slots of a slice. */
static void add_in(const struct device_unit *unit, struct sides *sides)
{
    for (uint32_t p = 0; p < unit->n_param; p++) {
        const struct device_param *param = &unit->params[p];
        const uint64_t n = chunk_rows(unit, param) * param->columns;
        add(sides, (struct pack_segment){.from = sides->from,
                                         .to = sides->to,
                                         .n = n,
                                         .from_dtype = DTYPE_FP32,
                                         .to_dtype = param->dtype});
        sides->from += n * sizeof(float);
        sides->to += aligned(n * dtype_bytes((enum dtype)param->dtype));
    }
}

/* Where the slot of a parameter lies in a slice of slots in the parameters' dtypes, or all in one. */
static uint64_t slot_bytes(const struct device_unit *unit, const struct device_param *param,
                           enum dtype dtype)
{
    return aligned(chunk_rows(unit, param) * param->columns * dtype_bytes(dtype));
}

/* Slices of all ranks to whole parameters. */
static void add_out(const struct device_unit *unit, struct sides *sides)
{
    uint64_t slice = 0, slot = 0;

    for (uint32_t p = 0; p < unit->n_param; p++)
        slice += slot_bytes(unit, &unit->params[p], (enum dtype)unit->params[p].dtype);
    for (uint32_t p = 0; p < unit->n_param; p++) {
        const struct device_param *param = &unit->params[p];
        const uint64_t each = param->columns * dtype_bytes((enum dtype)param->dtype);
        for (uint32_t r = 0; r < unit->ranks; r++)
            add(sides, (struct pack_segment){.from = r * slice + slot,
                                             .to = sides->to + r * chunk_rows(unit, param) * each,
                                             .n = rows_of(unit, param, r) * param->columns,
                                             .from_dtype = param->dtype,
                                             .to_dtype = param->dtype});
        slot += slot_bytes(unit, param, (enum dtype)param->dtype);
        sides->to += whole_bytes(param);
    }
    sides->from = unit->ranks * slice;
}

/* Whole gradients to the slices of all ranks, in one dtype, with zeros for rows that are not. */
static void add_pack(const struct device_unit *unit, enum dtype reduce, struct sides *sides)
{
    uint64_t slice = 0, slot = 0;

    for (uint32_t p = 0; p < unit->n_param; p++)
        slice += slot_bytes(unit, &unit->params[p], reduce);
    for (uint32_t p = 0; p < unit->n_param; p++) {
        const struct device_param *param = &unit->params[p];
        const uint64_t each = param->columns * dtype_bytes((enum dtype)param->dtype);
        const uint64_t chunk = chunk_rows(unit, param);
        for (uint32_t r = 0; r < unit->ranks; r++) {
            const uint64_t rows = rows_of(unit, param, r);
            add(sides, (struct pack_segment){
                           .from = rows > 0 ? sides->from + r * chunk * each : sides->from,
                           .to = r * slice + slot,
                           .n = rows * param->columns,
                           .n_zero = (chunk - rows) * param->columns * dtype_bytes(reduce),
                           .from_dtype = param->dtype,
                           .to_dtype = (uint8_t)reduce});
        }
        slot += slot_bytes(unit, param, reduce);
        sides->from += whole_bytes(param);
    }
    sides->to = unit->ranks * slice;
}

void device_unit_pack(const struct device_unit *unit, enum device_move move, enum dtype reduce,
                      struct arena *arena, struct device_packing *out)
{
    const size_t most = (size_t)unit->n_param * (move == MOVE_IN ? 1 : unit->ranks);
    struct sides sides = {.segments = arena_array(arena, struct pack_segment, most)};

    if (move == MOVE_IN)
        add_in(unit, &sides);
    else if (move == MOVE_OUT)
        add_out(unit, &sides);
    else
        add_pack(unit, reduce, &sides);
    out->from_bytes = sides.from;
    out->to_bytes = sides.to;
    pack_table_build(sides.segments, sides.n, pack_pick_tile(sides.from + sides.to), arena,
                     &out->table);
}
