/*
 * Terminal dress; see term.h. No cursor movement, no width queries, no locale.
 */
#include "src/cli/term.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_COLUMNS = 80 };

static bool wants_color(enum color_mode mode)
{
    if (mode != COLOR_AUTO)
        return mode == COLOR_ALWAYS;
    const char *no_color = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && kind && *kind &&
           strcmp(kind, "dumb") != 0;
}

struct term term_open(enum color_mode mode)
{
    if (!wants_color(mode))
        return (struct term){"", "", "", "", "", ""};
    return (struct term){
        .strong = "\033[1m",
        .quiet = "\033[2m",
        .good = "\033[32m",
        .bad = "\033[31m",
        .bar = "\033[36m",
        .plain = "\033[0m",
    };
}

void term_bar(const struct term *term, uint64_t part, uint64_t whole, unsigned width,
              struct text *out)
{
    unsigned filled = whole ? (unsigned)((double)part / (double)whole * width + 0.5) : 0;
    if (filled == 0 && part > 0)
        filled = 1;
    text_add(out, "%s", term->bar);
    for (unsigned i = 0; i < filled && i < width; i++)
        text_add(out, "#");
    text_add(out, "%s", term->plain);
}

/* Invariant: at is the column that the next character goes to. */
void term_wrap(const char *paragraph, unsigned column, struct text *out)
{
    size_t at = column;
    for (const char *word = paragraph; *word;) {
        size_t length = strcspn(word, " ");
        if (at > column && at + 1 + length > LINE_COLUMNS) {
            text_add(out, "\n%*s", (int)column, "");
            at = column;
        }
        text_add(out, "%s%.*s", at > column ? " " : "", (int)length, word);
        at += length + (at > column);
        word += length;
        word += strspn(word, " ");
    }
    text_add(out, "\n");
}
