/*
 * A bell: how one thread waits for what another one does, also across processes that share memory.
 *
 * Whoever changes what others wait for does so first and rings then; ringing costs one load where
 * nobody sleeps. No lock and no count of events: a sleeper asks again each time. A process that dies
 * in its sleep leaves the bell usable. Zeroed memory is a bell.
 *
 * Invariant: what is asked and what is changed are sequentially consistent atomics, so that either
 * the one who waits sees the change or the one who rings sees a sleeper.
 */
#ifndef GPU_BELL_H
#define GPU_BELL_H

#include <stdbool.h>
#include <stdint.h>

struct bell {
    _Atomic uint32_t rings, sleepers;
};

/* May do a part of what is waited for, as long as asking twice does no harm. */
typedef bool bell_question(void *context);

#define BELL_NEVER INT64_MAX

/* The answer to the question: false only where time was over, until_ns of bell_now_ns(). */
bool bell_wait(struct bell *bell, bell_question *question, void *context, int64_t until_ns);
void bell_ring(struct bell *bell);

int64_t bell_now_ns(void); /* CLOCK_MONOTONIC */
/* A sleep may end so much late; what is left of a time that has to be kept is waited for awake, as
   long as nobody else can run. */
enum { BELL_LATE_NS = 100000 };
void bell_stay_until(int64_t until_ns);
/* When so much time is over; BELL_NEVER where that does not fit. */
int64_t bell_after(int64_t ns);

#endif
