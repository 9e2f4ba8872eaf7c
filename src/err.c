/*
 * The text of an error: put together once, cut to its field, always one line.
 *
 * Names of files and keys of documents end up in these texts, so control characters are replaced
 * here and nowhere else. A text that is too long ends in dots.
 */
#include "src/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void mark_cut(char *text, size_t size)
{
    memcpy(text + size - 4, "...", 4);
}

static void keep_one_line(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

enum status err_set(struct err *err, enum status status, const char *fmt, ...)
{
    if (!err)
        return status;

    /* Arguments may point into err->text. */
    struct err made = {.status = status};
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(made.text, sizeof(made.text), fmt, args);
    va_end(args);
    if (length >= (int)sizeof(made.text))
        mark_cut(made.text, sizeof(made.text));
    keep_one_line(made.text);
    *err = made;
    return status;
}

enum status err_prefix(struct err *err, const char *fmt, ...)
{
    if (!err)
        return STATUS_INPUT;

    char prefix[sizeof(err->text)];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(prefix, sizeof(prefix), fmt, args);
    va_end(args);
    if (length >= (int)sizeof(prefix))
        mark_cut(prefix, sizeof(prefix));
    return err_set(err, err->status, "%s: %s", prefix, err->text);
}

void err_out_of_memory(size_t bytes)
{
    fprintf(stderr, "unshard: out of memory: no room for another %zu bytes\n", bytes);
    exit(STATUS_RUN);
}
