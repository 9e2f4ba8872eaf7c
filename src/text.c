/*
 * Text without a locale: building it, comparing names, reading and writing numbers.
 *
 * Letters are compared as ASCII; other bytes only equal themselves. Numbers are formatted from
 * integers, so that the same value gives the same bytes everywhere.
 */
#include "src/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/err.h"

#define NUMBER_CHARS 32 /* what the header promises about the buffers */
#define NAME_CHARS 96   /* longer names are not compared */

void text_init(struct text *text)
{
    *text = (struct text){0};
}

void text_release(struct text *text)
{
    free(text->at);
    text_init(text);
}

static void reserve(struct text *text, size_t more)
{
    if (more < text->cap - text->length)
        return;
    size_t cap = text->cap ? text->cap * 2 : 256;
    if (cap <= text->length + more)
        cap = text->length + more + 1;
    char *at = realloc(text->at, cap);
    if (!at)
        err_out_of_memory(cap);
    text->at = at;
    text->cap = cap;
}

void text_add(struct text *text, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (length < 0)
        err_out_of_memory(0);

    reserve(text, (size_t)length);
    va_start(args, fmt);
    vsnprintf(text->at + text->length, (size_t)length + 1, fmt, args);
    va_end(args);
    text->length += (size_t)length;
}

/* Bytes that continue a UTF-8 character take no column. */
static size_t current_column(const struct text *text)
{
    size_t column = 0;
    for (size_t i = text->length; i > 0 && text->at[i - 1] != '\n'; i--)
        column += ((unsigned char)text->at[i - 1] & 0xc0) != 0x80;
    return column;
}

void text_pad(struct text *text, size_t column)
{
    size_t now = current_column(text);
    if (now < column)
        text_add(text, "%*s", (int)(column - now), "");
}

/* On a mismatch only the last '*' can help: a longer run for an earlier one gains nothing. */
bool text_matches(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (*pattern && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours, one each (three rows of a table). */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][NAME_CHARS + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);
            row[j] = min(last[j - 1] + (x != y), min(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]))
                row[j] = min(row[j], before[j - 2] + 1);
        }
    }
    return row[nb];
}

/* The only name that begins so, or -1; a single letter is no beginning. */
static int find_prefixed(const char *prefix, size_t length, const char *const *names, size_t n)
{
    int found = -1;
    for (size_t i = 0; i < n && length >= 2; i++) {
        size_t same = 0;
        while (same < length && lower(names[i][same]) == lower(prefix[same]))
            same++;
        if (same < length)
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}

int text_nearest(const char *name, const char *const *names, size_t n)
{
    size_t length = strlen(name);
    if (length > NAME_CHARS)
        return -1;
    int prefixed = find_prefixed(name, length, names, n);
    if (prefixed >= 0)
        return prefixed;
    size_t best = length / 3 > 2 ? length / 3 : 2;
    int nearest = -1;
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(names[i]);
        if (other > NAME_CHARS)
            continue;
        size_t distance = edit_distance(name, length, names[i], other);
        bool shares_a_letter = distance < (length > other ? length : other);
        if (shares_a_letter && (distance < best || (distance == best && nearest < 0))) {
            best = distance;
            nearest = (int)i;
        }
    }
    return nearest;
}

/* Digits at the start of text; returns what follows them, NULL where there are none or too many. */
static const char *read_digits(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return NULL;
    }
    *out = value;
    return at == text ? NULL : at;
}

bool text_to_u64(const char *text, uint64_t *out)
{
    uint64_t value;
    const char *end = read_digits(text, &value);
    if (!end || *end)
        return false;
    *out = value;
    return true;
}

static uint64_t unit_bytes(const char *name)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"kB", 1000},
        {"KB", 1000},
        {"KiB", UINT64_C(1) << 10},
        {"MB", 1000000},
        {"MiB", UINT64_C(1) << 20},
        {"GB", 1000000000},
        {"GiB", UINT64_C(1) << 30},
        {"TB", 1000000000000},
        {"TiB", UINT64_C(1) << 40},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!strcmp(name, units[i].name))
            return units[i].bytes;
    }
    return 0;
}

/* Up to six decimals: 999999 of the largest unit still fit. */
static const char *read_decimals(const char *text, uint64_t *out, uint64_t *scale)
{
    const char *end = read_digits(text, out);
    if (!end || end - text > 6)
        return NULL;
    *scale = 1;
    for (const char *at = text; at < end; at++)
        *scale *= 10;
    return end;
}

bool text_to_bytes(const char *text, uint64_t *out)
{
    uint64_t whole, decimals = 0, scale = 1;
    const char *at = read_digits(text, &whole);
    bool has_point = at && *at == '.';
    if (has_point)
        at = read_decimals(at + 1, &decimals, &scale);
    if (!at)
        return false;
    if (at[0] == ' ' && at[1])
        at++;

    uint64_t unit = unit_bytes(at), bytes;
    if (unit == 0 || (unit == 1 && has_point) || __builtin_mul_overflow(whole, unit, &bytes) ||
        __builtin_add_overflow(bytes, (decimals * unit + scale / 2) / scale, &bytes))
        return false;
    *out = bytes;
    return true;
}

const char *text_bytes(uint64_t bytes, char *buffer)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t power = 0;
    while (power < 6 && bytes >> (10 * (power + 1)))
        power++;
    uint64_t unit = UINT64_C(1) << (10 * power);
    uint64_t whole = bytes / unit;
    uint64_t tenths = ((bytes % unit) * 10 + unit / 2) / unit;
    if (tenths == 10) {
        whole++;
        tenths = 0;
    }
    if (whole == 1024 && power < 6) {
        whole = 1;
        power++;
    }
    if (power == 0)
        snprintf(buffer, NUMBER_CHARS, "%" PRIu64 " B", whole);
    else
        snprintf(buffer, NUMBER_CHARS, "%" PRIu64 ".%" PRIu64 " %s", whole, tenths, names[power]);
    return buffer;
}

const char *text_ns(int64_t ns, char *buffer)
{
    static const char *const names[] = {"us", "ms", "s"};
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    const char *sign = ns < 0 ? "-" : "";
    if (size < 1000) {
        snprintf(buffer, NUMBER_CHARS, "%s%" PRIu64 " ns", sign, size);
        return buffer;
    }
    /* Thousandths of the unit that is printed, rounded once from the nanoseconds. */
    uint64_t thousandth_ns = 1, thousandths = size;
    size_t unit = 0;
    while (unit < 2 && thousandths >= 1000000) {
        thousandth_ns *= 1000;
        thousandths = size / thousandth_ns + (size % thousandth_ns >= thousandth_ns / 2);
        unit++;
    }
    snprintf(buffer, NUMBER_CHARS, "%s%" PRIu64 ".%03" PRIu64 " %s", sign, thousandths / 1000,
             thousandths % 1000, names[unit]);
    return buffer;
}

const char *text_count(uint64_t n, char *buffer)
{
    char digits[NUMBER_CHARS];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, n);
    char *at = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return buffer;
}
