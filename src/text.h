/*
 * Text: a string that grows, patterns, nearest names, numbers from words.
 *
 * No locale and no I/O. Numbers are parsed whole or not at all.
 */
#ifndef SRC_TEXT_H
#define SRC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *at; /* always terminated once something was added, else NULL */
    size_t length, cap;
};

void text_init(struct text *text);
void text_release(struct text *text);
void text_add(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Blanks until the current line has this many characters. */
void text_pad(struct text *text, size_t column);

/* '*' stands for any run of characters, dots included, '?' for one; everything else for itself. */
bool text_matches(const char *pattern, const char *text);

/*
 * Index of the only name that begins with two or more letters like these, else of the one with the
 * smallest edit distance; -1 where none is near enough to be meant.
 */
int text_nearest(const char *name, const char *const *names, size_t n);

/* Decimal digits only, whole text, no sign; false on anything else or past 2^64 - 1. */
bool text_to_u64(const char *text, uint64_t *out);
/* A count with a unit: 1024, 72GiB, 80GB, 512MiB, 1.5TiB; the unit is needed past plain bytes. */
bool text_to_bytes(const char *text, uint64_t *out);

/* "17.3 GiB" and the like into a buffer of at least 32 characters, which is returned. */
const char *text_bytes(uint64_t bytes, char *buffer);
/* "12.345 ms" and the like, same rule. */
const char *text_ns(int64_t ns, char *buffer);
/* 6738415616 as "6,738,415,616", same rule. */
const char *text_count(uint64_t n, char *buffer);

#endif
