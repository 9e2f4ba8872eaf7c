#ifndef TESTS_SLOW_ENGINE_H
#define TESTS_SLOW_ENGINE_H
/*
 * A slow simulator to hold the engine against.
 *
 * It goes through time ns by ns and asks everybody at each of them what can be done now; no queue is
 * run ahead of another. What a WAIT is for is found by search in the list of all that is issued. It
 * shares nothing with the engine but the prices and the ranks of communicators.
 */
#include "tests/engine_rig.h"

enum { MAX_SCRIPT = 512 };

/* One call as the host makes it, and what the slow simulator knows of it. */
struct call {
    uint32_t op, id, step; /* enum instr_op */
    enum stream stream;
    bool drain; /* in place of op: the host waits for all, and gives memory back */
    bool takes; /* in place of op: it takes some */
    int target; /* WAIT, HOST_WAIT: the RECORD it is for, or -1 */
    bool started, done;
    int64_t first_ns, last_ns; /* LAUNCH: no start before, no end before */
    int64_t left;              /* work, in 1/(1000 + c) of a ns; of collectives in 1/SHARES */
    int64_t start_ns, worked_ns, end_ns;
};

struct slow_engine {
    const struct rig *rig;
    struct call calls[MAX_SCRIPT];
    int n_call;
    int n_issued; /* the host is at this call */
    int64_t now_ns, host_busy_ns;
    bool giving_back; /* the host has launched and taken nothing since it did */
    bool deadlock;
};

/* From rig and calls alone, the rest 0. */
void slow_engine_run(struct slow_engine *slow);
bool slow_engine_is_collective(const struct slow_engine *slow, int i);

#endif
