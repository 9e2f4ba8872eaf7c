/*
 * Longest common run of lines by the plain table, and what is around it; see line_diff.h. Of equally
 * short answers the one in which lines go before others come.
 */
#include "tests/line_diff.h"

#include <stdlib.h>
#include <string.h>

enum { AROUND = 2 };

struct line {
    const char *at;
    size_t length;
    char tag; /* in the answer */
};

struct lines {
    struct line *at;
    size_t n;
};

static void *zeroed(size_t n, size_t size)
{
    void *array = calloc(n + 1, size);
    if (array == NULL)
        abort();
    return array;
}

static struct lines split(const char *text)
{
    struct lines lines = {zeroed(strlen(text), sizeof *lines.at), 0};

    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        lines.at[lines.n++] = (struct line){text, length, ' '};
        text += length + (text[length] == '\n');
    }
    return lines;
}

static bool same(const struct line *a, const struct line *b)
{
    return a->length == b->length && memcmp(a->at, b->at, a->length) == 0;
}

/* [i][j]: how many lines the texts from their i-th and j-th line on have in common, in order. */
static size_t *common_of(const struct lines *a, const struct lines *b)
{
    size_t *common = zeroed((a->n + 1) * (b->n + 1), sizeof *common);

    for (size_t i = a->n; i-- > 0;)
        for (size_t j = b->n; j-- > 0;) {
            size_t *at = &common[i * (b->n + 1) + j];
            const size_t without_a = at[b->n + 1], without_b = at[1];
            if (same(&a->at[i], &b->at[j]))
                *at = 1 + at[b->n + 2];
            else
                *at = without_a > without_b ? without_a : without_b;
        }
    return common;
}

static struct lines merge(const struct lines *a, const struct lines *b, const size_t *common)
{
    struct lines out = {zeroed(a->n + b->n, sizeof *out.at), 0};
    size_t i = 0, j = 0;

    while (i < a->n || j < b->n) {
        const size_t *at = &common[i * (b->n + 1) + j];
        char tag = ' ';
        if (i == a->n || j == b->n || !same(&a->at[i], &b->at[j]))
            tag = j == b->n || (i < a->n && at[b->n + 1] >= at[1]) ? '-' : '+';
        out.at[out.n] = tag == '+' ? b->at[j] : a->at[i];
        out.at[out.n++].tag = tag;
        i += tag != '+';
        j += tag != '-';
    }
    return out;
}

static bool is_near_change(const struct lines *lines, size_t i)
{
    for (size_t k = i < AROUND ? 0 : i - AROUND; k < lines->n && k <= i + AROUND; k++)
        if (lines->at[k].tag != ' ')
            return true;
    return false;
}

void line_diff(const char *before, const char *after, struct text *out)
{
    struct lines a = split(before), b = split(after);
    size_t *common = common_of(&a, &b);
    struct lines merged = merge(&a, &b, common);
    bool shown = true;

    text_add(out, "%s", "");
    for (size_t i = 0; i < merged.n; i++) {
        const struct line *line = &merged.at[i];
        const bool show = is_near_change(&merged, i);
        if (show)
            text_add(out, "%c %.*s\n", line->tag, (int)line->length, line->at);
        else if (shown)
            text_add(out, "...\n");
        shown = show;
    }
    free(a.at);
    free(b.at);
    free(common);
    free(merged.at);
}
