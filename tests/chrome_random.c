/*
 * Random runs, drawn: no reader is broken, and busy time, exposed communication and the memory peak
 * counted from the file alone are those of the run, whose own were counted ns by ns.
 *
 * The reader here knows lines and the order of keys that the writer uses, and shares no code with
 * the checker.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tests/trace_run.h"
#include "traces/chrome.h"
#include "traces/trace_check.h"

enum { RUNS = 150, TASKS = 60 };

/* The number after a key, digits alone: "1.234" is 1234, so that microseconds are ns. */
static long long number_after(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    long long value = 0;
    if (!at)
        tap_bail("a key is missing");
    for (at += strlen(key); (*at >= '0' && *at <= '9') || *at == '.'; at++) {
        if (*at != '.')
            value = value * 10 + (*at - '0');
    }
    return value;
}

struct recount {
    long long window, step;
    bool compute[TRACE_RUN_NS], comm[TRACE_RUN_NS];
    long long kernels, peak, instant_launches;
};

static void count_kernel(struct recount *recount, const char *line)
{
    const long long begin = number_after(line, "\"ts\":"),
                    end = begin + number_after(line, "\"dur\":");
    const bool compute = number_after(line, "\"tid\":") == 7;
    const bool comm = strstr(line, "\"name\":\"nccl") != NULL;
    for (long long ns = begin; ns < end; ns++) {
        if (ns < recount->window || ns >= recount->window + recount->step)
            continue;
        recount->compute[ns - recount->window] |= compute;
        recount->comm[ns - recount->window] |= comm;
    }
    recount->kernels++;
}

static void count_lines(struct recount *recount, char *trace)
{
    char *rest = trace;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (strstr(line, "\"schemaVersion\"")) {
            recount->window = number_after(line, "\"window_begin_ns\":");
            recount->step = number_after(line, "\"step_ns\":");
        } else if (strstr(line, "\"cat\":\"kernel\"")) {
            count_kernel(recount, line);
        } else if (strstr(line, "cudaLaunchKernel")) {
            recount->instant_launches += number_after(line, "\"dur\":") == 0;
        } else if (strstr(line, "\"name\":\"memory.allocated\"")) {
            const long long bytes = number_after(line, "\"bytes\":");
            recount->peak = bytes > recount->peak ? bytes : recount->peak;
        }
    }
}

static bool holds(const struct run *run, const struct recount *recount)
{
    int64_t compute_ns = 0, comm_ns = 0, exposed_ns = 0;
    for (int ns = 0; ns < TRACE_RUN_NS; ns++) {
        compute_ns += recount->compute[ns];
        comm_ns += recount->comm[ns];
        exposed_ns += recount->comm[ns] && !recount->compute[ns];
    }
    return compute_ns == run->metrics[RUN_METRIC_COMPUTE] &&
           comm_ns == run->metrics[RUN_METRIC_COMM] &&
           exposed_ns == run->metrics[RUN_METRIC_EXPOSED_COMM] &&
           recount->peak == run->metrics[RUN_METRIC_PEAK_ALLOCATED] &&
           recount->kernels == run->n_task && recount->instant_launches == 0;
}

static void note_findings(int round, const struct trace_report *report)
{
    for (uint32_t i = 0; i < report->n_finding; i++)
        tap_note("run %d: %s (%s): %s", round, report->findings[i].rule, report->findings[i].reader,
                 report->findings[i].text);
}

int main(void)
{
    uint64_t state = tap_seed(20261129);
    char path[] = "/tmp/unshard-chrome-random-XXXXXX.json";
    const int fd = mkstemps(path, 5);
    int unread = 0, uncounted = 0, exposed = 0;
    if (fd < 0)
        tap_bail("no temporary file can be made");
    close(fd);
    for (int round = 0; round < RUNS; round++) {
        struct arena arena;
        arena_init(&arena);
        struct run *run = trace_run_random(&arena, &state, TASKS);
        const struct chrome_options options = {.rank = (uint32_t)tap_below(&state, 2)};
        struct trace_report report = {0};
        struct err err = {.text = ""};
        if (chrome_write(run, &options, path, &err))
            tap_bail(err.text);
        const enum status wanted =
            run->n_task > 0 ? STATUS_OK : STATUS_NO; /* empty to speedscope */
        unread += trace_check(path, &arena, &report, &err) != wanted;
        if (run->n_task > 0)
            note_findings(round, &report);

        struct recount *recount = arena_array(&arena, struct recount, 1);
        char *trace = tap_read_file(path);
        count_lines(recount, trace);
        if (!holds(run, recount)) {
            tap_note("run %d is counted differently", round);
            uncounted++;
        }
        exposed += run->metrics[RUN_METRIC_EXPOSED_COMM] > 0;
        free(trace);
        arena_release(&arena);
    }
    unlink(path);
    is_int(unread, 0, "each of %d random runs breaks no reader", RUNS);
    is_int(uncounted, 0,
           "busy time, exposed communication and the peak come out of each file, and each launch "
           "is a slice that a flow can be bound to");
    ok(exposed > RUNS / 5, "%d of the runs have exposed communication to count", exposed);
    return tap_done();
}
