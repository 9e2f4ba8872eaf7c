/*
 * Blocks in a list, filled from the front; nothing is given back before all of it is.
 *
 * Blocks up to current are in use, those behind it are empty and wait for their turn. A block's
 * used count is valid only once it has been current since the last reset, so that a reset touches
 * one block. Under the address sanitizer what was not handed out is poisoned.
 */
#include "src/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/err.h"

#if defined(__has_include)
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define ALIGNMENT ((size_t)16)
#define BLOCK_MIN_BYTES ((size_t)64 << 10)
#define BLOCK_MAX_BYTES ((size_t)1 << 20)

struct arena_block {
    struct arena_block *next;
    size_t size, used; /* bytes of data */
    _Alignas(16) unsigned char data[];
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

static void open_block(struct arena *arena, struct arena_block *block)
{
    arena->current = block;
    block->used = 0;
    ASAN_POISON_MEMORY_REGION(block->data, block->size);
}

void arena_reset(struct arena *arena)
{
    if (arena->first)
        open_block(arena, arena->first);
}

void arena_release(struct arena *arena)
{
    struct arena_block *next;
    for (struct arena_block *block = arena->first; block; block = next) {
        next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block->data, block->size);
        free(block);
    }
    arena_init(arena);
}

static size_t round_up(size_t bytes)
{
    if (bytes > PTRDIFF_MAX - sizeof(struct arena_block) - ALIGNMENT)
        err_out_of_memory(bytes);
    return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static struct arena_block *new_block(const struct arena_block *previous, size_t bytes)
{
    size_t size = BLOCK_MIN_BYTES;
    if (previous)
        size = previous->size < BLOCK_MAX_BYTES / 2 ? previous->size * 2 : BLOCK_MAX_BYTES;
    if (size < bytes)
        size = bytes;
    struct arena_block *block = malloc(sizeof(*block) + size);
    if (!block)
        err_out_of_memory(sizeof(*block) + size);
    block->size = size;
    return block;
}

/* Unlink the first empty block behind current that is large enough; NULL where there is none. */
static struct arena_block *take_empty_block(struct arena_block *current, size_t bytes)
{
    for (struct arena_block **link = &current->next; *link; link = &(*link)->next) {
        struct arena_block *block = *link;
        if (block->size >= bytes) {
            *link = block->next;
            return block;
        }
    }
    return NULL;
}

static void next_block(struct arena *arena, size_t bytes)
{
    struct arena_block *current = arena->current;
    struct arena_block *block = current ? take_empty_block(current, bytes) : NULL;
    if (!block)
        block = new_block(current, bytes);

    struct arena_block **link = current ? &current->next : &arena->first;
    block->next = *link;
    *link = block;
    open_block(arena, block);
}

void *arena_take(struct arena *arena, size_t bytes)
{
    size_t rounded = round_up(bytes);
    if (!arena->current || arena->current->size - arena->current->used < rounded)
        next_block(arena, rounded);

    struct arena_block *block = arena->current;
    unsigned char *piece = block->data + block->used;
    block->used += rounded;
    ASAN_UNPOISON_MEMORY_REGION(piece, bytes);
    return piece;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    return memset(arena_take(arena, bytes), 0, bytes);
}

/* True where the array was the last piece of the current block and now has the new size. */
static bool extend_last(struct arena *arena, unsigned char *array, size_t old_bytes,
                        size_t new_bytes)
{
    struct arena_block *block = arena->current;
    if (!array || array + round_up(old_bytes) != block->data + block->used)
        return false;
    size_t start = block->used - round_up(old_bytes);
    if (round_up(new_bytes) > block->size - start)
        return false;
    block->used = start + round_up(new_bytes);
    ASAN_UNPOISON_MEMORY_REGION(array, new_bytes);
    memset(array + old_bytes, 0, new_bytes - old_bytes);
    return true;
}

void *arena_grow(struct arena *arena, void *array, uint32_t *cap, uint32_t want,
                 size_t element_bytes)
{
    if (want <= *cap)
        return array;

    uint32_t new_cap = *cap < 4 ? 8 : *cap > UINT32_MAX / 2 ? UINT32_MAX : *cap * 2;
    if (new_cap < want)
        new_cap = want;
    size_t old_bytes = *cap * element_bytes, new_bytes;
    if (__builtin_mul_overflow(new_cap, element_bytes, &new_bytes))
        err_out_of_memory(SIZE_MAX);

    if (!extend_last(arena, array, old_bytes, new_bytes)) {
        void *moved = arena_alloc(arena, new_bytes);
        if (old_bytes > 0)
            memcpy(moved, array, old_bytes);
        array = moved;
    }
    *cap = new_cap;
    return array;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(arena_alloc(arena, bytes), text, bytes);
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    char start[256]; /* long enough for nearly all */
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(start, sizeof(start), fmt, args);
    va_end(args);
    if (length < 0)
        err_out_of_memory(0);

    size_t bytes = (size_t)length + 1;
    char *text = arena_alloc(arena, bytes);
    if (bytes <= sizeof(start))
        memcpy(text, start, bytes);
    else
        vsnprintf(text, bytes, fmt, again);
    va_end(again);
    return text;
}
