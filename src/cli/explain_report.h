/*
 * Why a step takes as long as it does, with everything that is said about it, and its two shapes.
 *
 * Of the last step that the mid times are of. Both shapes are made from this struct alone.
 */
#ifndef SRC_CLI_EXPLAIN_REPORT_H
#define SRC_CLI_EXPLAIN_REPORT_H

#include "src/cli/remedy.h"
#include "src/cli/stored_run.h"
#include "src/program_print.h"

enum { EXPLAIN_STALLS = 5 }; /* so many are told one by one */

struct explain_report {
    struct sim_report step;
    const struct stored_run *stored; /* what it was asked of, or NULL for a model */
    struct causes causes;
    struct path_sums path;
    struct stalls stalls;
    struct trials trials;
    int64_t begin_ns;     /* of the step, on the clock of spans and stalls */
    int64_t explained_ns; /* how long it is: where there are several, not their mean */
};

/* The name of a span's task; of NO_SPAN "the end of the step". Returns name, or that. */
const char *explain_report_task(const struct explain_report *report, uint32_t span,
                                char name[PROGRAM_NAME_MAX]);

void explain_report_text(const struct explain_report *report, const struct term *term,
                         struct text *out);
void explain_report_json(const struct explain_report *report, struct text *out);

#endif
