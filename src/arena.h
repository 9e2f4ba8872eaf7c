/*
 * Memory that is given back all at once.
 *
 * A plan and everything made from it lives in one arena, so that nothing has a free of its own. An
 * arena that is reset keeps its blocks: the second candidate costs no malloc. Running out of memory
 * ends the program with one line; sizes that come from a file are bounded before they get here.
 */
#ifndef SRC_ARENA_H
#define SRC_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_block;

struct arena {
    struct arena_block *first, *current; /* blocks in the order in which they are filled */
};

void arena_init(struct arena *arena);
void arena_reset(struct arena *arena);   /* everything in it is gone, its blocks are kept */
void arena_release(struct arena *arena); /* everything is gone */

/* Zeroed memory on a 16-byte boundary; never NULL. */
void *arena_alloc(struct arena *arena, size_t bytes) __attribute__((malloc, alloc_size(2)));
/* The same, not zeroed: for arrays whose elements are written before they are read. */
void *arena_take(struct arena *arena, size_t bytes) __attribute__((malloc, alloc_size(2)));
#define arena_array(arena, type, n) ((type *)arena_alloc((arena), sizeof(type) * (size_t)(n)))

/*
 * Make an array of *cap elements hold at least want of them: doubles, in place where the array is
 * the arena's last piece. Returns the array; the new part is zeroed.
 */
void *arena_grow(struct arena *arena, void *array, uint32_t *cap, uint32_t want,
                 size_t element_bytes);

char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
