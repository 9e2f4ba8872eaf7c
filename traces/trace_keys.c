/*
 * Few keys are compared each with each, many are sorted: no object makes it take long.
 */
#include "traces/trace_keys.h"

#include <stdlib.h>
#include <string.h>

#include "src/err.h"

enum { FEW = 24 };

void trace_keys_reset(struct trace_keys *keys)
{
    keys->n = 0;
    keys->n_again = 0;
}

void trace_keys_open(struct trace_keys *keys, unsigned depth)
{
    keys->first[depth] = keys->n;
}

void trace_keys_add(struct trace_keys *keys, const struct json_span *key)
{
    if (keys->n == keys->cap) {
        const size_t cap = keys->cap * 2 + FEW;
        struct json_span *larger = realloc(keys->at, cap * sizeof(*larger));
        if (!larger)
            err_out_of_memory(cap * sizeof(*larger));
        keys->at = larger;
        keys->cap = cap;
    }
    keys->at[keys->n++] = *key;
}

static bool is_same(const struct json_span *a, const struct json_span *b)
{
    return a->length == b->length && !memcmp(a->at, b->at, a->length);
}

/* Equal keys in the order of the text. */
static int compare(const void *a, const void *b)
{
    const struct json_span *p = a, *q = b;
    if (p->length != q->length)
        return p->length < q->length ? -1 : 1;
    const int order = memcmp(p->at, q->at, p->length);
    return order ? order : (p->at > q->at) - (p->at < q->at);
}

static void found(struct trace_keys *keys, const struct json_span *key)
{
    if (keys->n_again++ == 0 || key->at < keys->again.at)
        keys->again = *key;
}

void trace_keys_close(struct trace_keys *keys, unsigned depth)
{
    const struct json_span *key = keys->at + keys->first[depth];
    const size_t n = keys->n - keys->first[depth];
    keys->n = keys->first[depth];
    if (n > FEW)
        qsort(keys->at + keys->first[depth], n, sizeof(*key), compare);
    for (size_t i = 1; i < n; i++) {
        size_t k = i;
        const size_t last = n > FEW ? i - 1 : 0;
        while (k > last && !is_same(&key[k - 1], &key[i]))
            k--;
        if (k > last)
            found(keys, &key[i]);
    }
}

void trace_keys_release(struct trace_keys *keys)
{
    free(keys->at);
    *keys = (struct trace_keys){0};
}
