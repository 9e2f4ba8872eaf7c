/*
 * The host's embeddings: of tokens and of positions, and their gradients.
 *
 * A gradient of a table is summed row by row, each row's places in rising order, and rounded once.
 * Ids lie in the table: whoever draws them sees to it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/host_ops.h"
#include "gpu/lanes.h"
#include "src/err.h"

void host_embedding(const struct op_call *call)
{
    const int64_t *ids = call->tensors[0].at;
    const struct op_tensor *table = &call->tensors[1], *out = &call->tensors[2];
    const uint64_t tokens = host_tokens(call), width = out->n / tokens;
    float *row = host_floats(1, width);
    for (uint64_t t = 0; t < tokens; t++) {
        host_widen(table, (uint64_t)ids[t] * width, width, row);
        host_store(out, t * width, width, row);
    }
    free(row);
}

/* Places of each row of a table: the first, and behind each place the next; NONE at the end. */
struct places {
    uint64_t *first, *next;
};

#define NONE UINT64_MAX

static void places_init(struct places *places, const int64_t *ids, uint64_t n_id, uint64_t rows)
{
    places->first = malloc((rows + n_id) * sizeof *places->first);
    if (!places->first)
        err_out_of_memory((rows + n_id) * sizeof *places->first);
    places->next = places->first + rows;
    for (uint64_t row = 0; row < rows; row++)
        places->first[row] = NONE;
    for (uint64_t t = n_id; t-- > 0;) {
        assert((uint64_t)ids[t] < rows);
        places->next[t] = places->first[ids[t]];
        places->first[ids[t]] = t;
    }
}

void host_embedding_wgrad(const struct op_call *call)
{
    const struct op_tensor *d_out = &call->tensors[1], *d_table = &call->tensors[2];
    const uint64_t tokens = host_tokens(call), width = d_out->n / tokens;
    const uint64_t rows = d_table->n / width;
    float *sum = host_floats(2, width), *line = sum + width;
    struct places places;
    places_init(&places, call->tensors[0].at, tokens, rows);
    for (uint64_t row = 0; row < rows; row++) {
        memset(sum, 0, width * sizeof *sum);
        for (uint64_t t = places.first[row]; t != NONE; t = places.next[t]) {
            host_widen(d_out, t * width, width, line);
            lanes_add(sum, 1, line, width);
        }
        if (places.first[row] != NONE || d_table->mode == OP_WRITE)
            host_store(d_table, row * width, width, sum);
    }
    free(places.first);
    free(sum);
}

void host_positions(const struct op_call *call)
{
    const struct op_tensor *table = &call->tensors[0], *x = &call->tensors[1];
    const uint64_t tokens = host_tokens(call), width = x->n / tokens;
    float *row = host_floats(1, width);
    for (uint64_t t = 0; t < tokens; t++) {
        host_widen(table, t % call->shape->seq * width, width, row);
        host_store(x, t * width, width, row);
    }
    free(row);
}

void host_positions_wgrad(const struct op_call *call)
{
    const struct op_tensor *d_out = &call->tensors[0], *d_table = &call->tensors[1];
    const uint64_t tokens = host_tokens(call), width = d_out->n / tokens, seq = call->shape->seq;
    float *sum = host_floats(2, width), *line = sum + width;
    for (uint64_t place = 0; place < d_table->n / width; place++) {
        memset(sum, 0, width * sizeof *sum);
        for (uint64_t t = place; place < seq && t < tokens; t += seq) {
            host_widen(d_out, t * width, width, line);
            lanes_add(sum, 1, line, width);
        }
        host_store(d_table, place * width, width, sum);
    }
    free(sum);
}
