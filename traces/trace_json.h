/*
 * JSON text read in place and strictly: no tree, no copies, the first fault and where it is.
 *
 * Values are spans of the text. Numbers stay text; times are read as integer ns. Strings are
 * compared as they are spelled: "\u0061" is not "a".
 */
#ifndef TRACES_TRACE_JSON_H
#define TRACES_TRACE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum span_type { SPAN_NONE, SPAN_OBJECT, SPAN_ARRAY, SPAN_STRING, SPAN_NUMBER, SPAN_WORD };

struct json_span {
    enum span_type type;
    const char *at; /* brackets included, quotes of strings not */
    size_t length;
};

struct trace_keys;

struct json_scan {
    const char *at, *end;  /* *end can be read: a NUL, or what follows the value */
    const char *fault;     /* what is wrong, in words; NULL: nothing so far */
    const char *surrogate; /* the first escape that is half of a pair, or NULL */
    unsigned depth;
    struct trace_keys *keys; /* collects keys that stand twice in their object; may be NULL */
};

struct json_scan json_scan_of(const char *text, size_t length);

/* The value that comes next; false at a fault, scan->at being its place. */
bool json_scan_value(struct json_scan *scan, struct json_span *out);
/* Nothing but blanks is left; a fault where there is more. */
bool json_scan_done(struct json_scan *scan);

/*
 * for (json_scan_open(&scan, '{'); json_scan_member(&scan, &key, &value);): false at the end, with
 * the bracket passed over, and at a fault.
 */
bool json_scan_open(struct json_scan *scan, char bracket);
bool json_scan_member(struct json_scan *scan, struct json_span *key, struct json_span *value);
bool json_scan_element(struct json_scan *scan, struct json_span *value);

/* A string of these letters. Inline, so that the length of a literal is known. */
static inline bool json_span_is(const struct json_span *span, const char *text)
{
    return span->type == SPAN_STRING && span->length == strlen(text) &&
           !memcmp(span->at, text, span->length);
}
bool json_span_begins(const struct json_span *span, const char *text);
bool json_span_has(const struct json_span *span, const char *word);
uint64_t json_span_hash(const struct json_span *span, uint64_t seed);

/* A whole number in int64, also one with a point and zeros only. */
bool json_span_int(const struct json_span *span, int64_t *out);
/*
 * A number of microseconds as ns, from number or string, rounded to the nearest; false where it is
 * none or does not fit.
 */
bool json_span_us(const struct json_span *span, int64_t *out);

#endif
