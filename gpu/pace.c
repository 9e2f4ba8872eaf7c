/*
 * The host's pace; see pace.h.
 */
#include "gpu/pace.h"

#include <time.h>

#include "gpu/bell.h"

static void wait_until(int64_t until_ns)
{
    const int64_t sleep_ns = until_ns - bell_now_ns() - BELL_LATE_NS;

    if (sleep_ns > 0)
        nanosleep(&(struct timespec){sleep_ns / 1000000000, sleep_ns % 1000000000}, NULL);
    bell_stay_until(until_ns);
}

/* The part of the cost behind op of n_op launches. */
static int64_t spent_ns(int64_t cost_ns, uint32_t op, uint32_t n_op)
{
    return (int64_t)((double)cost_ns * op / n_op);
}

int64_t pace_launch(struct pace *pace, uint32_t task, uint32_t op, uint32_t n_op)
{
    if (!pace->task_ns)
        return 0;
    const int64_t cost_ns = pace->task_ns[task], begin_ns = bell_now_ns();
    if (pace->free_ns == 0)
        pace->free_ns = begin_ns;
    pace->free_ns += spent_ns(cost_ns, op + 1, n_op) - spent_ns(cost_ns, op, n_op);
    wait_until(pace->free_ns);
    pace_waited(pace);
    return bell_now_ns() - begin_ns;
}

void pace_waited(struct pace *pace)
{
    const int64_t now_ns = pace->task_ns ? bell_now_ns() : 0;

    if (pace->free_ns < now_ns)
        pace->free_ns = now_ns;
}
