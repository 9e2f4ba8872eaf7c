/*
 * One tensor so large that its elements pass 2^31 and its bytes 2^32, BF16 to FP32: looked at around
 * these borders and at its ends.
 */
#include <stdlib.h>

#include "gpu/convert.h"
#include "src/cli/device_part.h"

enum { WINDOW = 4096 };

/* Of element i; changes with all of its bits. */
static uint16_t element(uint64_t i)
{
    return (uint16_t)((i * UINT64_C(0x9e3779b97f4a7c15)) >> 48 & 0xbfff); /* no NaN */
}

static enum status fill(void *context, uint32_t step, uint64_t offset, void *to, uint64_t bytes,
                        struct err *err)
{
    uint16_t *out = to;

    (void)context, (void)step, (void)err;
    for (uint64_t i = 0; i < bytes / sizeof *out; i++)
        out[i] = element(offset / sizeof *out + i);
    return STATUS_OK;
}

/* first: of the window, which ends with the tensor. */
static enum status look(struct timed_device *timed, const float *at, uint64_t first, uint64_t n,
                        uint64_t *faults, struct err *err)
{
    float got[WINDOW];
    const uint64_t wide = n - first < WINDOW ? n - first : WINDOW;
    const enum status status = timed_get(timed, got, at + first, wide * sizeof *got, err);

    for (uint64_t i = 0; i < wide && status == STATUS_OK; i++)
        *faults += f32_bits(got[i]) != f32_bits(bf16_to_f32(element(first + i)));
    return status;
}

static enum status look_around(struct device_part_run *run, const void *to, struct err *err)
{
    /* In elements: bytes of either side pass 2^31 and 2^32 at 2^29 to 2^31. */
    static const uint64_t borders[] = {0, UINT64_C(1) << 29, UINT64_C(1) << 30, UINT64_C(1) << 31,
                                       UINT64_MAX};
    const uint64_t n = run->scale.far;
    uint64_t faults = 0, windows = 0;
    enum status status = STATUS_OK;

    for (int i = 0; i < 5 && status == STATUS_OK; i++) {
        const uint64_t border = borders[i] < n ? borders[i] : n;
        const uint64_t first = border > WINDOW / 2 ? border - WINDOW / 2 : 0;
        status = look(&run->timed, to, first, n, &faults, err);
        windows++;
    }
    if (status != STATUS_OK)
        return status;
    device_tell(run, "elements", "elements", CHECK_COUNT, (double)n);
    device_tell(run, "windows", "windows of 4096 that were looked at", CHECK_COUNT,
                (double)windows);
    device_faults(run, "faults", "elements that differ", faults);
    return STATUS_OK;
}

enum status device_part_far(struct device_part_run *run, struct err *err)
{
    struct timed_device *timed = &run->timed;
    const uint64_t n = run->scale.far;
    const struct pack_segment segment = {.n = n, .from_dtype = DTYPE_BF16, .to_dtype = DTYPE_FP32};
    struct pack_table table;
    void *from = NULL, *to = NULL;
    enum status status = timed_take(timed, n * sizeof(uint16_t), &from, err);

    if (status == STATUS_OK)
        status = timed_take(timed, n * sizeof(float), &to, err);
    if (status == STATUS_OK)
        status = timed_give(timed, from, n * sizeof(uint16_t), fill, NULL, err);
    if (status != STATUS_OK)
        return status;
    pack_table_build(&segment, 1, pack_pick_tile(n * sizeof(float)), &run->arena, &table);
    const struct work_pack pack = {&table, from, to};
    struct work work = {.kind = WORK_PACK, .n = 1, .is.packs = &pack};
    status = timed->ops->prepare(timed->self, &work, err);
    if (status == STATUS_OK)
        status = timed_do(timed, &work, err);
    return status == STATUS_OK ? look_around(run, to, err) : status;
}
