/*
 * Programs made by hand for tests of the engine; see engine_rig.h.
 */
#include "tests/engine_rig.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/exec.h"

void rig_init(struct rig *rig, int64_t host_launch_ns, int64_t host_all_gather_ns,
              uint32_t contention_permille)
{
    static const char *const names[RIG_MAX_UNITS] = {"u0", "u1", "u2", "u3",
                                                     "u4", "u5", "u6", "u7"};

    memset(rig, 0, sizeof *rig);
    arena_init(&rig->arena);
    for (uint32_t u = 0; u < RIG_MAX_UNITS; u++)
        rig->units[u].name = names[u];
    rig->plan.units = rig->units;
    rig->plan.n_unit = RIG_MAX_UNITS;
    rig->plan.world = rig->plan.shard_ranks = rig->plan.gpus_per_node = 2;
    rig->plan.options.accum = 1;
    rig->prices = (struct prices){
        .task_ns = rig->task_ns,
        .last_ns = rig->last_ns,
        .host_launch_ns = host_launch_ns,
        .host_all_gather_ns = host_all_gather_ns,
        .contention_permille = contention_permille,
    };
    program_builder_init(&rig->build, &rig->plan, &rig->layout, &rig->bodies, &rig->arena,
                         &rig->program);
    rig->engine = engine_new(&rig->prices, &rig->arena);
}

void rig_release(struct rig *rig)
{
    arena_release(&rig->arena);
}

struct task *rig_launch(struct rig *rig, enum stream stream, enum task_kind kind, uint16_t unit,
                        int64_t task_ns)
{
    assert(rig->program.n_task < RIG_MAX_TASKS);
    rig->task_ns[rig->program.n_task] = task_ns;
    struct task *task = build_launch(&rig->build, kind, stream, unit);
    if (task_kind_is_collective(kind))
        task->comm = COMM_SHARD;
    return task;
}

void rig_after(struct rig *rig, enum stream stream, enum stream of)
{
    build_wait(&rig->build, stream, build_record(&rig->build, of));
}

void rig_host_wait(struct rig *rig, uint32_t event)
{
    build_host_wait(&rig->build, event);
}

enum status rig_run(struct rig *rig, uint32_t steps, const struct placement *placement,
                    struct err *err)
{
    return exec_program(&rig->program, EXEC_UNIT, placement, steps, &engine_backend, rig->engine,
                        err);
}

const char *rig_span(const struct rig *rig, uint32_t i)
{
    static char text[64];
    uint32_t n;
    const struct span *spans = engine_spans(rig->engine, &n);

    if (i >= n)
        return NULL;
    snprintf(text, sizeof text, "%lld … %lld", (long long)spans[i].start_ns,
             (long long)spans[i].end_ns);
    return text;
}
