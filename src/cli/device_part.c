/*
 * The parts of the device check and what runs one; see device_part.h. Here too: the part that only says
 * what the device is.
 */
#include "src/cli/device_part.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define TIMEOUT_NS INT64_C(60000000000)
#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

const struct device_part device_parts[] = {
#define X(name, core, seconds, gib, mib, words) \
    {#name, words, core, seconds, (gib)*GIB, (mib)*MIB, device_part_##name},
    DEVICE_PARTS(X)
#undef X
        {.name = NULL},
};

static const struct device_scale scales[DEVICE_N] = {
    [DEVICE_HOST] =
        {.shrink = 16, .cast_runs = 1, .copy_bytes = 32 * MIB, .far = 1 << 20, .is_small = true},
    [DEVICE_CUDA] = {.shrink = 1,
                     .cast_runs = 256,
                     .copy_bytes = 4 * GIB,
                     .far = UINT64_C(2200000000),
                     .judges_speed = true},
};

const struct device_scale *device_scale(enum device device)
{
    return &scales[device];
}

/* ---- lines ------------------------------------------------------------------------------------------ */

static void add_line(struct device_part_run *run, struct check_line line)
{
    line.words = arena_strdup(&run->arena, line.words);
    line.key = arena_strdup(&run->arena, line.key);
    assert(run->n_line < DEVICE_MOST_LINES);
    run->lines[run->n_line++] = line;
    if (run->note)
        run->note(run->context, run);
}

void device_faults(struct device_part_run *run, const char *key, const char *words, uint64_t faults)
{
    add_line(run, (struct check_line){.key = key,
                                      .words = words,
                                      .value = (double)faults,
                                      .unit = CHECK_COUNT,
                                      .bound = CHECK_BOUND_AT_MOST,
                                      .verdict = faults ? CHECK_FAILED : CHECK_PASSED});
}

void device_tell(struct device_part_run *run, const char *key, const char *words,
                 enum check_unit unit, double value)
{
    add_line(run, (struct check_line){.key = key,
                                      .words = words,
                                      .value = value,
                                      .limit = NAN,
                                      .unit = (uint8_t)unit,
                                      .verdict = CHECK_TOLD});
}

void device_goal(struct device_part_run *run, const char *key, const char *words,
                 enum check_unit unit, double value, enum check_bound bound, double limit)
{
    const bool holds = bound == CHECK_BOUND_AT_LEAST ? value >= limit : value <= limit;
    const enum check_verdict verdict = holds ? CHECK_PASSED : CHECK_FAILED;

    add_line(run, (struct check_line){.key = key,
                                      .words = words,
                                      .value = value,
                                      .limit = limit,
                                      .unit = (uint8_t)unit,
                                      .bound = (uint8_t)bound,
                                      .verdict = run->scale.judges_speed ? verdict : CHECK_TOLD});
}

/* ---- parts ------------------------------------------------------------------------------------------ */

enum status device_part_environment(struct device_part_run *run, struct err *err)
{
    struct device_outside outside;

    (void)err;
    run->timed.ops->outside(run->timed.self, &outside);
    device_tell(run, "memory_bytes", "memory", CHECK_BYTES, (double)run->facts.memory_bytes);
    device_tell(run, "processors", "processors", CHECK_COUNT, run->facts.processors);
    device_tell(run, "devices", "devices of this kind", CHECK_COUNT, run->facts.devices);
    device_tell(run, "context_bytes", "taken by opening it", CHECK_BYTES,
                (double)outside.context_bytes);
    device_faults(run, "unmapped", "a segment of which the system knows nothing",
                  run->timed.ops->mapped_bytes(run->timed.self) != run->timed.bytes);
    return STATUS_OK;
}

/* One that says what it is, also for parts without memory of their own. */
static enum status open_device(struct device_part_run *run, uint64_t bytes, struct err *err)
{
    const struct device_setup setup = {.ranks = 1, .timeout_ns = TIMEOUT_NS};
    enum status status = timed_open(run->ops, &setup, bytes, &run->timed, err);

    if (status == STATUS_OK)
        status = run->timed.ops->describe(run->timed.self, &run->facts, err);
    return status;
}

enum status device_part_run(const struct device_part *part, const struct device_ops *ops,
                            const struct device_scale *scale, struct device_part_run *out,
                            struct err *err)
{
    const uint64_t bytes = scale->is_small ? part->host_bytes : part->cuda_bytes;
    enum status status = ops->probe(err);

    out->ops = ops;
    out->scale = *scale;
    if (status != STATUS_OK)
        return status;
    if (bytes == 0)
        return part->run(out, err);
    status = open_device(out, bytes, err);
    if (status == STATUS_OK)
        status = part->run(out, err);
    timed_close(&out->timed);
    return status;
}
