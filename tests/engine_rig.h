#ifndef TESTS_ENGINE_RIG_H
#define TESTS_ENGINE_RIG_H
/*
 * Programs of a few priced tasks, made by hand for tests of the engine.
 *
 * Sections are begun by the test; each rig_launch() adds a task with its price. Units are called
 * u0, u1, … and hold nothing but their names. World size 2, in one node.
 */
#include "sim/engine.h"
#include "src/program_builder.h"

enum { RIG_MAX_TASKS = 256, RIG_MAX_UNITS = 8 };

struct rig {
    struct arena arena;
    struct unit units[RIG_MAX_UNITS];
    struct plan plan;
    struct layout layout;
    struct body_table bodies;
    struct program program;
    struct program_builder build;
    int64_t task_ns[RIG_MAX_TASKS], last_ns[RIG_MAX_TASKS];
    struct prices prices;
    struct engine *engine;
};

void rig_init(struct rig *rig, int64_t host_launch_ns, int64_t host_all_gather_ns,
              uint32_t contention_permille);
void rig_release(struct rig *rig);

/* A task of one kernel; collectives are on COMM_SHARD unless the test says otherwise. last_ns is 0 unless set in the rig. */
struct task *rig_launch(struct rig *rig, enum stream stream, enum task_kind kind, uint16_t unit,
                        int64_t task_ns);
/* stream goes on when what is on of so far is done. */
void rig_after(struct rig *rig, enum stream stream, enum stream of);
void rig_host_wait(struct rig *rig, uint32_t event);

/* Run on the rig's engine. */
enum status rig_run(struct rig *rig, uint32_t steps, const struct placement *placement,
                    struct err *err);

/* "100 … 150": start and end of the i-th launched task. Static buffer. */
const char *rig_span(const struct rig *rig, uint32_t i);

#endif
