/*
 * Terminal dress; see term.h. No cursor movement, no width queries, no locale but for its name: a
 * character is one column.
 */
#include "src/cli/term.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/json_check.h"

static bool wants_color(enum color_mode mode)
{
    if (mode != COLOR_AUTO)
        return mode == COLOR_ALWAYS;
    const char *no_color = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && kind && *kind &&
           strcmp(kind, "dumb") != 0;
}

/* What setlocale() would be told, without having a locale. */
static bool shows_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *kind = getenv("TERM");
    const char *locale = NULL;
    for (size_t i = 0; i < 3 && !(locale && *locale); i++)
        locale = getenv(variables[i]);
    const char *charset = locale ? strchr(locale, '.') : NULL;
    return charset && (!strncasecmp(charset, ".utf-8", 6) || !strncasecmp(charset, ".utf8", 5)) &&
           isatty(STDOUT_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
}

struct term term_open(enum color_mode mode)
{
    bool utf8 = shows_utf8();
    if (!wants_color(mode))
        return (struct term){"", "", "", "", "", "", utf8};
    return (struct term){
        .strong = "\033[1m",
        .quiet = "\033[2m",
        .good = "\033[32m",
        .bad = "\033[31m",
        .bar = "\033[36m",
        .plain = "\033[0m",
        .utf8 = utf8,
    };
}

void term_bar(const struct term *term, uint64_t part, uint64_t whole, unsigned width,
              struct text *out)
{
    double share = whole ? (double)part / (double)whole : 0;
    if (share < 0.0005)
        return;
    unsigned filled = (unsigned)(share * width + 0.5);
    text_add(out, "  %s", term->bar);
    for (unsigned i = 0; i < width && (i == 0 || i < filled); i++)
        text_add(out, "#");
    text_add(out, "%s", term->plain);
}

/* Bytes of the character at text, which is not its end, and whether it may be shown. */
static size_t read_character(const char *text, bool *shown)
{
    unsigned char lead = (unsigned char)text[0];
    size_t length = json_utf8_length(text);
    bool control = lead < 0x20 || lead == 0x7f;
    if (lead == 0xc2 && length == 2) /* U+0080 to U+009F */
        control = (unsigned char)text[1] < 0xa0;
    *shown = length > 0 && !control;
    return length > 0 ? length : 1;
}

static unsigned count_columns(const char *text, size_t length)
{
    unsigned columns = 0;
    bool shown;
    for (size_t at = 0; at < length; at += read_character(text + at, &shown))
        columns++;
    return columns;
}

unsigned term_columns(const char *text)
{
    return count_columns(text, strlen(text));
}

/* Where it can begin after a cut: not within a word or a number, unless it is one. */
static const char *next_border(const char *name)
{
    const char *border = name + strcspn(name, " /,;");
    return border[0] && border[1] ? border : name;
}

const char *term_name(const char *name, char buffer[TERM_NAME_BYTES])
{
    unsigned columns = term_columns(name);
    bool cut = columns > TERM_NAME_COLUMNS, shown;
    for (; columns > TERM_NAME_COLUMNS - (cut ? 3 : 0); columns--)
        name += read_character(name, &shown);
    if (cut)
        name = next_border(name);

    char *end = buffer;
    for (unsigned i = 0; cut && i < 3; i++)
        *end++ = '.';
    while (*name) {
        size_t length = read_character(name, &shown);
        memcpy(end, shown ? name : "?", shown ? length : 1);
        end += shown ? length : 1;
        name += length;
    }
    *end = '\0';
    return buffer;
}

static void add_word(const char *word, size_t length, struct text *out)
{
    for (size_t at = 0, step; at < length; at += step) {
        bool shown;
        step = read_character(word + at, &shown);
        if (shown)
            text_add(out, "%.*s", (int)step, word + at);
        else
            text_add(out, "%s", word[at] == *TERM_GLUE ? " " : "?");
    }
}

void term_text(const char *text, unsigned most, struct text *out)
{
    bool cut = term_columns(text) > most, shown;
    size_t length = 0;
    for (unsigned left = cut ? most - 3 : most; left > 0 && text[length]; left--)
        length += read_character(text + length, &shown);
    add_word(text, length, out);
    text_add(out, "%s", cut ? "..." : "");
}

/* Invariant: at is the column that the next character goes to. */
void term_wrap(const char *paragraph, struct term_margins margins, struct text *out)
{
    unsigned at = margins.at;
    bool begun = false; /* this line has a word */
    for (const char *word = paragraph + strspn(paragraph, " "); *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");
        unsigned columns = count_columns(word, length);
        if (begun && at + 1 + columns > margins.columns) {
            text_add(out, "\n%s", margins.lead ? margins.lead : "");
            text_pad(out, margins.hanging);
            at = margins.hanging;
            begun = false;
        }
        text_add(out, "%s", begun ? " " : "");
        add_word(word, length, out);
        at += begun + columns;
        begun = true;
        word += length;
    }
    text_add(out, "\n");
}
