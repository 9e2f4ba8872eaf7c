/*
 * Objects of borrowed nodes: what makes a million events a second possible with cJSON as printer.
 *
 * cJSON_Create… would allocate each node and copy each text, which costs more than printing. Nothing
 * here is ever given to cJSON_Delete().
 */
#include "traces/chrome_event.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/err.h"

#define LINE_BYTES ((size_t)4 << 10)
#define LINE_BYTES_MAX ((size_t)1 << 30) /* no text of a run comes near */
#define PRINTER_SPARE 8                  /* cJSON wants a few bytes more than it writes */

void event_init(struct chrome_event *event)
{
    *event = (struct chrome_event){0};
}

void event_release(struct chrome_event *event)
{
    free(event->line);
    event_init(event);
}

static cJSON *take_node(struct chrome_event *event, const char *key, int type)
{
    assert(event->n < EVENT_NODES);
    cJSON *node = &event->nodes[event->n++];
    /* cJSON's key is not const, but a printer does not write to it. */
    *node = (cJSON){.type = type, .string = (char *)(uintptr_t)key};
    return node;
}

void event_begin(struct chrome_event *event)
{
    event->n = event->depth = 0;
    event->open[0] = take_node(event, NULL, cJSON_Object);
    event->last[0] = NULL;
}

static cJSON *add(struct chrome_event *event, const char *key, int type)
{
    const uint32_t depth = event->depth;
    cJSON *node = take_node(event, key, type);
    if (event->last[depth])
        event->last[depth]->next = node;
    else
        event->open[depth]->child = node;
    event->last[depth] = node;
    return node;
}

void event_string(struct chrome_event *event, const char *key, const char *value)
{
    add(event, key, cJSON_String)->valuestring = (char *)(uintptr_t)value;
}

void event_raw(struct chrome_event *event, const char *key, const char *json)
{
    add(event, key, cJSON_Raw)->valuestring = (char *)(uintptr_t)json;
}

/* The digits of a number, written so that they end before end; at least so many of them. */
static char *put_digits(char *end, uint64_t value, int at_least)
{
    for (; value > 0 || at_least > 0; at_least--) {
        *--end = (char)('0' + value % 10);
        value /= 10;
    }
    return end;
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static char *digits_end(struct chrome_event *event)
{
    char *end = event->digits[event->n] + EVENT_DIGITS - 1;
    *end = '\0';
    return end;
}

void event_u64(struct chrome_event *event, const char *key, uint64_t value)
{
    event_raw(event, key, put_digits(digits_end(event), value, 1));
}

void event_int(struct chrome_event *event, const char *key, int64_t value)
{
    char *at = put_digits(digits_end(event), magnitude(value), 1);
    if (value < 0)
        *--at = '-';
    event_raw(event, key, at);
}

void event_us(struct chrome_event *event, const char *key, int64_t ns)
{
    char *at = put_digits(digits_end(event), magnitude(ns) % 1000, 3);
    *--at = '.';
    at = put_digits(at, magnitude(ns) / 1000, 1);
    if (ns < 0)
        *--at = '-';
    event_raw(event, key, at);
}

void event_open(struct chrome_event *event, const char *key)
{
    assert(event->depth + 1 < EVENT_DEPTH);
    cJSON *node = add(event, key, cJSON_Object);
    event->depth++;
    event->open[event->depth] = node;
    event->last[event->depth] = NULL;
}

void event_close(struct chrome_event *event)
{
    assert(event->depth > 0);
    event->depth--;
}

static void grow_line(struct chrome_event *event)
{
    event->cap = event->cap ? event->cap * 2 : LINE_BYTES;
    free(event->line);
    event->line = event->cap <= LINE_BYTES_MAX ? malloc(event->cap) : NULL;
    if (!event->line)
        err_out_of_memory(event->cap);
}

const char *event_print(struct chrome_event *event, size_t *length)
{
    while (event->cap < PRINTER_SPARE ||
           !cJSON_PrintPreallocated(&event->nodes[0], event->line,
                                    (int)(event->cap - PRINTER_SPARE), false))
        grow_line(event);
    *length = strlen(event->line);
    return event->line;
}
