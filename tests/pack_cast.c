/*
 * Casts by packing: FP32 patterns of all kinds, and every number of 16 bits, by their definition.
 *
 * The stride is prime to 2^32 and odd, so that each of the low and high bits takes all its values.
 */
#include "gpu/pack.h"

#include <stdlib.h>
#include <string.h>

#include "tests/slow_cast.h"
#include "tests/tap.h"

enum { STRIDE = 4097 };

static uint64_t cast_faults(enum dtype from_dtype, const void *from, enum dtype to_dtype,
                            uint64_t n)
{
    struct arena arena;
    struct pack_table table;
    uint64_t from_bytes = dtype_bytes(from_dtype), to_bytes = dtype_bytes(to_dtype), faults = 0;
    struct pack_segment segment = {
        .n = n, .from_dtype = (uint8_t)from_dtype, .to_dtype = (uint8_t)to_dtype};
    char *to = malloc(n * to_bytes);
    arena_init(&arena);
    pack_table_build(&segment, 1, 8192, &arena, &table);
    host_pack(&table, from, to);
    for (uint64_t i = 0; i < n; i++) {
        char want[4];
        slow_cast(from_dtype, (const char *)from + i * from_bytes, to_dtype, want);
        faults += !slow_same(to_dtype, to + i * to_bytes, want);
    }
    arena_release(&arena);
    free(to);
    return faults;
}

static void test_fp32(void)
{
    uint64_t n = UINT32_MAX / STRIDE + 1;
    uint32_t *patterns = malloc(n * sizeof *patterns);
    for (uint64_t i = 0; i < n; i++)
        patterns[i] = (uint32_t)(i * STRIDE);
    is_int(cast_faults(DTYPE_FP32, patterns, DTYPE_BF16, n), 0,
           "fp32 to bf16, each 4097th pattern");
    is_int(cast_faults(DTYPE_FP32, patterns, DTYPE_FP16, n), 0,
           "fp32 to fp16, each 4097th pattern");
    free(patterns);
}

/* What a stride may step over: ties, and the borders of overflow and of subnormal numbers. */
static void test_borders(void)
{
    uint32_t patterns[3 * 65536], n = 0;
    for (uint32_t code = 0; code < 65536; code++) {
        patterns[n++] = code << 16 | 0x7fff; /* about a tie of BF16 */
        patterns[n++] = code << 16 | 0x8000;
        patterns[n++] = code << 16 | 0x8001;
    }
    is_int(cast_faults(DTYPE_FP32, patterns, DTYPE_BF16, n), 0, "fp32 to bf16, about each tie");
    for (uint32_t code = 0; code < 65536; code++) { /* a sixteenth of the numbers FP16 knows of */
        patterns[3 * code] = 0x33000000 + (code << 12) - 1;
        patterns[3 * code + 1] = 0x33000000 + (code << 12);
        patterns[3 * code + 2] = 0x33000000 + (code << 12) + 1;
    }
    is_int(cast_faults(DTYPE_FP32, patterns, DTYPE_FP16, n), 0, "fp32 to fp16, about each tie");
}

static void test_halves(void)
{
    static uint16_t codes[65536];
    for (uint32_t i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    for (int from = DTYPE_BF16; from <= DTYPE_FP16; from++) {
        for (int to = 0; to < DTYPE_U8; to++)
            is_int(cast_faults((enum dtype)from, codes, (enum dtype)to, 65536), 0,
                   "%s to %s, every code", dtype_name((enum dtype)from),
                   dtype_name((enum dtype)to));
    }
}

int main(void)
{
    test_fp32();
    test_borders();
    test_halves();
    return tap_done();
}
