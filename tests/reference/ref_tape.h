/*
 * A tape of operators on matrices of doubles: forward writes it, backward walks it from its end.
 *
 * A value is rounded to its format where it is stored, the gradient of each use of it likewise, and
 * uses are added one after the other in the order opposite to forward, rounded each time. That is all
 * there is to rounding. The tape owns all memory; what does not fit ends the program.
 */
#ifndef TESTS_REFERENCE_REF_TAPE_H
#define TESTS_REFERENCE_REF_TAPE_H

#include "tests/reference/reference.h"

struct ref_tape;

struct ref_value {
    double *at, *grad; /* grad: NULL until something flows to it */
    uint64_t rows, width, n;
    enum ref_format format;
};

/* What an operator knows of sequences and heads. */
struct ref_shape {
    uint64_t batch, seq, heads, kv_heads, head_dim;
};

enum { REF_MAX_INPUTS = 5 };

/* One operator's call; what is not its own is empty. */
struct ref_node {
    void (*backward)(struct ref_tape *tape, const struct ref_node *node);
    struct ref_value *out, *in[REF_MAX_INPUTS];
    const int64_t *ids;
    const double *kept; /* of forward, for backward */
    struct ref_shape shape;
    uint64_t first; /* column */
    bool flag;
};

struct ref_tape {
    struct ref_node *nodes;
    uint32_t n_node, cap_node;
    void **blocks;
    uint32_t n_block, cap_block;
};

void ref_tape_release(struct ref_tape *tape);           /* one that is all zero is empty */
double *ref_doubles(struct ref_tape *tape, uint64_t n); /* zeros */
int64_t *ref_ids(struct ref_tape *tape, uint64_t n);
struct ref_value **ref_values(struct ref_tape *tape, uint64_t n);
struct ref_value *ref_value_new(struct ref_tape *tape, uint64_t rows, uint64_t width,
                                enum ref_format format);
/* Rounds out, which is complete, and remembers the call. */
struct ref_value *ref_push(struct ref_tape *tape, struct ref_node node);
/* The gradient of one use of the value. */
void ref_flow(struct ref_tape *tape, struct ref_value *to, const double *grad);
/* From the last value, whose only element has this gradient. */
void ref_tape_backward(struct ref_tape *tape, double grad);

#endif
