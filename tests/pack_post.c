/*
 * What follows a reduce-scatter: scaled, cast, added, with a rounding after each.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/pack.h"
#include "tests/slow_cast.h"
#include "tests/tap.h"

enum { MOST = 3000 };

static const float SCALES[] = {1, 0.125f, 1.0f / 7, 1.0f / 300, 3};

/* Any bits, or numbers near 1, whose sums and products are rounded. */
static void fill(char *at, enum dtype dtype, bool any_bits, uint64_t *state)
{
    uint64_t bytes = dtype_bytes(dtype);
    for (uint64_t i = 0; i < MOST; i++) {
        uint64_t bits = tap_random(state);
        if (any_bits)
            memcpy(at + i * bytes, &bits, bytes);
        else
            slow_write(dtype, (double)(bits >> 40) / (1 << 22) - 2, at + i * bytes);
    }
}

static void slow_post(const struct post_reduce *post, uint64_t i, void *out)
{
    enum dtype from = post->from_dtype, to = post->to_dtype;
    const char *old = (const char *)post->to + i * dtype_bytes(to);
    char scaled[4], cast[4];
    double value = slow_read(from, (const char *)post->from + i * dtype_bytes(from));
    slow_write(from, slow_fp32(value * (double)post->scale), scaled);
    slow_write(to, slow_read(from, scaled), cast);
    if (post->accumulates)
        slow_write(to, slow_fp32(slow_read(to, old) + slow_read(to, cast)), cast);
    memcpy(out, cast, dtype_bytes(to));
}

static uint64_t post_faults(const struct post_reduce *post)
{
    uint64_t bytes = dtype_bytes(post->to_dtype), faults = 0;
    char *want = malloc(MOST * bytes), *got = post->to;
    memcpy(want, got, MOST * bytes);
    for (uint64_t i = 0; i < post->n; i++)
        slow_post(post, i, want + i * bytes);
    host_post_reduce(post);
    for (uint64_t i = 0; i < MOST; i++)
        faults += !slow_same(post->to_dtype, got + i * bytes, want + i * bytes);
    free(want);
    return faults;
}

static void test_pair(enum dtype from_dtype, enum dtype to_dtype, uint64_t *state)
{
    char *from = malloc(MOST * 4), *to = malloc(MOST * 4);
    uint64_t faults = 0;
    for (int round = 0; round < 40; round++) {
        bool in_place = from_dtype == to_dtype && round % 8 == 3;
        fill(from, from_dtype, round % 4 == 0, state);
        fill(to, to_dtype, round % 4 == 0, state);
        struct post_reduce post = {
            .from = in_place ? to : from,
            .to = to,
            .n = tap_below(state, MOST + 1),
            .from_dtype = (uint8_t)from_dtype,
            .to_dtype = (uint8_t)to_dtype,
            .accumulates = round % 2,
            .scale = SCALES[round % 5],
        };
        faults += post_faults(&post);
    }
    free(from);
    free(to);
    is_int(faults, 0, "%s to %s: rounded after each of scale, cast and sum", dtype_name(from_dtype),
           dtype_name(to_dtype));
}

static void test_no_middle_rounding_is_left_out(void)
{
    uint16_t from = 0x3f80; /* 1, and a third of it is 0.333984375 in BF16 */
    float to = 1;
    host_post_reduce(&(struct post_reduce){.from = &from,
                                           .to = &to,
                                           .n = 1,
                                           .from_dtype = DTYPE_BF16,
                                           .to_dtype = DTYPE_FP32,
                                           .accumulates = true,
                                           .scale = 1.0f / 3});
    ok(to == 1.333984375f, "BF16 is rounded before it is added to FP32 (%.9g)", (double)to);
}

int main(void)
{
    uint64_t state = tap_seed(64);
    for (int from = 0; from < DTYPE_U8; from++) {
        for (int to = 0; to < DTYPE_U8; to++)
            test_pair((enum dtype)from, (enum dtype)to, &state);
    }
    test_no_middle_rounding_is_left_out();
    return tap_done();
}
