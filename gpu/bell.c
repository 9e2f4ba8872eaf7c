/*
 * Bells on the kernel's futex: asks a few times, then sleeps until somebody rings.
 *
 * Not here: what is waited for. Invariant: the count of rings is read before the question is asked,
 * so that a ring between the two ends the sleep at once.
 */
#include "gpu/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Times to ask before sleeping: about a microsecond, less than a sleep and its end cost. */
enum { ASK_BEFORE_SLEEP = 32 };

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* False: time is over. Any other end of the sleep is a reason to ask again. */
static bool sleep_on(_Atomic uint32_t *word, uint32_t seen, int64_t until_ns)
{
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, until_ns == BELL_NEVER ? NULL : &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
    return until_ns == BELL_NEVER || bell_now_ns() < until_ns;
}

bool bell_wait(struct bell *bell, bell_question *question, void *context, int64_t until_ns)
{
    for (int i = 0; i < ASK_BEFORE_SLEEP; i++) {
        if (question(context))
            return true;
        pause_briefly();
    }

    bool answer, in_time = true;
    bell->sleepers++;
    do {
        const uint32_t rings = bell->rings;
        answer = question(context);
        if (answer || !in_time)
            break;
        in_time = sleep_on(&bell->rings, rings, until_ns);
    } while (true);
    bell->sleepers--;
    return answer;
}

void bell_ring(struct bell *bell)
{
    if (bell->sleepers == 0)
        return;
    bell->rings++;
    syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int64_t bell_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void bell_stay_until(int64_t until_ns)
{
    while (bell_now_ns() < until_ns)
        sched_yield();
}

int64_t bell_after(int64_t ns)
{
    int64_t until_ns;
    return __builtin_add_overflow(bell_now_ns(), ns, &until_ns) ? BELL_NEVER : until_ns;
}
