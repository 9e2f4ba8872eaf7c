/*
 * From options to a verified program: what every command that needs one does first.
 *
 * Opens model and cluster, resolves the plan, builds layout, bodies and program, and proves the
 * program safe before anybody sees anything of it. All lives in one arena.
 */
#ifndef SRC_CLI_PREPARE_H
#define SRC_CLI_PREPARE_H

#include "src/cli/options.h"
#include "src/cluster.h"
#include "src/json.h"
#include "src/program.h"

struct prepared {
    struct arena arena;
    struct cluster cluster;
    struct model model;
    struct plan plan;
    struct layout layout;
    struct body_table bodies;
    struct program program;
};

/*
 * The options are completed with what the plan fills in. STATUS_RUN where the program has a fault.
 * To be released on every path.
 */
enum status prepare(struct options *options, struct prepared *out, struct err *err);
void prepared_release(struct prepared *prepared);

/* The options in force as one would type them; what has one position only in this version. */
void prepared_options_text(const struct options *options, struct text *out);
void prepared_fixed_text(const struct prepared *prepared, struct text *out);
/* Both, as one object. */
void prepared_options_json(const struct prepared *prepared, const struct options *options,
                           struct cJSON *parent);

#endif
