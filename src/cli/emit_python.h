/*
 * Names of modules and parameters as lines of Python: a loop where they repeat with the number of a
 * block, a line each where they do not.
 *
 * Knows strings and numbers in them, and nothing of plans. Invariant: run, the lines yield what the
 * items are, in their order.
 */
#ifndef SRC_CLI_EMIT_PYTHON_H
#define SRC_CLI_EMIT_PYTHON_H

#include "src/arena.h"
#include "src/text.h"

/* One line: words in quotes, and what follows the last of them as it is. */
struct emit_item {
    const char *const *words;
    uint32_t n;
    const char *tail; /* of items that may share a line of a loop it is the same */
};

/* before and after: what stands around an item, as in "yield unit(" and ")". Four blanks in. */
void emit_items(const struct emit_item *items, uint32_t n, const char *before, const char *after,
                struct arena *arena, struct text *out);

/* A string with its quotes, of any bytes. */
void emit_string(const char *string, struct text *out);

#endif
