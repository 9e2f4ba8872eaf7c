/*
 * Measured runs beside what is predicted for them.
 *
 * A row of a table becomes the command line of `unshard sim` that predicts it, and is evaluated as
 * that command would. Rows that cannot be expressed have a reason in place of a prediction; rows
 * that are not to be trusted have a prediction and enter no statistic. All shapes of the answer are
 * made from struct validation alone.
 */
#ifndef SRC_CLI_VALIDATE_H
#define SRC_CLI_VALIDATE_H

#include <stdbool.h>

#include "sim/cost.h"
#include "src/cli/options.h"
#include "src/cli/term.h"
#include "src/measured.h"

/* Below so many rows a platform's rows stand for themselves. */
enum { VALIDATE_MIN_ROWS = 8 };

struct validated_row {
    const struct measured_run *run;
    const char *reason;  /* why it is not predicted, or NULL */
    const char *command; /* of unshard, that predicts it; NULL where there is none */
    double predicted_s, low_s, high_s;
    double error_pct;                 /* signed: above 0 the prediction is too long */
    double peak_gib, peak_error_pct;  /* of the kind that was measured; NAN */
    double comm_share, exposed_share; /* of the predicted step */
    bool near_memory_limit;
    bool counts;             /* enters statistics */
    struct tables_left left; /* tables that some price is read outside of */
};

/* Shares and errors in percent; NAN where there is nothing to divide by. */
struct platform_stats {
    const char *platform;
    uint32_t n, n_near_limit;
    double mean, median, p90, max;           /* of absolute errors */
    double bias;                             /* mean of signed errors */
    double clear_mean, clear_p90, clear_max; /* of rows that are not near the memory limit */
    double rank;                             /* of pairs, ordered as they were measured */
    uint32_t n_pair;
    double coverage, width; /* rows inside low to high; median of (high - low) / mid */
    uint32_t n_peak;
    double peak_mean, peak_max; /* absolute errors of peaks */
};

struct validation {
    const char *file;
    const char *without;        /* terms that are left out, as typed; NULL: none */
    struct validated_row *rows; /* in the order of the file */
    uint32_t n;
    struct platform_stats
        *platforms; /* in the order of their first row; then totals, the last one: all */
    uint32_t n_platform;
    double tolerance_pct; /* NAN: none was asked for */
    bool within;          /* every platform's mean is within the tolerance */
};

/* How unshard is asked for a row; see validate_command.c. */
struct row_command {
    int argc;
    char **argv; /* begins with "sim"; what it points to is the arena's */
};

/*
 * clusters: a folder with cluster files, PLATFORM.GPU.json or PLATFORM.json, or NULL. without: as
 * in struct validation. STATUS_USAGE with the reason where a row cannot be expressed.
 */
enum status validate_command(const struct measured_run *run, const char *clusters,
                             const char *without, struct arena *arena, struct row_command *out,
                             struct err *err);

/* The command as `unshard sim` takes it; the options point to its words. */
enum status validate_options(const struct row_command *command, struct options *out,
                             struct err *err);

/* What the framework that a row comes from did beside what the columns say. */
struct habit {
    const char *source;       /* what the row's source begins with */
    const char *system;       /* of the row; "": any */
    const char *compile;      /* the same */
    const char *reduce;       /* its reduce_dtype, where it does not name its release of PyTorch */
    const char *loss;         /* the row's */
    const char *from, *until; /* of the row's date, as text; until is left out */
    const char *option, *value;
    const char *why;
};
extern const struct habit validate_habits[];
extern const uint32_t n_validate_habits;

/* Predict every row, then count. rows have their run; a row that cannot be read ends it. */
enum status validate_rows(const char *clusters, struct arena *arena, struct validation *validation,
                          struct err *err);

/* Fill platforms from rows. */
void validate_count(struct validation *validation, struct arena *arena);

void validate_text(const struct validation *validation, const struct term *term, struct text *out);
void validate_json(const struct validation *validation, struct text *out);
void validate_markdown(const struct validation *validation, struct text *out);
/* What may be wrong with one run that misses its prediction; nothing where it does not. */
void validate_diagnosis(const struct validated_row *row, struct text *out);

#endif
