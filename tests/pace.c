/*
 * The host's pace: no launch comes before its time, parts of a body sum to the body, and a host that is
 * late is not hurried on. Only what a clock cannot disprove by being slow: lower bounds, and sums.
 */
#include "gpu/pace.h"

#include "gpu/bell.h"
#include "tests/tap.h"

enum { MS = 1000000 };

static void test_clock(void)
{
    const int64_t task_ns[] = {2 * MS, 0, 3 * MS};
    struct pace pace = {.task_ns = task_ns};
    const int64_t begin_ns = bell_now_ns();

    ok(pace_launch(&pace, 0, 0, 1) >= 2 * MS, "a launch takes its cost");
    pace_launch(&pace, 1, 0, 1);
    ok(bell_now_ns() - begin_ns >= 2 * MS, "another nothing");
    for (uint32_t op = 0; op < 7; op++)
        pace_launch(&pace, 2, op, 7);
    ok(bell_now_ns() - begin_ns >= 5 * MS, "seven operators what their body does");
    ok(pace.free_ns - begin_ns >= 5 * MS && pace.free_ns <= bell_now_ns(), "by its clock, too");
}

/* Parts of a clock that stands far ahead, so that nothing is late: they sum without a loss. */
static void test_sums(void)
{
    const int64_t task_ns[] = {1000003};
    uint32_t n_bad = 0;

    for (uint32_t n_op = 1; n_op < 40; n_op += 3) {
        struct pace pace = {.task_ns = task_ns, .free_ns = bell_now_ns() + MS};
        const int64_t from_ns = pace.free_ns;
        for (uint32_t op = 0; op < n_op; op++)
            pace_launch(&pace, 0, op, n_op);
        n_bad += pace.free_ns - from_ns < task_ns[0];
    }
    is_int(n_bad, 0, "any number of operators cost at least their body");
}

static void test_late(void)
{
    const int64_t task_ns[] = {MS};
    struct pace pace = {.task_ns = task_ns, .free_ns = bell_now_ns() - 1000 * (int64_t)MS};
    const int64_t begin_ns = bell_now_ns();

    pace_launch(&pace, 0, 0, 1);
    ok(pace.free_ns >= begin_ns, "a host that is late is not to catch up");
    pace.free_ns = begin_ns - MS;
    pace_waited(&pace);
    ok(pace.free_ns >= begin_ns, "nor one that has waited");
    struct pace none = {.task_ns = NULL};
    is_int(pace_launch(&none, 0, 0, 1), 0, "without costs nothing is held back");
}

int main(void)
{
    test_clock();
    test_sums();
    test_late();
    return tap_done();
}
