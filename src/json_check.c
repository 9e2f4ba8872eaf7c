/*
 * One pass over a JSON text, looking at strings, numbers, depth and what follows a comma.
 *
 * cJSON takes control characters for blanks, keeps them in strings, cuts a string at \u0000 and
 * takes bad hex digits for that, accepts any bytes for UTF-8, reads 012 and 1e999, and cuts numbers
 * at 63 characters. After this pass none of that is left in the text.
 */
#include "src/json_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 100
#define NUMBER_CHARS_MAX 63
#define WORD_CHARS_MAX 24

enum status json_fail_at(const struct json_source *source, size_t offset, struct err *err,
                         const char *fmt, ...)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (source->text[i] == '\n') {
            line++;
            column = 1;
        } else {
            column += ((unsigned char)source->text[i] & 0xc0) != 0x80;
        }
    }
    char message[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return err_set(err, STATUS_INPUT, "%s: line %zu, column %zu: %s", source->name, line, column,
                   message);
}

size_t json_utf8_length(const char *at)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)*at;
    if (lead < 0x80)
        return lead != 0;
    if (lead < 0xc0 || lead >= 0xf8)
        return 0;

    size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t code = lead & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code >= smallest[length] && code <= 0x10ffff && !surrogate ? length : 0;
}

int json_word_length(const char *at)
{
    int length = 0;
    while (length < WORD_CHARS_MAX && (unsigned char)at[length] > ' ' &&
           (unsigned char)at[length] < 0x7f && !strchr(",:[]{}\"", at[length]))
        length++;
    if (length == 0)
        length = (int)json_utf8_length(at);
    return length;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t count_digits(const char *at)
{
    size_t n = 0;
    while (is_digit(at[n]))
        n++;
    return n;
}

/* The length of a number as JSON's grammar has it, 0 where there is none. */
static size_t number_length(const char *text)
{
    const char *at = text + (*text == '-');
    size_t digits = count_digits(at);
    if (digits == 0 || (digits > 1 && *at == '0'))
        return 0;
    at += digits;
    if (*at == '.') {
        digits = count_digits(++at);
        if (digits == 0)
            return 0;
        at += digits;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        digits = count_digits(at);
        if (digits == 0)
            return 0;
        at += digits;
    }
    return (size_t)(at - text);
}

static bool is_number_char(char c)
{
    return is_digit(c) || (c != '\0' && strchr("+-.eE", c));
}

static enum status check_number(const struct json_source *source, size_t *at, struct err *err)
{
    const char *number = source->text + *at;
    size_t length = number_length(number);
    if (length == 0 || is_number_char(number[length]))
        return json_fail_at(source, *at, err, "'%.*s' is not a JSON number",
                            json_word_length(number), number);
    if (length > NUMBER_CHARS_MAX)
        return json_fail_at(source, *at, err, "number of %zu characters, at most %d are allowed",
                            length, NUMBER_CHARS_MAX);
    if (!isfinite(strtod(number, NULL)))
        return json_fail_at(source, *at, err, "number '%.*s' is too large", (int)length, number);
    *at += length;
    return STATUS_OK;
}

static enum status check_escape(const struct json_source *source, size_t *at, struct err *err)
{
    const char *escape = source->text + *at;
    if (escape[1] != 'u') {
        *at += escape[1] ? 2 : 1;
        return STATUS_OK;
    }
    size_t hex = strspn(escape + 2, "0123456789abcdefABCDEF");
    if (hex < 4)
        return json_fail_at(source, *at, err, "'\\u' without four hexadecimal digits");
    if (!strncmp(escape + 2, "0000", 4))
        return json_fail_at(source, *at, err, "'\\u0000' in a string, remove it");
    *at += 6;
    return STATUS_OK;
}

static enum status check_string(const struct json_source *source, size_t *at, struct err *err)
{
    const char *text = source->text;
    size_t start = *at;
    size_t i = start + 1;
    while (i < source->length && text[i] != '"') {
        if ((unsigned char)text[i] < 0x20)
            return json_fail_at(source, i, err,
                                "control character 0x%02x in a string, is a '\"' missing?",
                                (unsigned)text[i]);
        if (text[i] == '\\') {
            enum status status = check_escape(source, &i, err);
            if (status)
                return status;
            continue;
        }
        size_t length = json_utf8_length(text + i);
        if (length == 0)
            return json_fail_at(source, i, err, "byte 0x%02x is not UTF-8",
                                (unsigned)(unsigned char)text[i]);
        i += length;
    }
    if (i == source->length)
        return json_fail_at(source, start, err, "string is not closed");
    *at = i + 1;
    return STATUS_OK;
}

/* Where in the brackets the pass is. */
struct nesting {
    int depth;
    char open[DEPTH_MAX];
    char last; /* what the last thing that is no blank began with */
};

/* cJSON misses the place of a bad key by one and has no word for a comma too many. */
static enum status check_order(const struct json_source *source, size_t at, struct nesting *nesting,
                               struct err *err)
{
    const char *here = source->text + at;
    if (strchr(" \t\r\n", *here))
        return STATUS_OK;
    char last = nesting->last;
    bool in_object = nesting->depth > 0 && nesting->open[nesting->depth - 1] == '{';
    if (last == ',' && (*here == ']' || *here == '}'))
        return json_fail_at(source, at, err, "'%c' after a comma, remove the comma", *here);
    if ((last == '{' && *here != '"' && *here != '}') || (last == ',' && in_object && *here != '"'))
        return json_fail_at(source, at, err, "'%.*s' where a key in double quotes has to be",
                            json_word_length(here), here);
    nesting->last = *here;
    return STATUS_OK;
}

/* Anything that is neither string nor number. */
static enum status check_other(const struct json_source *source, size_t *at,
                               struct nesting *nesting, struct err *err)
{
    unsigned char c = (unsigned char)source->text[*at];
    if (c >= 0x7f || (c < ' ' && c != '\t' && c != '\n' && c != '\r'))
        return json_fail_at(source, *at, err, "byte 0x%02x outside of a string", (unsigned)c);
    if (c == '[' || c == '{') {
        if (nesting->depth == DEPTH_MAX)
            return json_fail_at(source, *at, err, "more than %d levels deep", DEPTH_MAX);
        nesting->open[nesting->depth++] = (char)c;
    }
    if ((c == ']' || c == '}') && nesting->depth > 0)
        nesting->depth--;
    ++*at;
    return STATUS_OK;
}

enum status json_check(const struct json_source *source, struct err *err)
{
    enum status status = STATUS_OK;
    struct nesting nesting = {0};
    size_t at = strncmp(source->text, "\xef\xbb\xbf", 3) ? 0 : 3; /* a byte order mark */
    while (at < source->length && !status) {
        char c = source->text[at];
        status = check_order(source, at, &nesting, err);
        if (status)
            return status;
        if (c == '"')
            status = check_string(source, &at, err);
        else if (c == '-' || is_digit(c))
            status = check_number(source, &at, err);
        else
            status = check_other(source, &at, &nesting, err);
    }
    return status;
}
