/*
 * --emit: the plan that is to be taken, in a form that something else reads.
 */
#ifndef SRC_CLI_PLAN_EMIT_H
#define SRC_CLI_PLAN_EMIT_H

#include "src/cli/command.h"
#include "src/cli/plan_rows.h"

/* X(ENUM, word) */
#define EMITS(X)      \
    X(TORCH, "torch") \
    X(JSON, "json")

enum emit_form {
#define X(id, name) EMIT_FORM_##id,
    EMITS(X)
#undef X
        EMIT_FORM_N
};

/* STATUS_USAGE for options that do not go together. */
enum status plan_emit_check(const struct options *options, struct err *err);

/* Whether it is all that goes to stdout. */
bool plan_emit_instead(const struct options *options);

/*
 * Where --emit is given the best row of ranked ones, to the file of --output or to the result. STATUS_NO
 * where no plan fits.
 */
enum status plan_emit(struct comparison *comparison, struct output *out, struct err *err);

#endif
