/*
 * What has to be known before the first event of a trace is written: where time begins, which tasks
 * open a named range and where that ends, and texts that are valid UTF-8.
 *
 * Knows no JSON. Ranges of one track are disjoint from each other, and no task crosses one's edge.
 */
#ifndef TRACES_CHROME_PLAN_H
#define TRACES_CHROME_PLAN_H

#include "src/arena.h"
#include "src/err.h"
#include "src/run.h"

struct chrome_range {
    const char *name; /* NULL: this task opens none */
    int64_t begin_ns, end_ns;
};

/* The ranges that a task opens, and its launch as it is drawn. */
struct chrome_ranges {
    struct chrome_range phase, host, device, launch;
};

struct chrome_plan {
    int64_t origin_ns;            /* the earliest time that is drawn, at most 0 */
    struct chrome_ranges *ranges; /* by task */
    const char **task_names, **unit_names;
};

enum status chrome_plan(const struct run *run, struct arena *arena, struct chrome_plan *out,
                        struct err *err);

/* The text itself where it is UTF-8, else a copy with U+FFFD for what is not. */
const char *chrome_text(struct arena *arena, const char *text);

#endif
