/*
 * How a warp moves bytes: all in vectors where it can be, and few more read
 * than are needed.
 *
 * Correct bytes say nothing of it, so that a fast path that is never taken
 * would go unnoticed.
 */
#include <stdlib.h>

#include "tests/tap.h"

static void look(uint32_t bytes, bool writes);
#define PACK_TRACE(at, bytes, writes) look((bytes), (writes))
#include "gpu/pack_body.h"

enum { LANES = 32, N = 300000 };

static struct {
  uint64_t narrow, read, written; /* accesses below 8 bytes; bytes */
} seen;

static void look(uint32_t bytes, bool writes) {
  seen.narrow += bytes < 8;
  *(writes ? &seen.written : &seen.read) += bytes;
}

/* In memory that begins on a boundary of 128 bytes, and has N elements of any
 * type. */
static void move_segment(const struct pack_segment *segment) {
  struct arena arena;
  struct pack_table table;
  arena_init(&arena);
  char *from = aligned_alloc(128, N * 4 + 128),
       *to = aligned_alloc(128, N * 4 + 128);
  if (!from || !to)
    tap_bail("out of memory");
  memset(from, 1, N * 4 + 128);
  pack_table_build(segment, 1, 8192, &arena, &table);
  memset(&seen, 0, sizeof seen);
  for (uint32_t i = 0; i < table.n_tile; i++) {
    for (uint32_t lane = 0; lane < LANES; lane++)
      pack_tile_run(&table.tiles[i], table.rows, from, to, lane, LANES);
  }
  free(from);
  free(to);
  arena_release(&arena);
}

/* N elements, so far behind the boundary. */
static void move(enum dtype from_dtype, enum dtype to_dtype, uint32_t from_skew,
                 uint32_t to_skew) {
  move_segment(&(struct pack_segment){.from = from_skew,
                                      .to = to_skew,
                                      .n = N,
                                      .from_dtype = (uint8_t)from_dtype,
                                      .to_dtype = (uint8_t)to_dtype});
}

static void test_zeros(void) {
  move_segment(&(struct pack_segment){.to = 16, .n_zero = N / 16 * 16});
  is_int(seen.narrow, 0, "zeros, aligned: vectors alone");
  move_segment(&(struct pack_segment){.to = 5, .n_zero = N / 16 * 16});
  is_int(seen.narrow, 16, "askew: but at the two ends");
}

static void test_rows(void) {
  struct pack_segment rows = {.n = 32,
                              .n_zero = 64,
                              .from_dtype = DTYPE_BF16,
                              .to_dtype = DTYPE_FP32,
                              .n_row = 500,
                              .from_pitch = 128,
                              .to_pitch = 256};
  move_segment(&rows);
  is_int(seen.narrow, 0,
         "narrow rows that all begin on a vector: vectors alone");
  is_int(seen.read, 500 * 32 * 2, "and each byte is read once");
  is_int(seen.written, 500 * (32 * 4 + 64), "zeros are written among them");
  rows.from = 2;
  move_segment(&rows);
  is_int(seen.narrow, 500 * (32 + 32 + 16), "else by elements");
}

static void test_pair(enum dtype from_dtype, enum dtype to_dtype) {
  const char *from = dtype_name(from_dtype), *to = dtype_name(to_dtype);
  uint64_t from_bytes = dtype_bytes(from_dtype),
           to_bytes = dtype_bytes(to_dtype);
  move(from_dtype, to_dtype, 0, 0);
  is_int(seen.narrow, 0, "%s to %s, aligned: vectors alone", from, to);
  is_int(seen.read, N * from_bytes, "and each byte is read once");

  move(from_dtype, to_dtype, (uint32_t)from_bytes, (uint32_t)(3 * to_bytes));
  ok(seen.narrow < 160, "%s to %s, askew: vectors but at the two ends (%llu)",
     from, to, (unsigned long long)seen.narrow);
  is_int(seen.written, N * to_bytes, "and each byte is written once");
  ok(seen.read <= 2 * N * from_bytes, "and is read twice at most");
}

int main(void) {
  for (int from = 0; from < DTYPE_U8; from++) {
    for (int to = 0; to < DTYPE_U8; to++)
      test_pair((enum dtype)from, (enum dtype)to);
  }
  test_pair(DTYPE_U8, DTYPE_U8);
  test_zeros();
  test_rows();
  return tap_done();
}
