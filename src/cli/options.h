/*
 * Options: one table for parser, help, messages, completion and the line "options in force".
 *
 * Knows names, words and limits of single values; whether a combination makes sense is for those
 * who use it. Defaults stand in the table as one would type them and go through the same parser, so
 * that the help cannot name another default than the one that holds.
 */
#ifndef SRC_CLI_OPTIONS_H
#define SRC_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/err.h"
#include "src/text.h"

enum command_bits {
    COMMAND_SIM = 1,
    COMMAND_EXPLAIN = 2,
    COMMAND_MODEL = 4,
    COMMAND_CLUSTER = 8,
    COMMAND_BENCH = 16,
    COMMAND_HELP = 32,
    COMMAND_PLAN = 64,
    COMMAND_HISTORY = 128,
    COMMAND_QUERY = 256,
    COMMAND_TRACE = 512,
    COMMAND_CHECK = 1024,
    COMMAND_COMPARE = 2048,
    COMMAND_RUN = 4096,
    COMMAND_CALIBRATE = 8192,
    COMMAND_VALIDATE = 16384,
    COMMAND_DEVICE = 32768,
    COMMAND_ALL = 65535
};

enum option_id {
    OPTION_CLUSTER,
    OPTION_NIC,
    OPTION_HOST,
    OPTION_GPUS,
    OPTION_RANKS,
    OPTION_EMULATE_RANKS,
    OPTION_NODES,
    OPTION_SEQ,
    OPTION_POSITIONS,
    OPTION_BATCH,
    OPTION_ACCUM,
    OPTION_SYSTEM,
    OPTION_UNITS,
    OPTION_RESHARD,
    OPTION_NO_RESHARD,
    OPTION_RESHARD_BACKWARD,
    OPTION_NO_UNSHARD_BACKWARD,
    OPTION_PREFETCH,
    OPTION_PREFETCH_BACKWARD,
    OPTION_FSDP1_STRATEGY,
    OPTION_FSDP1_BACKWARD_PREFETCH,
    OPTION_FORWARD_PREFETCH,
    OPTION_LIMIT_ALL_GATHERS,
    OPTION_RECORD_STREAM,
    OPTION_PAD_GRADS,
    OPTION_USE_ORIG_PARAMS,
    OPTION_BUFFER_DTYPE,
    OPTION_BEHAVIOR,
    OPTION_ARRANGE,
    OPTION_STORAGE_DTYPE,
    OPTION_PARAM_DTYPE,
    OPTION_REDUCE_DTYPE,
    OPTION_KEEP_FP32,
    OPTION_FREEZE,
    OPTION_IGNORE,
    OPTION_SHARD_DIM,
    OPTION_SECOND_MESH,
    OPTION_REPLICAS,
    OPTION_SYNC,
    OPTION_ALL_REDUCE,
    OPTION_LAST_BACKWARD,
    OPTION_REDUCE_INPUTS,
    OPTION_PACK_STREAM,
    OPTION_SEPARATE_REDUCE_COMM,
    OPTION_UNUSED,
    OPTION_DIVIDE_FACTOR,
    OPTION_FORCE_SUM,
    OPTION_CAST_INPUTS,
    OPTION_OUTPUT_DTYPE,
    OPTION_HOST_SYNC,
    OPTION_SCALER,
    OPTION_CLIP,
    OPTION_OPTIMIZER,
    OPTION_LOG_LOSS,
    OPTION_AC,
    OPTION_AC_LAYERS,
    OPTION_EARLY_STOP,
    OPTION_OPS,
    OPTION_NORM,
    OPTION_LOSS,
    OPTION_TRAIN_METRICS,
    OPTION_ATTENTION,
    OPTION_LINEAR_DTYPE,
    OPTION_FP32_PRODUCTS,
    OPTION_ALLOCATOR,
    OPTION_MEMORY,
    OPTION_LAYERS,
    OPTION_LORA,
    OPTION_SEARCH,
    OPTION_FIND,
    OPTION_JUDGE,
    OPTION_FIXED,
    OPTION_MAX_UNITS,
    OPTION_KEEP,
    OPTION_JOBS,
    OPTION_EMIT,
    OPTION_PLAN,
    OPTION_FROM,
    OPTION_DEVICE,
    OPTION_TRANSPORT,
    OPTION_RENDEZVOUS,
    OPTION_STEPS,
    OPTION_WARMUP,
    OPTION_SEED,
    OPTION_LR,
    OPTION_SAVE,
    OPTION_RESUME,
    OPTION_SLOW_COMM,
    OPTION_HOST_PACE,
    OPTION_GRAPH,
    OPTION_STAMPS,
    OPTION_DEBUG,
    OPTION_WHAT_IF,
    OPTION_WITHOUT,
    OPTION_PROGRAM,
    OPTION_EXPAND,
    OPTION_SECTION,
    OPTION_STATES,
    OPTION_SHARDS,
    OPTION_OUTPUT,
    OPTION_LIMIT,
    OPTION_TIMEOUT,
    OPTION_DB,
    OPTION_NO_DB,
    OPTION_CSV,
    OPTION_CALIBRATED,
    OPTION_SPLIT,
    OPTION_TOLERANCE,
    OPTION_MARKDOWN,
    OPTION_JSON,
    OPTION_COLOR,
    OPTION_HELP,
    OPTION_N
};

/*
 * What a value is. The words of a WORD are the enum of the same order in the code that uses it; of
 * WORDS, separated by commas, each is a bit.
 */
enum option_kind {
    OPTION_SWITCH,
    OPTION_COUNT,
    OPTION_BYTES,
    OPTION_REAL,
    OPTION_WORD,
    OPTION_WORD_OR_COUNT, /* of a count the number is that of a word after the last */
    OPTION_WORDS,
    OPTION_TEXT
};

struct option_info {
    const char *name;
    unsigned commands; /* enum command_bits */
    enum option_kind kind;
    const char *argument;     /* what the help calls the value, beside words that it has */
    const char *const *words; /* of WORD, WORD_OR_COUNT and WORDS: ends with NULL */
    uint64_t least, most;     /* of a COUNT; most 0: all that 64 bits hold */
    const char *before_count; /* of a WORD_OR_COUNT: stands before the number; NULL: nothing does */
    const char *initial;      /* the default, as one would type it, or NULL */
    bool list;                /* `plan` takes several values, and compares them */
    const char *initial_run;  /* the same of `run` */
    const char *otherwise;    /* what holds without value and default, in words, or NULL */
    bool in_force;            /* it shapes the answer, so it is printed with it */
    const char *help;
};
extern const struct option_info option_table[OPTION_N];

struct option_value {
    const char *text; /* as typed, or the default; NULL: no value */
    uint64_t number;  /* count, bytes, index of a word, bits of words, 1 for a switch that is on */
    uint64_t count;   /* of a WORD_OR_COUNT */
    double real;      /* of a REAL */
    bool given;       /* on the command line */
};

enum { OPTIONS_MAX_OPERANDS = 33 };

struct options {
    struct option_value values[OPTION_N];
    const char *operands[OPTIONS_MAX_OPERANDS]; /* NULL where there are fewer */
    int n_typed;
    char **typed; /* the command and all that was given to it, as it was typed */
    /* Which model the options of --plan are for; NULL without one. */
    const char *plan_model;
    uint64_t plan_parameters;
};

struct command;

/*
 * argv[0] is the command's name; options may stand before and after the operands. STATUS_USAGE with
 * what to do about it.
 */
enum status options_parse(const struct command *command, int argc, char **argv, struct options *out,
                          struct err *err);

/* The default under this command, or NULL. */
const char *option_initial(enum option_id id, unsigned command_bit);

/* Take a value as if it stood on the command line; text must outlive the options. */
enum status options_take(struct options *options, enum option_id id, const char *text,
                         struct err *err);
/* Fill in a value that was found elsewhere, same rule. */
void options_set(struct options *options, enum option_id id, uint64_t number, const char *text);

static inline uint64_t option_number(const struct options *options, enum option_id id)
{
    return options->values[id].number;
}

static inline const char *option_text(const struct options *options, enum option_id id)
{
    return options->values[id].text;
}

static inline bool option_given(const struct options *options, enum option_id id)
{
    return options->values[id].given;
}

/* Append "; did you mean 'x'?" or what else is possible to a message; names end with NULL. */
enum status options_hint(struct err *err, const char *name, const char *const *names,
                         const char *otherwise);

#endif
