/*
 * The parts of `unshard bench host`: each measures and appends its lines.
 *
 * Goals are those of a machine that does nothing else; which side of one a number should be is its
 * unit's. Files: bench_pack.c, bench_run.c.
 */
#ifndef SRC_CLI_BENCH_HOST_H
#define SRC_CLI_BENCH_HOST_H

#include "src/cli/bench.h"
#include "src/cli/run_execute.h"

enum { BENCH_HOST_LINES = 32 };

struct bench_lines {
    struct bench_line at[BENCH_HOST_LINES];
    unsigned n;
};

static inline void bench_lines_add(struct bench_lines *lines, struct bench_line line)
{
    lines->at[lines->n++] = line;
}

/* Packing against memcpy. */
enum status bench_pack(struct bench_lines *lines, struct err *err);

/* A plan really run. Must not move. */
struct bench_plan {
    struct options options;
    struct run_execution execution;
};

/* A real step: the host's time for an instruction; what hides communication. plan: one of those that
   were run, to be released on every path. */
enum status bench_run(struct bench_lines *lines, struct bench_plan *plan, struct err *err);

#endif
