/*
 * A plan as a file, schema "unshard.chosen/1": what `plan --emit json` writes and --plan FILE reads.
 *
 * It holds the options of the plan as they are typed, and which model they are for: its name and its
 * number of parameters. Times, bytes and the program's hash are there for who reads it.
 */
#ifndef SRC_CLI_PLAN_FILE_H
#define SRC_CLI_PLAN_FILE_H

#include "src/cli/command.h"
#include "src/cli/plan_row.h"
#include "src/cli/prepare.h"

void plan_file_print(const struct prepared *prepared, const struct plan_row *row, struct text *out);

/*
 * Where --plan is given take its options, but for those that were typed. Texts go to arena. A command
 * that lacks one of them says so in a warning; `plan` begins its search with the units of the file, which
 * then count as not given. STATUS_INPUT for a file that is no such plan.
 */
enum status plan_file_take(const struct command *command, struct options *options,
                           struct arena *arena, struct text *warnings, struct err *err);

#endif
