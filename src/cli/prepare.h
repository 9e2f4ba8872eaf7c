/*
 * From options to a verified program: what every command that needs one does first.
 *
 * Opens model and cluster, resolves the plan, builds layout, bodies and program, and proves the
 * program safe before anybody sees anything of it. What is opened outlives the plan, so that one
 * plan after the other can be made of the same model.
 */
#ifndef SRC_CLI_PREPARE_H
#define SRC_CLI_PREPARE_H

#include "src/cli/options.h"
#include "src/cluster.h"
#include "src/json.h"
#include "src/program.h"

struct prepared {
    struct arena opened; /* cluster and model; all that a plan fills in for an option */
    struct arena arena;  /* the plan and everything made from it */
    struct cluster cluster;
    struct model model;
    struct plan plan;
    struct layout layout;
    struct body_table bodies;
    struct program program;
};

/*
 * Cluster and model; model_json: what a run kept of its model, or NULL for the operand. STATUS_INPUT
 * where it is not the model of the plan that options came from. To be released on every path.
 */
enum status prepare_open(const struct options *options, const char *model_json,
                         struct prepared *out, struct err *err);

/* What the options ask of a plan; of the cluster it takes what a GPU needs of memory. */
struct plan_options prepare_plan_options(const struct options *options,
                                         const struct cluster *cluster);

/*
 * The units where none are given and FSDP1 is the system, or one of a list: blocks, since FSDP1
 * wraps one module to a unit, and the last unit of the default is two. prepare_plan() does so too.
 */
void prepare_units(struct options *options);

/*
 * The plan and all of it, after that everything of the plan before is gone. The options are
 * completed with what the plan fills in. STATUS_RUN where the program has a fault.
 */
enum status prepare_plan(struct options *options, struct prepared *prepared, struct err *err);

/* Both. */
enum status prepare(struct options *options, struct prepared *out, struct err *err);
void prepared_release(struct prepared *prepared);

/*
 * Sizes that are too large, with the model and the options that make them: the command line's fault
 * for a built-in model, the file's for one from a file. what: "a tensor has ...".
 */
enum status prepared_too_large(const struct options *options, const struct plan *plan,
                               const char *what, struct err *err);

/*
 * A paragraph for term_wrap(): the options in force as one would type them. It begins with a blank;
 * option and value stay on one line.
 */
void prepared_options_text(const struct options *options, struct text *out);
/* The same as an object. */
struct cJSON *prepared_options_json(const struct options *options, struct cJSON *parent);
/* Whether such an object has the option, and its value as one would type it, in arena. */
bool prepared_option_stands(const struct json_at *asked, enum option_id id);
enum status prepared_option_read(const struct json_at *asked, enum option_id id,
                                 struct arena *arena, const char **out, struct err *err);
/* Take such an object back; what was typed stays. Texts go to arena. */
enum status prepared_asked_read(const char *json, struct arena *arena, struct options *options,
                                struct err *err);

#endif
