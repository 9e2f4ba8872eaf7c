/*
 * Constants of a cluster from measured runs of it: one machine of a table at a time.
 *
 * Rows of the test split and of low trust are never fitted. A row is simulated as by `unshard sim`,
 * but what retries of the allocator add is always that of the presets. Rows near the memory limit
 * weigh a quarter.
 */
#ifndef SRC_CLI_CALIBRATE_RUNS_H
#define SRC_CLI_CALIBRATE_RUNS_H

#include "src/cli/fit_constants.h"
#include "src/cli/validate.h"

/* The rows of one GPU of a platform and what came of them. */
struct machine_fit {
    const char *platform, *gpu;
    struct validated_row **rows; /* predicted by presets; all that are fitted */
    uint32_t n, n_near_limit;
    bool moves[FIT_CONSTANT_N];
    bool attention[ATTENTION_N]; /* kernels that rows used */
    double x[FIT_CONSTANT_N];    /* logarithms of factors */
    double *seconds;             /* by row, of a step with these */
    double spread;               /* a run misses by less than this, of 1, nine times in ten */
    struct cluster preset, fitted;
    const char *path;                    /* of the fitted one's file */
    struct platform_stats before, after; /* errors of its rows by presets, by what was fitted */
};

/* Which constants move, how far, seconds and spread: from platform, gpu, rows and n. */
enum status machine_fit_solve(struct machine_fit *fit, struct arena *arena, struct err *err);
/* Whether this rate is one of them. */
bool machine_fit_moves(const struct machine_fit *fit, const struct fit_rate *rate);
/* Then the clusters. file: of the table, for the sources of what was fitted. */
enum status machine_fit_clusters(struct machine_fit *fit, const char *file, struct arena *arena,
                                 struct err *err);

/* A whole table. */
struct calibration {
    const char *folder, *file; /* where to; the table's name without its folders */
    struct arena *arena;
    struct validation presets; /* rows that are no test, predicted by presets */
    struct machine_fit *fits;
    uint32_t n_fit;
};

/*
 * The fits from the rest; into the folder, which is made if need be, PLATFORM.json, or
 * PLATFORM.GPU.json where a platform has several GPUs.
 */
enum status calibration_run(struct calibration *c, struct err *err);

/* Why a row is not fitted, or NULL. */
const char *calibration_reason(const struct validated_row *row);

void calibration_text(const struct calibration *c, struct text *out);
void calibration_json(const struct calibration *c, struct text *out);

#endif
