/*
 * What JSON forbids and cJSON lets through, found in the text before it is parsed.
 *
 * Knows characters, strings, numbers, keys and how deep brackets go; the rest of the grammar is
 * cJSON's part.
 */
#ifndef SRC_JSON_CHECK_H
#define SRC_JSON_CHECK_H

#include <stddef.h>

#include "src/err.h"

/* A text with its end: text[length] is '\0', but there may be others before it. */
struct json_source {
    const char *name, *text;
    size_t length;
};

enum status json_check(const struct json_source *source, struct err *err);

/* "NAME: line 3, column 9: message" for what is wrong at this offset; columns are characters. */
enum status json_fail_at(const struct json_source *source, size_t offset, struct err *err,
                         const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* How many bytes from here on to quote in a message: a word, or else one character. */
int json_word_length(const char *at);

/* Bytes of the UTF-8 character of a terminated text at this place; 0 where there is none. */
size_t json_utf8_length(const char *at);

#endif
