/*
 * Help, made from the tables of commands and options; nothing is said here that they do not say.
 */
#ifndef SRC_CLI_HELP_H
#define SRC_CLI_HELP_H

#include "src/cli/command.h"

void help_overview(struct text *out);
void help_command(const struct command *command, struct text *out);

#endif
