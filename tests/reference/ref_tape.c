/*
 * Formats, and the tape; see ref_tape.h. No operator is known here.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/reference/ref_tape.h"

double ref_round(enum ref_format format, double value)
{
    static const struct {
        int bits, least; /* of the significand; exponent of the smallest number */
        double most;
    } formats[] = {
        [REF_FP32] = {24, -149, 0x1.fffffep127},
        [REF_BF16] = {8, -133, 0x1.fep127},
        [REF_FP16] = {11, -24, 65504},
    };
    int exponent;

    if (format == REF_EXACT || !isfinite(value))
        return value;
    if (format != REF_FP32)
        value = ref_round(REF_FP32, value);
    frexp(value, &exponent);
    exponent -= formats[format].bits;
    if (exponent < formats[format].least)
        exponent = formats[format].least;
    value = ldexp(nearbyint(ldexp(value, -exponent)), exponent);
    return fabs(value) > formats[format].most ? copysign(INFINITY, value) : value;
}

static void *check(void *at)
{
    if (!at)
        abort();
    return at;
}

void ref_tape_release(struct ref_tape *tape)
{
    for (uint32_t i = 0; i < tape->n_block; i++)
        free(tape->blocks[i]);
    free(tape->blocks);
    free(tape->nodes);
    *tape = (struct ref_tape){0};
}

static void *block(struct ref_tape *tape, uint64_t n, size_t size)
{
    if (tape->n_block == tape->cap_block) {
        tape->cap_block = tape->cap_block * 2 + 64;
        tape->blocks = check(realloc(tape->blocks, tape->cap_block * sizeof *tape->blocks));
    }
    return tape->blocks[tape->n_block++] = check(calloc(n, size));
}

double *ref_doubles(struct ref_tape *tape, uint64_t n)
{
    return block(tape, n, sizeof(double));
}

int64_t *ref_ids(struct ref_tape *tape, uint64_t n)
{
    return block(tape, n, sizeof(int64_t));
}

struct ref_value **ref_values(struct ref_tape *tape, uint64_t n)
{
    return block(tape, n, sizeof(struct ref_value *));
}

struct ref_value *ref_value_new(struct ref_tape *tape, uint64_t rows, uint64_t width,
                                enum ref_format format)
{
    struct ref_value *value = block(tape, 1, sizeof *value);

    *value = (struct ref_value){.at = ref_doubles(tape, rows * width),
                                .rows = rows,
                                .width = width,
                                .n = rows * width,
                                .format = format};
    return value;
}

struct ref_value *ref_push(struct ref_tape *tape, struct ref_node node)
{
    for (uint64_t i = 0; i < node.out->n; i++)
        node.out->at[i] = ref_round(node.out->format, node.out->at[i]);
    if (tape->n_node == tape->cap_node) {
        tape->cap_node = tape->cap_node * 2 + 64;
        tape->nodes = check(realloc(tape->nodes, tape->cap_node * sizeof *tape->nodes));
    }
    tape->nodes[tape->n_node++] = node;
    return node.out;
}

void ref_flow(struct ref_tape *tape, struct ref_value *to, const double *grad)
{
    if (!to->grad)
        to->grad = ref_doubles(tape, to->n);
    for (uint64_t i = 0; i < to->n; i++)
        to->grad[i] = ref_round(to->format, to->grad[i] + ref_round(to->format, grad[i]));
}

void ref_tape_backward(struct ref_tape *tape, double grad)
{
    ref_flow(tape, tape->nodes[tape->n_node - 1].out, &grad);
    for (uint32_t i = tape->n_node; i-- > 0;)
        tape->nodes[i].backward(tape, &tape->nodes[i]);
}
