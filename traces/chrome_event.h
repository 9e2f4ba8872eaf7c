/*
 * One JSON object at a time, put together without allocating and printed by cJSON on a line.
 *
 * The nodes are cJSON's own structs, linked here; texts are borrowed until the object is printed.
 * Numbers are never doubles: they are given to cJSON as raw text. Not a general JSON writer:
 * objects have a fixed number of places.
 */
#ifndef TRACES_CHROME_EVENT_H
#define TRACES_CHROME_EVENT_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

enum { EVENT_NODES = 64, EVENT_DIGITS = 24, EVENT_DEPTH = 4 };

struct chrome_event {
    cJSON nodes[EVENT_NODES]; /* nodes[0] is the object */
    char digits[EVENT_NODES][EVENT_DIGITS];
    cJSON *open[EVENT_DEPTH], *last[EVENT_DEPTH]; /* objects that are open, their last members */
    uint32_t n, depth;
    char *line; /* what it is printed into; grows, kept between objects */
    size_t cap;
};

void event_init(struct chrome_event *event);
void event_release(struct chrome_event *event);

void event_begin(struct chrome_event *event); /* an empty object, whatever was there before */
void event_string(struct chrome_event *event, const char *key, const char *value);
void event_int(struct chrome_event *event, const char *key, int64_t value);
void event_u64(struct chrome_event *event, const char *key, uint64_t value);
/* ns as microseconds with three decimals, exact. */
void event_us(struct chrome_event *event, const char *key, int64_t ns);
/* JSON text as it stands. */
void event_raw(struct chrome_event *event, const char *key, const char *json);
void event_open(struct chrome_event *event, const char *key); /* an object in the object */
void event_close(struct chrome_event *event);

/* The object on one line, which lives until the next is printed. */
const char *event_print(struct chrome_event *event, size_t *length);

#endif
