/*
 * A strict reader over text in memory, by recursive descent with a bounded depth.
 *
 * JSON's grammar as readers of traces enforce it: control characters and bad UTF-8 in strings,
 * bare NaN and inf, and numbers such as 01 or 0.-5 are faults.
 */
#include "traces/trace_json.h"

#include <string.h>

#include "src/hash.h"
#include "src/json_check.h"
#include "traces/trace_keys.h"

enum { DEPTH_MAX = KEYS_DEPTH_MAX, EXPONENT_MAX = 400 };

struct json_scan json_scan_of(const char *text, size_t length)
{
    return (struct json_scan){.at = text, .end = text + length};
}

static bool fail(struct json_scan *scan, const char *fault)
{
    if (!scan->fault)
        scan->fault = fault;
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_blanks(struct json_scan *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t'))
        scan->at++;
}

/* The byte that comes next, 0 at the end. */
static char next_byte(const struct json_scan *scan)
{
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool is_hex(const char *at, const char *end)
{
    return at < end && *at && strchr("0123456789abcdefABCDEF", *at);
}

static bool scan_escape(struct json_scan *scan)
{
    const char *escape = scan->at;
    if (escape + 1 >= scan->end || !escape[1] || !strchr("\"\\/bfnrtu", escape[1]))
        return fail(scan, "unknown escape in a string");
    scan->at += 2;
    if (escape[1] != 'u')
        return true;
    for (int i = 2; i < 6; i++) {
        if (!is_hex(escape + i, scan->end)) {
            scan->at = escape;
            return fail(scan, "'\\u' without four hexadecimal digits");
        }
    }
    scan->at += 4;
    if ((escape[2] == 'd' || escape[2] == 'D') && strchr("89abcdefABCDEF", escape[3]) &&
        !scan->surrogate)
        scan->surrogate = escape;
    return true;
}

static bool scan_string(struct json_scan *scan, struct json_span *out)
{
    const char *begin = ++scan->at;
    for (;;) {
        while (scan->at < scan->end && (unsigned char)*scan->at >= 0x20 &&
               (unsigned char)*scan->at < 0x80 && *scan->at != '"' && *scan->at != '\\')
            scan->at++;
        if (scan->at >= scan->end)
            return fail(scan, "string without an end");
        if (*scan->at == '"')
            break;
        if (*scan->at == '\\') {
            if (!scan_escape(scan))
                return false;
            continue;
        }
        if ((unsigned char)*scan->at < 0x20)
            return fail(scan, "control character in a string");
        const size_t length = json_utf8_length(scan->at);
        if (length == 0 || length > (size_t)(scan->end - scan->at))
            return fail(scan, "bytes in a string that are not UTF-8");
        scan->at += length;
    }
    *out = (struct json_span){SPAN_STRING, begin, (size_t)(scan->at++ - begin)};
    return true;
}

static bool scan_digits(struct json_scan *scan)
{
    const char *begin = scan->at;
    while (is_digit(next_byte(scan)))
        scan->at++;
    return scan->at > begin;
}

static bool scan_number(struct json_scan *scan, struct json_span *out)
{
    const char *begin = scan->at;
    scan->at += *begin == '-';
    const char *digits = scan->at;
    bool good = scan_digits(scan) && (*digits != '0' || scan->at == digits + 1);
    if (good && next_byte(scan) == '.') {
        scan->at++;
        good = scan_digits(scan);
    }
    if (good && (next_byte(scan) == 'e' || next_byte(scan) == 'E')) {
        scan->at++;
        scan->at += next_byte(scan) == '+' || next_byte(scan) == '-';
        good = scan_digits(scan);
    }
    if (!good) {
        scan->at = begin;
        return fail(scan, "not a JSON number");
    }
    *out = (struct json_span){SPAN_NUMBER, begin, (size_t)(scan->at - begin)};
    return true;
}

static bool scan_word(struct json_scan *scan, struct json_span *out)
{
    static const char *const words[] = {"null", "true", "false"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t length = strlen(words[i]);
        if ((size_t)(scan->end - scan->at) >= length && !memcmp(scan->at, words[i], length)) {
            *out = (struct json_span){SPAN_WORD, scan->at, length};
            scan->at += length;
            return true;
        }
    }
    return fail(scan, "not a JSON value");
}

bool json_scan_open(struct json_scan *scan, char bracket)
{
    skip_blanks(scan);
    if (next_byte(scan) != bracket)
        return fail(scan, "another bracket is needed");
    if (scan->depth == DEPTH_MAX)
        return fail(scan, "brackets nested too deep");
    scan->depth++;
    scan->at++;
    if (scan->keys && bracket == '{')
        trace_keys_open(scan->keys, scan->depth);
    return true;
}

/* Before a value: true where one comes. The first is the one right behind the opening bracket. */
static bool next_in_list(struct json_scan *scan, char open, char close)
{
    if (scan->fault)
        return false;
    const char *back = scan->at - 1;
    skip_blanks(scan);
    const bool first = *back == open;
    const char c = next_byte(scan);
    if (c == close) {
        scan->at++;
        if (scan->keys && close == '}')
            trace_keys_close(scan->keys, scan->depth);
        scan->depth--;
        return false;
    }
    if (first)
        return c ? true : fail(scan, "bracket is not closed");
    if (c != ',')
        return fail(scan, "comma or closing bracket is missing");
    scan->at++;
    skip_blanks(scan);
    if (next_byte(scan) == close)
        return fail(scan, "comma without a value after it");
    return true;
}

bool json_scan_member(struct json_scan *scan, struct json_span *key, struct json_span *value)
{
    if (!next_in_list(scan, '{', '}'))
        return false;
    if (next_byte(scan) != '"')
        return fail(scan, "a key in quotes is needed");
    if (!scan_string(scan, key))
        return false;
    if (scan->keys)
        trace_keys_add(scan->keys, key);
    skip_blanks(scan);
    if (next_byte(scan) != ':')
        return fail(scan, "':' is missing after a key");
    scan->at++;
    return json_scan_value(scan, value);
}

bool json_scan_element(struct json_scan *scan, struct json_span *value)
{
    return next_in_list(scan, '[', ']') && json_scan_value(scan, value);
}

static bool scan_list(struct json_scan *scan, struct json_span *out)
{
    const char *begin = scan->at;
    const bool object = *begin == '{';
    struct json_span key, value;
    if (!json_scan_open(scan, *begin))
        return false;
    while (object ? json_scan_member(scan, &key, &value) : json_scan_element(scan, &value)) {
    }
    *out = (struct json_span){object ? SPAN_OBJECT : SPAN_ARRAY, begin, (size_t)(scan->at - begin)};
    return !scan->fault;
}

bool json_scan_value(struct json_scan *scan, struct json_span *out)
{
    if (scan->fault)
        return false;
    skip_blanks(scan);
    const char c = next_byte(scan);
    if (c == '"')
        return scan_string(scan, out);
    if (c == '{' || c == '[')
        return scan_list(scan, out);
    if (c == '-' || is_digit(c))
        return scan_number(scan, out);
    return scan_word(scan, out);
}

bool json_scan_done(struct json_scan *scan)
{
    if (scan->fault)
        return false;
    skip_blanks(scan);
    return scan->at == scan->end || fail(scan, "text after the end of the value");
}

bool json_span_begins(const struct json_span *span, const char *text)
{
    const size_t length = strlen(text);
    return span->type == SPAN_STRING && span->length >= length && !memcmp(span->at, text, length);
}

bool json_span_has(const struct json_span *span, const char *word)
{
    const size_t length = strlen(word);
    for (size_t i = 0; span->type == SPAN_STRING && i + length <= span->length; i++) {
        if (!memcmp(span->at + i, word, length))
            return true;
    }
    return false;
}

uint64_t json_span_hash(const struct json_span *span, uint64_t seed)
{
    uint64_t hash = hash_add(seed, span->length);
    for (size_t i = 0; i < span->length;) {
        uint64_t word = 0;
        const size_t left = span->length - i, n = left < sizeof(word) ? left : sizeof(word);
        memcpy(&word, span->at + i, n);
        hash = hash_add(hash, word);
        i += n;
    }
    return hash;
}

/* A decimal number as digits and where its point is: 0.125 is 125 with three places. */
struct decimal {
    bool negative;
    uint64_t digits; /* the first 19 that count */
    int places;      /* behind the point; negative: zeros to add */
};

static int parse_exponent(const char *at, const char *end)
{
    int value = 0;
    const bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    for (; at < end && is_digit(*at); at++)
        value = value < EXPONENT_MAX ? value * 10 + (*at - '0') : EXPONENT_MAX;
    return negative ? -value : value;
}

/* The span is a number by JSON's grammar. */
static struct decimal parse_decimal(const struct json_span *span)
{
    const char *at = span->at, *end = span->at + span->length;
    struct decimal number = {.negative = *at == '-'};
    bool behind = false;
    for (at += number.negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            behind = true;
        } else if (number.digits < UINT64_MAX / 10 - 1) {
            number.digits = number.digits * 10 + (uint64_t)(*at - '0');
            number.places += behind;
        } else {
            number.places -= !behind;
        }
    }
    if (at < end)
        number.places -= parse_exponent(at + 1, end);
    return number;
}

/* Shift the point to the right by so many places, and round to the nearest whole number. */
static bool decimal_whole(struct decimal number, int shift, bool *exact, int64_t *out)
{
    uint64_t value = number.digits, rest = 0;
    int places = number.places - shift;
    *exact = true;
    for (; places < 0 && value > 0; places++) {
        if (__builtin_mul_overflow(value, 10, &value))
            return false;
    }
    for (; places > 0 && (value > 0 || rest > 0); places--) {
        *exact = *exact && rest == 0;
        rest = value % 10;
        value /= 10;
    }
    *exact = *exact && rest == 0;
    value += rest >= 5;
    if (value > INT64_MAX)
        return false;
    *out = number.negative ? -(int64_t)value : (int64_t)value;
    return true;
}

bool json_span_int(const struct json_span *span, int64_t *out)
{
    bool exact;
    int64_t value;
    if (span->type != SPAN_NUMBER || !decimal_whole(parse_decimal(span), 0, &exact, &value))
        return false;
    if (exact)
        *out = value;
    return exact;
}

bool json_span_us(const struct json_span *span, int64_t *out)
{
    bool exact;
    if (span->type == SPAN_NUMBER)
        return decimal_whole(parse_decimal(span), 3, &exact, out);
    if (span->type != SPAN_STRING)
        return false;
    struct json_scan scan = json_scan_of(span->at, span->length);
    struct json_span number;
    return json_scan_value(&scan, &number) && json_scan_done(&scan) && number.type == SPAN_NUMBER &&
           decimal_whole(parse_decimal(&number), 3, &exact, out);
}
