/*
 * The progress line; see plan_progress.h. The clock decides only whether and when there is one,
 * never what a command answers.
 */
#include "src/cli/plan_progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "src/text.h"

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct plan_progress plan_progress_begin(void)
{
    return (struct plan_progress){.start_ns = now_ns(), .terminal = isatty(STDERR_FILENO)};
}

static bool is_due(const struct plan_progress *progress)
{
    return progress->terminal && now_ns() - progress->start_ns >= 1000000000;
}

/* What is left, were it as slow as what was done. */
static double seconds_left(const struct plan_progress *progress, uint64_t done, uint64_t all)
{
    const double seconds = (double)(now_ns() - progress->start_ns) * 1e-9;
    return done > 0 && all > done ? seconds * (double)(all - done) / (double)done : 0;
}

void plan_progress_search(struct plan_progress *progress, uint64_t done, uint64_t all,
                          int64_t best_ns)
{
    char best[32];

    if (!is_due(progress))
        return;
    fprintf(stderr, "\r%llu plans, best so far %s, at most %.0f s to go   ",
            (unsigned long long)done, best_ns > 0 ? text_ns(best_ns, best) : "none",
            seconds_left(progress, done, all));
    fflush(stderr);
    progress->shown = true;
}

void plan_progress_at(struct plan_progress *progress, uint32_t done, uint32_t all)
{
    if (!is_due(progress))
        return;
    fprintf(stderr, "\r%u of %u plans simulated", done, all);
    fflush(stderr);
    progress->shown = true;
}

void plan_progress_end(struct plan_progress *progress)
{
    if (progress->shown)
        fprintf(stderr, "\r%*s\r", 72, "");
    progress->shown = false;
}
