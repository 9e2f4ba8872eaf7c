/*
 * Finding loops; see emit_python.h.
 *
 * The number of a word is the first component of its path that is one. A loop is a row of items that
 * repeats a few times, each time with the same step in every number.
 */
#include "src/cli/emit_python.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PERIOD_MAX = 24, COLUMNS = 100, RUN_LEAST = 3 };

struct word {
    const char *text;
    size_t head; /* bytes before the number */
    const char *rest;
    uint64_t number;
    bool has_number;
};

struct line {
    const struct word *words;
    uint32_t n;
    const char *tail;
};

/* Where a loop stands: words say their numbers from i on, or as they are. */
struct place {
    bool in_loop;
    uint64_t first;
    unsigned indent;
};

static struct word split(const char *text)
{
    for (const char *at = text;; at = strchr(at, '.') + 1) {
        const size_t digits = strspn(at, "0123456789");
        if (digits > 0 && digits < 10 && (at[digits] == '.' || !at[digits]) &&
            (*at != '0' || digits == 1)) {
            uint64_t number = 0;
            for (size_t i = 0; i < digits; i++)
                number = 10 * number + (uint64_t)(at[i] - '0');
            return (struct word){text, (size_t)(at - text), at + digits, number, true};
        }
        if (!strchr(at, '.'))
            return (struct word){.text = text};
    }
}

static struct line *split_all(const struct emit_item *items, uint32_t n, struct arena *arena)
{
    struct line *lines = arena_array(arena, struct line, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        struct word *words = arena_array(arena, struct word, items[i].n + 1);
        for (uint32_t k = 0; k < items[i].n; k++)
            words[k] = split(items[i].words[k]);
        lines[i] = (struct line){.words = words, .n = items[i].n, .tail = items[i].tail};
    }
    return lines;
}

/* ---- which lines repeat ---------------------------------------------------------------------- */

static bool follows(const struct word *a, const struct word *b, uint64_t step)
{
    return a->has_number && b->has_number && b->number == a->number + step && a->head == b->head &&
           !memcmp(a->text, b->text, a->head) && !strcmp(a->rest, b->rest);
}

static bool repeats(const struct line *a, const struct line *b, uint64_t step)
{
    if (a->n != b->n || strcmp(a->tail, b->tail) != 0)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!follows(&a->words[i], &b->words[i], step))
            return false;
    return true;
}

/* How often the first lines, period of them, stand there, each time a step further; at least once. */
static uint32_t count_repeats(const struct line *lines, uint32_t n, uint32_t period, uint64_t *step)
{
    const struct word *a = &lines[0].words[0];
    uint32_t end = period;

    if (period >= n || lines[0].n == 0 || lines[period].n == 0 ||
        lines[period].words[0].number <= a->number)
        return 1;
    *step = lines[period].words[0].number - a->number;
    while (end < n && repeats(&lines[end - period], &lines[end], *step))
        end++;
    return end / period;
}

struct loop {
    uint32_t period, times;
    uint64_t step;
};

/* The loop that saves most lines, or one line alone. */
static struct loop find_loop(const struct line *lines, uint32_t n)
{
    struct loop best = {.period = 1, .times = 1};
    uint32_t most = 0;

    for (uint32_t period = 1; period <= PERIOD_MAX && period < n; period++) {
        uint64_t step = 0;
        const uint32_t times = count_repeats(lines, n, period, &step);
        const uint32_t lines_before = times * period, lines_after = period + 1;
        if (times > 1 && lines_before > lines_after && lines_before - lines_after > most) {
            most = lines_before - lines_after;
            best = (struct loop){period, times, step};
        }
    }
    return best;
}

/* ---- what is printed ------------------------------------------------------------------------- */

static void add_bytes(const char *text, size_t n, bool braces, struct text *out)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte == '"' || byte == '\\')
            text_add(out, "\\%c", byte);
        else if (byte < ' ' || byte == 0x7f)
            text_add(out, "\\x%02x", byte);
        else if (braces && (byte == '{' || byte == '}'))
            text_add(out, "%c%c", byte, byte);
        else
            text_add(out, "%c", byte);
    }
}

void emit_string(const char *string, struct text *out)
{
    text_add(out, "\"");
    add_bytes(string, strlen(string), false, out);
    text_add(out, "\"");
}

/* "i", "i + 3", "i - 1", or a number where there is no loop. */
static void add_number(uint64_t number, const struct place *place, struct text *out)
{
    if (!place->in_loop)
        text_add(out, "%" PRIu64, number);
    else if (number == place->first)
        text_add(out, "i");
    else if (number > place->first)
        text_add(out, "i + %" PRIu64, number - place->first);
    else
        text_add(out, "i - %" PRIu64, place->first - number);
}

/* f"model.layers.{i + 1}.mlp"; inside of the braces stands what, or the number. */
static void add_formatted(const struct word *word, const char *what, const struct place *place,
                          struct text *out)
{
    text_add(out, "f\"");
    add_bytes(word->text, word->head, true, out);
    text_add(out, "{");
    if (what)
        text_add(out, "%s", what);
    else
        add_number(word->number, place, out);
    text_add(out, "}");
    add_bytes(word->rest, strlen(word->rest), true, out);
    text_add(out, "\"");
}

/* So many words from the k-th on count one up. */
static uint32_t run_of(const struct line *line, uint32_t k)
{
    uint32_t n = 1;
    while (k + n < line->n && follows(&line->words[k + n - 1], &line->words[k + n], 1))
        n++;
    return n;
}

static void add_run(const struct word *word, uint32_t n, const struct place *place,
                    struct text *out)
{
    text_add(out, "*(");
    add_formatted(word, "j", place, out);
    text_add(out, " for j in range(");
    add_number(word->number, place, out);
    text_add(out, ", ");
    add_number(word->number + n, place, out);
    text_add(out, "))");
}

static void add_words(const struct line *line, const struct place *place, const char *glue,
                      struct text *out)
{
    for (uint32_t k = 0; k < line->n;) {
        const struct word *word = &line->words[k];
        const uint32_t run = run_of(line, k);
        text_add(out, "%s", k > 0 ? glue : "");
        if (run >= RUN_LEAST)
            add_run(word, run, place, out);
        else if (place->in_loop)
            add_formatted(word, NULL, place, out);
        else
            emit_string(word->text, out);
        k += run >= RUN_LEAST ? run : 1;
    }
}

struct frame {
    const char *before, *after;
};

static void add_line(const struct line *line, const struct frame *frame, const struct place *place,
                     struct text *out)
{
    const size_t start = out->length;
    struct text words;

    text_init(&words);
    add_words(line, place, ", ", &words);
    text_add(out, "%*s%s%s%s%s", (int)place->indent, "", frame->before, words.at ? words.at : "",
             line->tail, frame->after);
    text_release(&words);
    if (out->length - start > COLUMNS && line->n > 1) {
        char glue[64];
        out->length = start;
        snprintf(glue, sizeof glue, ",\n%*s", (int)place->indent + 4, "");
        text_add(out, "%*s%s%s", (int)place->indent, "", frame->before, glue + 1);
        add_words(line, place, glue, out);
        text_add(out, "%s%s", line->tail, frame->after);
    }
    text_add(out, "\n");
}

static void add_loop(const struct line *lines, const struct loop *loop, const struct frame *frame,
                     struct text *out)
{
    const uint64_t first = lines[0].words[0].number, end = first + loop->times * loop->step;
    const struct place place = {.in_loop = true, .first = first, .indent = 8};

    text_add(out, "    for i in range(");
    if (first > 0 || loop->step > 1)
        text_add(out, "%" PRIu64 ", ", first);
    text_add(out, "%" PRIu64, end);
    if (loop->step > 1)
        text_add(out, ", %" PRIu64, loop->step);
    text_add(out, "):\n");
    for (uint32_t i = 0; i < loop->period; i++)
        add_line(&lines[i], frame, &place, out);
}

void emit_items(const struct emit_item *items, uint32_t n, const char *before, const char *after,
                struct arena *arena, struct text *out)
{
    const struct line *lines = split_all(items, n, arena);
    const struct frame frame = {before, after};
    const struct place alone = {.indent = 4};

    for (uint32_t i = 0; i < n;) {
        const struct loop loop = find_loop(&lines[i], n - i);
        if (loop.times > 1)
            add_loop(&lines[i], &loop, &frame, out);
        else
            add_line(&lines[i], &frame, &alone, out);
        i += loop.times * loop.period;
    }
}
