/*
 * A run as a Chrome trace that Perfetto, chrome://tracing, HTA, TraceLens and speedscope can read.
 *
 * One event at a time, so that memory does not grow with the run beyond a few words per task;
 * timestamps are exact decimal text from integer ns. The file appears whole or not at all: it is
 * written under another name and renamed; the path "-" is stdout. ".gz" at the end of the path
 * compresses. Profile: spec TRACES section 3.
 *
 * Trace time begins with the first thing that happens in the run, "metadata" says where in it the
 * measured step begins ("window_begin_ns") and holds the metrics, so that a reader of the file alone
 * can count them again.
 */
#ifndef TRACES_CHROME_H
#define TRACES_CHROME_H

#include "src/err.h"
#include "src/run.h"

struct chrome_options {
    uint32_t rank; /* whose file it is said to be; one program serves all ranks */
};

/*
 * STATUS_INPUT where the file cannot be written, or where the run's tasks break the invariants of
 * run.h, so that no viewer could draw them: nothing stays behind. STATUS_USAGE where the run has no
 * such rank.
 */
enum status chrome_write(const struct run *run, const struct chrome_options *options,
                         const char *path, struct err *err);

#endif
