/*
 * The product of two small matrices: four rows by eight columns at a time stay in registers.
 *
 * Vectors are the compiler's, so that plain -O2 keeps them in registers; on x86-64 the same code is
 * compiled a second time for AVX2, which is taken where the machine has it. Products and sums are
 * never fused (-ffp-contract=off), so that both give the same bits.
 */
#include "gpu/host_tile.h"

#include <string.h>

enum { ROWS = 4 };

typedef float columns __attribute__((vector_size(TILE_COLUMNS * sizeof(float))));

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE void add_to(float *c, const columns *sum)
{
    columns old;
    memcpy(&old, c, sizeof old);
    old += *sum;
    memcpy(c, &old, sizeof old);
}

ALWAYS_INLINE void four_rows(struct tile a, const float *b, uint64_t b_row, float *c,
                             uint64_t c_row, uint64_t k)
{
    const float *a0 = a.at, *a1 = a0 + a.row, *a2 = a1 + a.row, *a3 = a2 + a.row;
    columns sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};
    for (uint64_t i = 0, at = 0; i < k; i++, at += a.column, b += b_row) {
        columns line;
        memcpy(&line, b, sizeof line);
        sum0 += a0[at] * line;
        sum1 += a1[at] * line;
        sum2 += a2[at] * line;
        sum3 += a3[at] * line;
    }
    add_to(c, &sum0);
    add_to(c + c_row, &sum1);
    add_to(c + 2 * c_row, &sum2);
    add_to(c + 3 * c_row, &sum3);
}

ALWAYS_INLINE void one_row(struct tile a, const float *b, uint64_t b_row, float *c, uint64_t k)
{
    columns sum = {0};
    for (uint64_t i = 0; i < k; i++, b += b_row) {
        columns line;
        memcpy(&line, b, sizeof line);
        sum += a.at[i * a.column] * line;
    }
    add_to(c, &sum);
}

ALWAYS_INLINE void product(struct tile a, struct tile b, struct tile c, uint64_t m, uint64_t n,
                           uint64_t k)
{
    for (uint64_t j = 0; j < n; j += TILE_COLUMNS) {
        struct tile rows = a;
        float *to = c.at + j;
        uint64_t i = 0;
        for (; i + ROWS <= m; i += ROWS, rows.at += ROWS * a.row, to += ROWS * c.row)
            four_rows(rows, b.at + j, b.row, to, c.row, k);
        for (; i < m; i++, rows.at += a.row, to += c.row)
            one_row(rows, b.at + j, b.row, to, k);
    }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void
product_avx2(struct tile a, struct tile b, struct tile c, uint64_t m, uint64_t n, uint64_t k)
{
    product(a, b, c, m, n, k);
}
#endif

void tile_product(struct tile a, struct tile b, struct tile c, uint64_t m, uint64_t n, uint64_t k)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        product_avx2(a, b, c, m, n, k);
        return;
    }
#endif
    product(a, b, c, m, n, k);
}
