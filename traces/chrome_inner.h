/*
 * The state of writing one trace, shared by the files that write its parts.
 */
#ifndef TRACES_CHROME_INNER_H
#define TRACES_CHROME_INNER_H

#include "traces/chrome_event.h"
#include "traces/chrome_groups.h"
#include "traces/chrome_plan.h"
#include "traces/out_file.h"

struct chrome {
    const struct run *run;
    struct chrome_plan plan;
    struct chrome_event event;
    struct out_file out;
    struct arena arena;
    uint64_t rank, cpu_pid, device, gpu_pid;
    const char *separator; /* what comes before the next event */
    struct chrome_groups groups;
    char kernel_names[TASK_KIND_N][DTYPE_N][96];
    enum status status;
    struct err *err;
};

/* After a write that failed nothing more is written; the first reason is the one told. */
void chrome_put_text(struct chrome *chrome, const char *text, size_t length);

void chrome_put_head(struct chrome *chrome, const char *path);

#endif
