/*
 * `unshard trace show`: what a profile says, as a page and as JSON, and what it cannot say.
 */
#ifndef SRC_CLI_TRACE_SHOW_H
#define SRC_CLI_TRACE_SHOW_H

#include "src/cli/term.h"
#include "traces/kineto.h"

void trace_show_text(const struct kineto *trace, const char *path, const struct term *term,
                     struct text *out);
void trace_show_json(const struct kineto *trace, const char *path, struct text *out);

/* Sentences without full stop; texts to arena. Returns how many. */
enum { TRACE_LIMITS_MAX = 8 };
uint32_t trace_limits(const struct kineto *trace, struct arena *arena,
                      const char *out[TRACE_LIMITS_MAX]);

/* What a unit takes on the GPU. Forward and backward hold those of the units inside. */
enum trace_part {
    TRACE_ALL_GATHER, /* with what is copied for it */
    TRACE_COPY_OUT,
    TRACE_FORWARD,
    TRACE_BACKWARD,
    TRACE_REDUCE,
    TRACE_PART_N
};
const char *trace_part_name(enum trace_part part);

struct trace_unit {
    const char *name; /* "" of one without a name, which is the root */
    uint64_t n[TRACE_PART_N];
    int64_t ns[TRACE_PART_N]; /* of all n */
};
/* In the order of the trace; names to arena. Returns how many. */
uint32_t trace_units(const struct kineto *trace, struct arena *arena,
                     const struct trace_unit **out);

/* Of a product or attention: operations in a second by this time of one call. */
double trace_tflops(const struct kineto_product *product, int64_t ns);
/* "m x n x k", with what else tells it apart. */
void trace_add_shape(const struct kineto_product *product, struct text *out);

#endif
