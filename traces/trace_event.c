/*
 * Known keys by table; everything else is checked by the scanner and forgotten.
 */
#include "traces/trace_event.h"

#include <string.h>

/* Where the value of a key goes in struct trace_event. */
struct known_key {
    const char *key;
    size_t length, offset;
};
#define KNOWN(key, field)                                         \
    {                                                             \
        key, sizeof(key) - 1, offsetof(struct trace_event, field) \
    }

static const struct known_key members[] = {
    KNOWN("ph", ph),   KNOWN("cat", cat), KNOWN("name", name), KNOWN("id", id),   KNOWN("bp", bp),
    KNOWN("pid", pid), KNOWN("tid", tid), KNOWN("ts", ts),     KNOWN("dur", dur),
};

static const struct known_key args[] = {
#define X(id, key) KNOWN(key, args[ARG_##id]),
    EVENT_ARGS(X)
#undef X
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void keep(struct trace_event *event, const struct known_key *known, size_t n,
                 const struct json_span *key, const struct json_span *value)
{
    for (size_t i = 0; i < n; i++) {
        if (key->length == known[i].length && !memcmp(key->at, known[i].key, key->length)) {
            *(struct json_span *)((char *)event + known[i].offset) = *value;
            return;
        }
    }
}

static bool is_numeric(const struct json_span *value)
{
    int64_t time_ns;
    return value->type == SPAN_NUMBER ||
           (value->type == SPAN_STRING && json_span_us(value, &time_ns));
}

/* The object is known to be sound: it was scanned as a value before. */
static void parse_args(const struct json_span *object, struct trace_event *event)
{
    struct json_scan scan = json_scan_of(object->at, object->length);
    struct json_span key, value;
    memset(event->args, 0, sizeof(event->args));
    event->n_arg = 0;
    event->args_numeric = true;
    json_scan_open(&scan, '{');
    while (json_scan_member(&scan, &key, &value)) {
        event->n_arg++;
        event->args_numeric = event->args_numeric && is_numeric(&value);
        keep(event, args, LENGTH(args), &key, &value);
    }
}

bool trace_event_parse(struct json_scan *scan, struct trace_event *out)
{
    struct trace_event event = {.n_member = 0};
    struct json_span key, value;
    if (!json_scan_open(scan, '{'))
        return false;
    while (json_scan_member(scan, &key, &value)) {
        event.n_member++;
        keep(&event, members, LENGTH(members), &key, &value);
        if (value.type == SPAN_OBJECT && json_span_is(&key, "args"))
            parse_args(&value, &event);
    }
    if (scan->fault || !json_scan_done(scan))
        return false;
    event.phase = event.ph.type == SPAN_STRING && event.ph.length == 1 ? *event.ph.at : '\0';
    event.has_ts = json_span_us(&event.ts, &event.ts_ns);
    event.has_dur = json_span_us(&event.dur, &event.dur_ns);
    *out = event;
    return true;
}
