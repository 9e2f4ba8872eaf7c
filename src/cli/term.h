/*
 * What a terminal adds to text: a little colour, and bars.
 *
 * Everything is plain ASCII and nothing else where stdout is no terminal, TERM is "dumb" or
 * NO_COLOR is set; --color=always and never have the last word. The codes are strings that are
 * empty without colour, so that a report is written once: pad the words, not the codes.
 */
#ifndef SRC_CLI_TERM_H
#define SRC_CLI_TERM_H

#include <stdint.h>

#include "src/text.h"

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct term {
    const char *strong, *quiet, *good, *bad, *bar, *plain; /* plain ends each of the others */
};

struct term term_open(enum color_mode mode);

/* A bar of part / whole of width characters, at least one where part is not 0. */
void term_bar(const struct term *term, uint64_t part, uint64_t whole, unsigned width,
              struct text *out);

/* Words of a paragraph, wrapped before column 80, later lines indented to column. */
void term_wrap(const char *paragraph, unsigned column, struct text *out);

#endif
