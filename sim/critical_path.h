/*
 * The critical path: from a moment back to an earlier one, always to what was waited for last.
 *
 * Its pieces are without a gap: in each the device runs a task, or the host issues one or gives
 * memory back for one, and what follows could not begin before its end. So the pieces of a step sum
 * to the step, to the ns. What a slowed kernel loses to contention, or a collective to another on
 * its wire, is in its piece.
 */
#ifndef SIM_CRITICAL_PATH_H
#define SIM_CRITICAL_PATH_H

#include "sim/causes.h"

struct path_piece {
    int64_t begin_ns, end_ns;
    uint32_t span; /* which task runs, or is issued, or needs memory */
    uint8_t held;  /* enum cause_kind: how it held what follows */
    bool on_host;  /* with CAUSE_DRAIN: it gives memory back */
};

/* In order of time. */
struct path {
    struct path_piece *at;
    uint32_t n, cap;
};

/* What led to the end of a span, since begin_ns; and what to its start. Appended. */
void path_to_end(const struct causes *causes, uint32_t span, int64_t begin_ns, struct arena *arena,
                 struct path *path);
void path_to_start(const struct causes *causes, uint32_t span, int64_t begin_ns,
                   struct arena *arena, struct path *path);

/* Of a step: from its end back to the end of the step before. */
void critical_path(const struct causes *causes, uint32_t step, struct arena *arena,
                   struct path *out);

/* Of its end_ns - begin_ns: a task's kind on the device, the kind of what the host issues, and what
   it does with memory. */
struct path_sums {
    int64_t device_ns[TASK_KIND_N], host_ns[TASK_KIND_N], memory_ns;
};
struct path_sums path_sums(const struct causes *causes, const struct path *path);

#endif
