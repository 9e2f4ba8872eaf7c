/*
 * The keys of the objects that are open while text is read, to find one that stands twice.
 *
 * Readers differ in which of two they take. Keys are compared as they are spelled, not copied: they
 * have to stay where they are until their object is closed.
 */
#ifndef TRACES_TRACE_KEYS_H
#define TRACES_TRACE_KEYS_H

#include <stdint.h>

#include "traces/trace_json.h"

enum { KEYS_DEPTH_MAX = 64 };

struct trace_keys {
    struct json_span *at; /* a stack: those of an object lie above those of the one around it */
    size_t n, cap;
    size_t first[KEYS_DEPTH_MAX + 1]; /* of the objects that are open, by depth */
    uint64_t n_again;
    struct json_span again; /* the first that stands twice, where there is one */
};

/* Forgets all but the memory. */
void trace_keys_reset(struct trace_keys *keys);
void trace_keys_open(struct trace_keys *keys, unsigned depth);
void trace_keys_add(struct trace_keys *keys, const struct json_span *key);
void trace_keys_close(struct trace_keys *keys, unsigned depth);
void trace_keys_release(struct trace_keys *keys);

#endif
