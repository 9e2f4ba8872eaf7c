/*
 * How fast packing is, against what the same device copies in the same process: a copy of as many bytes
 * pays the same start and the same end. Units of one type and of two, few parameters and many; and
 * memory that packing takes beside its two sides.
 *
 * Bytes are those read and those written. What was published of others is told beside.
 */
#include <stdio.h>

#include "src/cli/device_part.h"

enum { RANKS = 8, COPY_GOAL_PERCENT = 90, MIXED_GOAL_PERCENT = 97 };

/* PyTorch's fused mixed packing on an H100: 302 MB in 0.1888 ms (spec GPU 1.1, pytorch#196626). */
static const double PUBLISHED_GB_PER_S = 1600;

static double gb(double bytes)
{
    return bytes * 1e-9;
}

/* As many bytes as are read and written in all. */
static enum status copy_rate(struct timed_device *timed, uint64_t moved_bytes, double *gb_per_s,
                             struct err *err)
{
    const uint64_t bytes = moved_bytes / 2;
    void *from = NULL, *to = NULL;
    double seconds = 1;
    enum status status = timed_take(timed, bytes, &from, err);

    if (status == STATUS_OK)
        status = timed_take(timed, bytes, &to, err);
    const struct work work = {.kind = WORK_COPY, .n = 1, .is.copy = {to, from, bytes}};
    if (status == STATUS_OK)
        status = timed_run(timed, &work, 1, &seconds, err);
    timed_reset(timed);
    *gb_per_s = gb(2 * (double)bytes) / seconds;
    return status;
}

/* Several tables in a row, each from its own side to its own; the memory of all is there at once. */
struct row {
    struct device_packing packings[2];
    struct work_pack packs[2];
    struct work works[2];
    uint32_t n;
};

static enum status prepare_row(struct timed_device *timed, struct row *row, struct err *err)
{
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < row->n && status == STATUS_OK; i++) {
        const struct device_packing *packing = &row->packings[i];
        void *from = NULL, *to = NULL;
        status = timed_take(timed, packing->from_bytes, &from, err);
        if (status == STATUS_OK)
            status = timed_take(timed, packing->to_bytes, &to, err);
        const struct work zeros = {.kind = WORK_FILL,
                                   .is.fill = {.to = from, .bytes = packing->from_bytes}};
        if (status == STATUS_OK)
            status = timed_do(timed, &zeros, err);
        row->packs[i] = (struct work_pack){&packing->table, from, to};
        row->works[i] = (struct work){.kind = WORK_PACK, .n = 1, .is.packs = &row->packs[i]};
        if (status == STATUS_OK)
            status = timed->ops->prepare(timed->self, &row->works[i], err);
    }
    return status;
}

/* What the device has taken between the first packing and the last. */
static uint64_t taken_bytes(struct timed_device *timed)
{
    struct device_outside outside;

    timed->ops->outside(timed->self, &outside);
    return timed->ops->mapped_bytes(timed->self) + outside.table_bytes + outside.scratch_bytes;
}

static enum status row_seconds(struct timed_device *timed, struct row *row, double *seconds,
                               uint64_t *more_bytes, struct err *err)
{
    enum status status = prepare_row(timed, row, err);
    const uint64_t before = taken_bytes(timed);
    double each = 0;

    if (status == STATUS_OK)
        status = timed_run(timed, row->works, row->n, &each, err);
    *seconds = each * row->n;
    const uint64_t after = taken_bytes(timed);
    *more_bytes += after > before ? after - before : 0;
    timed_reset(timed);
    return status;
}

/* ---- one unit --------------------------------------------------------------------------------------- */

struct result {
    double gb_per_s, percent; /* of a copy of as many bytes */
    double seconds;
};

static enum status time_unit(struct device_part_run *run, const struct device_unit *unit,
                             enum device_move move, enum dtype reduce, uint64_t *more_bytes,
                             struct result *out, struct err *err)
{
    struct row row = {.n = 1};
    double copy_gb_per_s = 1;

    device_unit_pack(unit, move, reduce, &run->arena, &row.packings[0]);
    const struct pack_table *table = &row.packings[0].table;
    const uint64_t moved_bytes = table->bytes_read + table->bytes_written;
    enum status status = row_seconds(&run->timed, &row, &out->seconds, more_bytes, err);
    if (status == STATUS_OK)
        status = copy_rate(&run->timed, moved_bytes, &copy_gb_per_s, err);
    out->gb_per_s = gb((double)moved_bytes) / out->seconds;
    out->percent = 100 * out->gb_per_s / copy_gb_per_s;
    return status;
}

static void say(struct device_part_run *run, const char *what, const char *which,
                const struct result *result)
{
    char key[64], words[128];

    snprintf(key, sizeof key, "%s_%s", what, which);
    snprintf(words, sizeof words, "%s, %s", what, which);
    device_tell(run, key, words, CHECK_GB_PER_S, result->gb_per_s);
    snprintf(key, sizeof key, "%s_%s_of_copy", what, which);
    snprintf(words, sizeof words, "%s, %s, of a copy of as many bytes", what, which);
    device_goal(run, key, words, CHECK_PERCENT, result->percent, CHECK_BOUND_AT_LEAST,
                COPY_GOAL_PERCENT);
}

static void say_mixed(struct device_part_run *run, const char *what, const struct result *uniform,
                      const struct result *mixed)
{
    char key[64], words[128];

    snprintf(key, sizeof key, "%s_mixed_of_uniform", what);
    snprintf(words, sizeof words, "%s, rate of mixed units, of that of uniform ones", what);
    device_goal(run, key, words, CHECK_PERCENT, 100 * mixed->gb_per_s / uniform->gb_per_s,
                CHECK_BOUND_AT_LEAST, MIXED_GOAL_PERCENT);
}

static enum status time_both(struct device_part_run *run, const char *what,
                             const struct device_unit units[2], enum device_move move,
                             uint64_t *more_bytes, struct result results[2], struct err *err)
{
    enum status status = STATUS_OK;

    for (int i = 0; i < 2 && status == STATUS_OK; i++)
        status = time_unit(run, &units[i], move, DTYPE_FP32, more_bytes, &results[i], err);
    if (status != STATUS_OK)
        return status;
    say_mixed(run, what, &results[0], &results[1]);
    return STATUS_OK;
}

/* ---- against a cast ahead of it --------------------------------------------------------------------- */

/* One kernel for all casts, then one that packs FP32: less than PyTorch does, which has a kernel for
   each tensor or so. */
static enum status time_precast(struct device_part_run *run, const struct device_unit *unit,
                                double fused_s, uint64_t *more_bytes, struct err *err)
{
    struct device_param *params = arena_array(&run->arena, struct device_param, unit->n_param);
    struct device_unit alone = *unit, fp32 = *unit;
    struct row row = {.n = 2};
    double seconds = 1;

    for (uint32_t i = 0; i < unit->n_param; i++) {
        params[i] = unit->params[i];
        params[i].dtype = DTYPE_FP32;
    }
    alone.ranks = 1;
    fp32.params = params;
    device_unit_pack(&alone, MOVE_PACK, DTYPE_FP32, &run->arena, &row.packings[0]);
    device_unit_pack(&fp32, MOVE_PACK, DTYPE_FP32, &run->arena, &row.packings[1]);
    const enum status status = row_seconds(&run->timed, &row, &seconds, more_bytes, err);
    if (status == STATUS_OK)
        device_tell(run, "precast_of_fused", "a cast of all first, then packing: of one kernel",
                    CHECK_TIMES, seconds / fused_s);
    return status;
}

static enum status time_blocks(struct device_part_run *run, uint64_t *more_bytes, struct err *err)
{
    const uint64_t shrink = run->scale.shrink;
    const struct device_unit units[2] = {device_unit_block(shrink, RANKS, false, &run->arena),
                                         device_unit_block(shrink, RANKS, true, &run->arena)};
    struct result results[2];
    enum status status = time_both(run, "pack-50m", units, MOVE_PACK, more_bytes, results, err);

    if (status != STATUS_OK)
        return status;
    say(run, "pack-50m", "uniform", &results[0]);
    say(run, "pack-50m", "mixed", &results[1]);
    device_tell(run, "published", "published for PyTorch's fused packing, on an H100",
                CHECK_GB_PER_S, PUBLISHED_GB_PER_S);
    return time_precast(run, &units[1], results[1].seconds, more_bytes, err);
}

static enum status time_counts(struct device_part_run *run, uint64_t *more_bytes, struct err *err)
{
    static const struct {
        const char *what;
        uint32_t n;
        uint8_t move;
    } cases[] = {{"gradients of 10", 10, MOVE_PACK},
                 {"gradients of 500", 500, MOVE_PACK},
                 {"copy-in of 10", 10, MOVE_IN},
                 {"copy-in of 500", 500, MOVE_IN}};
    enum status status = STATUS_OK;

    for (int i = 0; i < 4 && status == STATUS_OK; i++) {
        const uint64_t shrink = run->scale.shrink;
        const struct device_unit units[2] = {
            device_unit_of(cases[i].n, shrink, RANKS, false, &run->arena),
            device_unit_of(cases[i].n, shrink, RANKS, true, &run->arena)};
        struct result results[2];
        status = time_both(run, cases[i].what, units, (enum device_move)cases[i].move, more_bytes,
                           results, err);
        if (status == STATUS_OK)
            device_tell(run, cases[i].what, cases[i].what, CHECK_GB_PER_S, results[1].gb_per_s);
    }
    return status;
}

enum status device_part_speed(struct device_part_run *run, struct err *err)
{
    uint64_t more_bytes = 0;
    double large_gb_per_s = 0;
    enum status status = copy_rate(&run->timed, 2 * run->scale.copy_bytes, &large_gb_per_s, err);

    if (status != STATUS_OK)
        return status;
    device_tell(run, "copy_large", "the device's own copy, of a large piece", CHECK_GB_PER_S,
                large_gb_per_s);
    status = time_blocks(run, &more_bytes, err);
    if (status == STATUS_OK)
        status = time_counts(run, &more_bytes, err);
    if (status == STATUS_OK)
        device_faults(run, "temporary_bytes", "bytes taken while packing", more_bytes);
    return status;
}
