/*
 * A simulated step in numbers: price, execute on the engine, measure the reported step.
 *
 * Definitions (DESIGN section 8): step = its end - end of the one before; exposed communication =
 * time with no kernel on the compute stream while a collective runs; overlap = 1 - exposed /
 * communication busy; contention = c/(1+c) * overlapped time. Times at which several collectives run
 * count once.
 */
#ifndef SIM_SIMULATE_H
#define SIM_SIMULATE_H

#include "sim/timed_memory.h"

/*
 * The reported step is the third. Retries of the allocator in it, or in a later step of a
 * placement, may be those of the first steps only, or come in some steps of a period and not in
 * others. Then the times are the mean of the period in which a placement repeats, and where there
 * is none, or memory is tied to time, of the last three of nine steps.
 */
enum { SIMULATED_STEPS = 3, SETTLED_STEPS = 9, SETTLED_MEASURED = 3 };

struct step_time {
    int64_t step_ns;
    int64_t exposed_comm_ns, comm_ns /* some collective runs */, contention_ns;
    int64_t compute_ns; /* busy time of stream C */
    uint32_t steps;     /* that were simulated, */
    uint32_t measured;  /* the last so many of which all this is the mean of */
};

/* Retries of the allocator, in so many steps. */
struct retries {
    uint32_t n, steps;
};
/* Those in the steps that time is of. */
struct retries step_time_retries(const struct step_time *time, const struct placement *placement);
/* The mean of a step, rounded up; 0 where there are no steps. */
static inline uint32_t retries_of_step(struct retries retries)
{
    return retries.steps == 0 ? 0 : (retries.n + retries.steps - 1) / retries.steps;
}

/*
 * placement: its retries drain the device and so cost time; NULL leaves them out. Spans of all
 * steps are left in *engine (dies with arena) where engine is not NULL.
 */
enum status simulate(const struct program *program, const struct prices *prices,
                     const struct placement *placement, struct arena *arena, struct step_time *out,
                     struct engine **engine, struct err *err);

/*
 * The same where memory is tied to time: it is found on the way, a curve of the last step too.
 * Where it does not suffice placement->out_of_memory says so.
 */
enum status simulate_timed(const struct program *program, const struct prices *prices,
                           const struct alloc_config *config, struct arena *arena,
                           struct step_time *out, struct placement *placement,
                           struct memory_curve *curve, struct engine **engine, struct err *err);

#endif
