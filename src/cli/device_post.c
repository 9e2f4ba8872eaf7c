/*
 * What follows a reduce-scatter (K4) on the device bit by bit, against the host's: scales of a power of
 * two and of none, casts, and results that are added to.
 *
 * Numbers are finite, since which NaN comes out is nobody's promise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/convert.h"
#include "src/cli/device_part.h"

enum { ELEMENTS = 100003 }; /* no multiple of what a vector holds */

static void fill(enum dtype dtype, uint64_t state, void *out)
{
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const float value = (float)((double)(int64_t)state * 0x1p-60);
        const uint16_t half = dtype == DTYPE_BF16 ? f32_to_bf16(value) : f32_to_fp16(value);
        if (dtype == DTYPE_FP32)
            memcpy((float *)out + i, &value, sizeof value);
        else
            memcpy((uint16_t *)out + i, &half, sizeof half);
    }
}

struct trial {
    struct post_reduce post; /* addresses of the host */
    char from[ELEMENTS * sizeof(float)], want[ELEMENTS * sizeof(float)],
        got[ELEMENTS * sizeof(float)];
};

static enum status run_there(struct timed_device *timed, struct trial *trial, struct err *err)
{
    const uint64_t from_bytes = ELEMENTS * dtype_bytes((enum dtype)trial->post.from_dtype);
    const uint64_t to_bytes = ELEMENTS * dtype_bytes((enum dtype)trial->post.to_dtype);
    void *from = NULL, *to = NULL;
    enum status status = timed_take(timed, from_bytes, &from, err);

    if (status == STATUS_OK)
        status = timed_take(timed, to_bytes, &to, err);
    if (status == STATUS_OK)
        status = timed_put(timed, from, trial->from, from_bytes, err);
    if (status == STATUS_OK)
        status = timed_put(timed, to, trial->got, to_bytes, err);
    struct post_reduce post = trial->post;
    post.from = from;
    post.to = to;
    struct work work = {.kind = WORK_POST, .n = 1, .is.posts = &post};
    if (status == STATUS_OK)
        status = timed->ops->prepare(timed->self, &work, err);
    if (status == STATUS_OK)
        status = timed_do(timed, &work, err);
    if (status == STATUS_OK)
        status = timed_get(timed, trial->got, to, to_bytes, err);
    timed_reset(timed);
    return status;
}

static enum status check(struct device_part_run *run, struct trial *trial, uint32_t factor,
                         struct err *err)
{
    const struct post_reduce *post = &trial->post;
    const uint64_t to_bytes = ELEMENTS * dtype_bytes((enum dtype)post->to_dtype);
    char key[64], words[128];

    fill((enum dtype)post->from_dtype, factor, trial->from);
    fill((enum dtype)post->to_dtype, factor + 1, trial->got);
    memcpy(trial->want, trial->got, sizeof trial->want);
    trial->post.from = trial->from;
    trial->post.to = trial->want;
    host_post_reduce(&trial->post);
    const enum status status = run_there(&run->timed, trial, err);
    if (status != STATUS_OK)
        return status;
    const char *from = dtype_name((enum dtype)post->from_dtype);
    const char *to = dtype_name((enum dtype)post->to_dtype);
    snprintf(key, sizeof key, "%s_%s_%u%s", from, to, factor, post->accumulates ? "_added" : "");
    snprintf(words, sizeof words, "%s by %u to %s%s: is not the host's", from, factor, to,
             post->accumulates ? ", added" : "");
    device_faults(run, key, words, memcmp(trial->got, trial->want, to_bytes) != 0);
    return STATUS_OK;
}

enum status device_part_post(struct device_part_run *run, struct err *err)
{
    static const uint8_t dtypes[][2] = {
        {DTYPE_FP32, DTYPE_FP32}, {DTYPE_FP32, DTYPE_BF16}, {DTYPE_BF16, DTYPE_BF16}};
    static const uint32_t factors[] = {8, 7, 300};
    struct trial *trial = malloc(sizeof *trial);
    enum status status = STATUS_OK;

    if (!trial)
        err_out_of_memory(sizeof *trial);
    for (uint32_t i = 0; i < 3 * 3 * 2 && status == STATUS_OK; i++) {
        trial->post = (struct post_reduce){.n = ELEMENTS,
                                           .from_dtype = dtypes[i / 6][0],
                                           .to_dtype = dtypes[i / 6][1],
                                           .accumulates = i % 2,
                                           .scale = 1.0F / (float)factors[i / 2 % 3]};
        status = check(run, trial, factors[i / 2 % 3], err);
    }
    free(trial);
    return status;
}
