/*
 * The schedule of the plan's system: the one entry to src/schedule/ for all who need a program.
 */
#ifndef SRC_SCHEDULE_SYSTEM_H
#define SRC_SCHEDULE_SYSTEM_H

#include "src/program.h"

void schedule_program(const struct plan *plan, const struct layout *layout,
                      const struct body_table *bodies, struct arena *arena, struct program *out);

#endif
