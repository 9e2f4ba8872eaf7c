/*
 * The only walker of a program's steps: init (step 0), first (step 1), then steady, in host order. One
 * section alone is a matter of src/issue.h.
 *
 * Takes a level and optionally a placement, whose driver operations it then passes on. steps counts
 * without init: 3 is first and two steady. Calls close on every path.
 */
#ifndef SRC_EXEC_H
#define SRC_EXEC_H

#include "src/backend.h"

enum exec_level { EXEC_UNIT, EXEC_EXPANDED };

enum status exec_program(const struct program *program, enum exec_level level,
                         const struct placement *placement, uint32_t steps,
                         const struct backend_ops *ops, void *backend, struct err *err);

#endif
