/*
 * Casts of the device against the host's (gpu/convert.h): every pattern of FP32 to BF16 and to FP16, and
 * every code of 16 bits to FP32. On a device they are instructions of it, on the host that C.
 *
 * What bits a NaN of FP16 becomes is not promised: that it stays one is, and the rest is counted.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/convert.h"
#include "src/cli/device_part.h"

enum { RUN_BITS = 24, CODES = 1 << 16, SHARES = 8 };
#define CAST_RUN ((uint64_t)1 << RUN_BITS)

/* Fewer runs are spread over all patterns. */
struct patterns {
    uint32_t first, step;
};

static enum status fill_patterns(void *context, uint32_t step, uint64_t offset, void *to,
                                 uint64_t bytes, struct err *err)
{
    const struct patterns *patterns = context;
    uint32_t *out = to;

    (void)step, (void)err;
    for (uint64_t i = 0; i < bytes / sizeof *out; i++)
        out[i] = patterns->first + (uint32_t)(offset / sizeof *out + i) * patterns->step;
    return STATUS_OK;
}

static enum status cast_all(struct timed_device *timed, const void *from, void *to, uint64_t n,
                            enum dtype from_dtype, enum dtype to_dtype, struct err *err)
{
    const struct pack_segment segment = {
        .n = n, .from_dtype = (uint8_t)from_dtype, .to_dtype = (uint8_t)to_dtype};
    struct pack_table table;
    struct arena arena;

    arena_init(&arena);
    pack_table_build(&segment, 1, pack_pick_tile(n * sizeof(float)), &arena, &table);
    const struct work_pack pack = {&table, from, to};
    struct work work = {.kind = WORK_PACK, .n = 1, .is.packs = &pack};
    enum status status = timed->ops->prepare(timed->self, &work, err);
    if (status == STATUS_OK)
        status = timed_do(timed, &work, err);
    timed->ops->forget(timed->self);
    arena_release(&arena);
    return status;
}

/* A share of a run, on a thread of its own: all patterns are too many for one. */
struct share {
    const struct patterns *patterns;
    const uint16_t *got;
    uint32_t begin, end;
    enum dtype dtype;
    uint64_t differ;
};

static void *count_share(void *context)
{
    struct share *share = context;

    for (uint32_t i = share->begin; i < share->end; i++) {
        const float value = f32_from_bits(share->patterns->first + i * share->patterns->step);
        const uint16_t want = share->dtype == DTYPE_BF16 ? f32_to_bf16(value) : f32_to_fp16(value);
        share->differ += share->got[i] != want;
    }
    return NULL;
}

/* What has no thread is done here. */
static uint64_t differ(const struct patterns *patterns, enum dtype dtype, const uint16_t *got)
{
    struct share shares[SHARES];
    pthread_t threads[SHARES];
    bool runs[SHARES];
    uint64_t n = 0;

    for (uint32_t i = 0; i < SHARES; i++) {
        shares[i] = (struct share){.patterns = patterns,
                                   .got = got,
                                   .begin = (uint32_t)(CAST_RUN / SHARES * i),
                                   .end = (uint32_t)(CAST_RUN / SHARES * (i + 1)),
                                   .dtype = dtype};
        runs[i] = pthread_create(&threads[i], NULL, count_share, &shares[i]) == 0;
    }
    for (uint32_t i = 0; i < SHARES; i++) {
        if (runs[i])
            pthread_join(threads[i], NULL);
        else
            count_share(&shares[i]);
        n += shares[i].differ;
    }
    return n;
}

/* ---- from FP32 ------------------------------------------------------------------------------------- */

struct narrowing {
    void *from, *to; /* of the device */
    uint16_t *got;
    uint64_t bf16, fp16; /* that differ */
};

static enum status check_run(struct timed_device *timed, const struct patterns *patterns,
                             struct narrowing *of, struct err *err)
{
    static const uint8_t dtypes[] = {DTYPE_BF16, DTYPE_FP16};
    enum status status = timed_give(timed, of->from, CAST_RUN * sizeof(float), fill_patterns,
                                    (void *)(uintptr_t)patterns, err);

    for (int i = 0; i < 2 && status == STATUS_OK; i++) {
        uint64_t *count = dtypes[i] == DTYPE_BF16 ? &of->bf16 : &of->fp16;
        status =
            cast_all(timed, of->from, of->to, CAST_RUN, DTYPE_FP32, (enum dtype)dtypes[i], err);
        if (status == STATUS_OK)
            status = timed_get(timed, of->got, of->to, CAST_RUN * sizeof(uint16_t), err);
        if (status == STATUS_OK)
            *count += differ(patterns, (enum dtype)dtypes[i], of->got);
    }
    return status;
}

static enum status check_narrowing(struct device_part_run *run, struct narrowing *of,
                                   struct err *err)
{
    const uint64_t runs = run->scale.cast_runs;
    const bool is_all = runs << RUN_BITS == UINT64_C(1) << 32;
    enum status status = STATUS_OK;

    for (uint64_t i = 0; i < runs && status == STATUS_OK; i++) {
        const struct patterns patterns = {.first = (uint32_t)(is_all ? i << RUN_BITS : i),
                                          .step =
                                              is_all ? 1 : (uint32_t)(1 << (32 - RUN_BITS)) - 1};
        status = check_run(&run->timed, &patterns, of, err);
    }
    if (status != STATUS_OK)
        return status;
    device_tell(run, "fp32_patterns", "patterns of FP32", CHECK_COUNT, (double)(runs << RUN_BITS));
    device_faults(run, "fp32_to_bf16", "FP32 to BF16 that differ", of->bf16);
    device_faults(run, "fp32_to_fp16", "FP32 to FP16 that differ", of->fp16);
    return STATUS_OK;
}

/* ---- to FP32 --------------------------------------------------------------------------------------- */

static enum status fill_codes(void *context, uint32_t step, uint64_t offset, void *to,
                              uint64_t bytes, struct err *err)
{
    uint16_t *out = to;

    (void)context, (void)step, (void)err;
    for (uint64_t i = 0; i < bytes / sizeof *out; i++)
        out[i] = (uint16_t)(offset / sizeof *out + i);
    return STATUS_OK;
}

static uint64_t count_codes(const float *got, enum dtype dtype, uint64_t *nan_bits)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < CODES; i++) {
        const float want =
            dtype == DTYPE_BF16 ? bf16_to_f32((uint16_t)i) : fp16_to_f32((uint16_t)i);
        const bool same = f32_bits(got[i]) == f32_bits(want);
        const bool nans = dtype == DTYPE_FP16 && isnan(want) && isnan(got[i]);
        n += !same && !nans;
        *nan_bits += !same && nans;
    }
    return n;
}

static enum status check_widening(struct device_part_run *run, struct narrowing *of,
                                  struct err *err)
{
    float *got = (float *)(void *)of->got;
    uint64_t bf16 = 0, fp16 = 0, nan_bits = 0;
    enum status status =
        timed_give(&run->timed, of->from, CODES * sizeof(uint16_t), fill_codes, NULL, err);

    if (status == STATUS_OK)
        status = cast_all(&run->timed, of->from, of->to, CODES, DTYPE_BF16, DTYPE_FP32, err);
    if (status == STATUS_OK)
        status = timed_get(&run->timed, got, of->to, CODES * sizeof(float), err);
    if (status == STATUS_OK)
        bf16 = count_codes(got, DTYPE_BF16, &nan_bits);
    if (status == STATUS_OK)
        status = cast_all(&run->timed, of->from, of->to, CODES, DTYPE_FP16, DTYPE_FP32, err);
    if (status == STATUS_OK)
        status = timed_get(&run->timed, got, of->to, CODES * sizeof(float), err);
    if (status != STATUS_OK)
        return status;
    fp16 = count_codes(got, DTYPE_FP16, &nan_bits);
    device_faults(run, "bf16_to_fp32", "BF16 to FP32 that differ", bf16);
    device_faults(run, "fp16_to_fp32", "FP16 to FP32 that differ, NaN aside", fp16);
    device_tell(run, "fp16_nan_bits", "NaN of FP16 that became another NaN", CHECK_COUNT,
                (double)nan_bits);
    return STATUS_OK;
}

enum status device_part_casts(struct device_part_run *run, struct err *err)
{
    struct narrowing of = {.got = malloc(CAST_RUN * sizeof(float))};
    enum status status;

    if (!of.got)
        err_out_of_memory(CAST_RUN * sizeof(float));
    status = timed_take(&run->timed, CAST_RUN * sizeof(float), &of.from, err);
    if (status == STATUS_OK)
        status = timed_take(&run->timed, CAST_RUN * sizeof(uint16_t), &of.to, err);
    if (status == STATUS_OK)
        status = check_narrowing(run, &of, err);
    if (status == STATUS_OK)
        status = check_widening(run, &of, err);
    free(of.got);
    return status;
}
