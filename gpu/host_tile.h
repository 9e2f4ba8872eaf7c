/*
 * Products of small FP32 matrices that lie in cache: what the host's linear layers and attention are
 * made of. No dtypes, no memory, no blocking of large ones.
 *
 * Each element of the product is one sum over k in rising order, from zero, which then is added to
 * what is there: results do not depend on how wide the machine's registers are.
 */
#ifndef GPU_HOST_TILE_H
#define GPU_HOST_TILE_H

#include <stdint.h>

/* Columns are computed so many at a time. */
enum { TILE_COLUMNS = 8 };

/* Element (i, j) lies at[i * row + j * column]. */
struct tile {
    float *at;
    uint64_t row, column;
};

static inline uint64_t tile_padded(uint64_t columns)
{
    return (columns + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
}

/* c[m,n] += a[m,k] b[k,n]. Rows of b and c lie in one piece (column 1) and are as long as
   tile_padded(n), of which the end is computed too. */
void tile_product(struct tile a, struct tile b, struct tile c, uint64_t m, uint64_t n, uint64_t k);

#endif
