/*
 * Signals that ask this process to end, noted while it has something to end in order: ranks that
 * it forked, a checkpoint that is half written.
 *
 * The first one is noted only; whoever works asks now and then whether it came. After it each has
 * what it had before, so that the second one ends the process at once. A signal that was ignored
 * stays so. Nothing is said of SIGKILL.
 *
 * One watch at a time, of the main thread. Forked ranks leave signals to who forked them.
 */
#ifndef GPU_STOP_SIGNAL_H
#define GPU_STOP_SIGNAL_H

void stop_signal_watch(void);
void stop_signal_unwatch(void);
/* The number of the one that came since the watch began; 0: none. */
int stop_signal_came(void);

/* In a forked rank: signals for all of a terminal's processes pass it by, and it ends with the
   process that forked it. parent: its number, taken before the fork. */
void stop_signal_leave_to(int parent);

#endif
