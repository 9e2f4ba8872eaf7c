/*
 * What a search found as options that anybody could have typed: the same plan without the search.
 */
#ifndef SRC_CLI_PLAN_POINT_H
#define SRC_CLI_PLAN_POINT_H

#include "sim/space.h"
#include "src/cli/prepare.h"

/*
 * options: those that the space was made with; fine: with the plan of the space. Texts of *out live in
 * arena.
 */
enum status plan_point_options(const struct space *space, const uint8_t *point,
                               const struct options *options, struct prepared *fine,
                               struct arena *arena, struct options *out, struct err *err);

/* Its units in words, in arena. */
const char *plan_point_label(const struct space *space, const uint8_t *point, struct arena *arena);

#endif
