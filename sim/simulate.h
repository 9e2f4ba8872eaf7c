/*
 * A simulated step in numbers: price, execute on the engine, measure the third step.
 *
 * Definitions (DESIGN section 8): step = end of step 3 - end of step 2; exposed communication =
 * time with no kernel on the compute stream while a collective runs; overlap = 1 - exposed /
 * communication busy; contention = c/(1+c) * overlapped time. Times at which several collectives run
 * count once.
 */
#ifndef SIM_SIMULATE_H
#define SIM_SIMULATE_H

#include "sim/timed_memory.h"

enum { SIMULATED_STEPS = 3 };

struct step_time {
    int64_t step_ns;
    int64_t exposed_comm_ns, comm_ns /* some collective runs */, contention_ns;
    int64_t compute_ns; /* busy time of stream C */
};

/*
 * placement: its retries drain the device and so cost time; NULL leaves them out. Spans of all
 * steps are left in *engine (dies with arena) where engine is not NULL.
 */
enum status simulate(const struct program *program, const struct prices *prices,
                     const struct placement *placement, struct arena *arena, struct step_time *out,
                     struct engine **engine, struct err *err);

/*
 * The same where memory is tied to time: it is found on the way, a curve of the third step too.
 * Where it does not suffice placement->out_of_memory says so.
 */
enum status simulate_timed(const struct program *program, const struct prices *prices,
                           const struct alloc_config *config, struct arena *arena,
                           struct step_time *out, struct placement *placement,
                           struct memory_curve *curve, struct engine **engine, struct err *err);

#endif
