/*
 * A program as text for people and golden files. Names come from the plan; the hash knows none.
 */
#ifndef SRC_PROGRAM_PRINT_H
#define SRC_PROGRAM_PRINT_H

#include "src/program.h"

enum { PROGRAM_NAME_MAX = 192 };

/* "full model.layers.0", "mb1" appended where there are several microbatches. Returns out. */
const char *program_buffer_name(const struct program *program, uint32_t buffer,
                                char out[PROGRAM_NAME_MAX]);
const char *program_task_name(const struct program *program, uint32_t task,
                              char out[PROGRAM_NAME_MAX]);

/*
 * One instruction a line. Events are named after the task they are recorded behind: "wait C
 * all_gather model.layers.0". expand: operators and members in place of bodies and groups.
 */
void program_print(const struct program *program, enum section_id section, bool expand,
                   struct text *out);

#endif
