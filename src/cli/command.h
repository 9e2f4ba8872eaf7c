/*
 * Subcommands: one file each (cmd_*.c), one table (main.c).
 *
 * A command turns options into text and prints nothing itself: main writes the result to stdout,
 * then the warnings and the reason of a failure to stderr, so that the two never mix. A result that
 * is there is printed whatever the status is: "no" is an answer.
 */
#ifndef SRC_CLI_COMMAND_H
#define SRC_CLI_COMMAND_H

#include "src/cli/options.h"
#include "src/cli/term.h"
#include "src/err.h"
#include "src/text.h"

struct output {
    struct term term;
    struct text result;
    struct text warnings; /* one a line, each with its newline */
};

struct command {
    const char *name;
    unsigned bit;               /* enum command_bits: which options it takes */
    const char *synopsis;       /* what follows the name: "list | show MODEL" */
    const char *summary;        /* one line, for the list of commands */
    const char *about;          /* a paragraph, for the help of this one */
    const char *const *actions; /* what its first word can be, ends with NULL; NULL: no such word */
    const char *operand;        /* what its other word is called in messages; NULL: it has none */
    const char *operand_hint;   /* where such words come from */
    unsigned n_more; /* words that may follow, all together at most OPTIONS_MAX_OPERANDS */
    enum status (*run)(struct options *options, struct output *out, struct err *err);
};

extern const char unshard_version[];

/* In the order of the help; ends with a NULL name. */
extern const struct command commands[];
const struct command *command_find(const char *name);

/* STATUS_USAGE with the nearest command. */
enum status command_unknown(const char *name, struct err *err);

enum status cmd_sim(struct options *options, struct output *out, struct err *err);
enum status cmd_plan(struct options *options, struct output *out, struct err *err);
enum status cmd_run(struct options *options, struct output *out, struct err *err);
enum status cmd_explain(struct options *options, struct output *out, struct err *err);
enum status cmd_compare(struct options *options, struct output *out, struct err *err);
enum status cmd_check(struct options *options, struct output *out, struct err *err);
enum status cmd_model(struct options *options, struct output *out, struct err *err);
enum status cmd_cluster(struct options *options, struct output *out, struct err *err);
enum status cmd_calibrate(struct options *options, struct output *out, struct err *err);
enum status cmd_device(struct options *options, struct output *out, struct err *err);
enum status cmd_bench(struct options *options, struct output *out, struct err *err);
enum status cmd_history(struct options *options, struct output *out, struct err *err);
enum status cmd_query(struct options *options, struct output *out, struct err *err);
enum status cmd_validate(struct options *options, struct output *out, struct err *err);
enum status cmd_trace(struct options *options, struct output *out, struct err *err);
enum status cmd_help(struct options *options, struct output *out, struct err *err);

#endif
