/*
 * Lists on the command line of `plan`, and the plans that they ask for together.
 *
 * Values are separated by commas. Patterns of --units are as well, so that a list of units is split
 * at commas only where all of it is names of schemes; ';' always separates plans:
 *
 *     block,block*2          two plans
 *     model.layers.*,lm_head one plan, of two patterns
 *     block;model.layers.*,lm_head   two plans
 */
#ifndef SRC_CLI_PLAN_LISTS_H
#define SRC_CLI_PLAN_LISTS_H

#include "src/arena.h"
#include "src/cli/options.h"

enum { PLAN_MAX_ROWS = 1024 };

struct plan_list {
    enum option_id id;
    const char **values;
    uint32_t n;
    /* Each value brings one of another option along: by value, or NULL. */
    const char **brings;
    enum option_id brought;
};

/* Each option that can be a list, in the order of the table; the last one varies fastest. */
struct plan_lists {
    struct plan_list lists[OPTION_N];
    uint32_t n_list;
    uint32_t n_row; /* the product of their lengths */
};

/* STATUS_USAGE: a value that is none, that is empty or stands twice, or too many plans. */
enum status plan_lists_read(const struct options *options, struct arena *arena,
                            struct plan_lists *out, struct err *err);

/* Whether it names a scheme and so is no list of patterns. */
bool plan_list_is_scheme(const char *units);

/* Whether the plans differ in it. */
bool plan_lists_vary(const struct plan_lists *lists, enum option_id id);

/* Let each number of a list bring the one along that makes product with it; all of them divide it. */
void plan_lists_share(struct plan_lists *lists, enum option_id id, enum option_id brought,
                      uint64_t product, struct arena *arena);

/* The options of one plan. */
void plan_lists_row(const struct plan_lists *lists, uint32_t row, const struct options *options,
                    struct options *out);

#endif
