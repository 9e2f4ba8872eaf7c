/*
 * A prepared program in numbers: what every command that simulates does with it.
 *
 * Places the program, prices it three times (low, mid, high), runs each on the engine and fills a
 * struct sim_report. Prints nothing and judges nothing: how that looks, and what follows of it, is
 * for the commands.
 */
#ifndef SRC_CLI_EVALUATE_H
#define SRC_CLI_EVALUATE_H

#include "src/cli/sim_report.h"

/* The report lives as long as the plan in prepared; options too, which it points to. */
enum status evaluate(const struct options *options, struct prepared *prepared,
                     struct sim_report *report, struct err *err);

#endif
