/*
 * What a terminal adds to text: a little colour, bars, lines that are not too long, and the care
 * that what comes from outside is only text.
 *
 * Everything is plain ASCII and nothing else where stdout is no terminal, TERM is "dumb" or
 * NO_COLOR is set; --color=always and never have the last word. The codes are strings that are
 * empty without colour, so that a report is written once: pad the words, not the codes.
 */
#ifndef SRC_CLI_TERM_H
#define SRC_CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>

#include "src/text.h"

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct term {
    const char *strong, *quiet, *good, *bad, *bar, *plain; /* plain ends each of the others */
    bool utf8; /* a terminal that the locale says shows more than ASCII */
};

struct term term_open(enum color_mode mode);

/* Two blanks and a bar of part / whole of width characters; nothing for what rounds to 0.0 %. */
void term_bar(const struct term *term, uint64_t part, uint64_t whole, unsigned width,
              struct text *out);

/*
 * A name from a file or the command line, as it may be printed: '?' in place of control characters
 * and of bytes that are no UTF-8; of a long one its end behind "...", which begins with what parts words
 * or folders where there is such a place. Returns buffer.
 */
enum { TERM_NAME_COLUMNS = 80, TERM_NAME_BYTES = 4 * TERM_NAME_COLUMNS + 4 };
const char *term_name(const char *name, char buffer[TERM_NAME_BYTES]);
unsigned term_columns(const char *text);
/* The same of any text; of one that has more than most columns its beginning and "...". */
void term_text(const char *text, unsigned most, struct text *out);

/* Columns of the lines of help, and of all other pages. */
enum { TERM_HELP_COLUMNS = 80, TERM_PAGE_COLUMNS = 100 };

/* Between two words of a paragraph: printed as a blank at which no line ends. */
#define TERM_GLUE "\x1f"

struct term_margins {
    unsigned columns;
    unsigned at;      /* the column where the first line goes on */
    unsigned hanging; /* where the words of later lines begin */
    const char *lead; /* what later lines begin with, or NULL */
};

/*
 * Words of a paragraph as lines, with the last newline. Only a word that is longer than a line goes
 * over the margin. Characters are replaced as in a name.
 */
void term_wrap(const char *paragraph, struct term_margins margins, struct text *out);

#endif
