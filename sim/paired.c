/*
 * Steps with one group of constants at an end, and what their differences say; see paired.h.
 *
 * No price is made here: each task takes the price that it has at that end already.
 */
#include "sim/paired.h"

#include <math.h>

const char *paired_group_name(enum paired_group group)
{
    static const char *const names[] = {
#define X(id, name) name,
        PAIRED_GROUPS(X)
#undef X
    };
    return names[group];
}

static enum paired_group group_of(const struct task *task)
{
    if (task->kind == TASK_FORWARD || task->kind == TASK_BACKWARD)
        return PAIRED_COMPUTE;
    return task->comm != COMM_NONE ? PAIRED_COMMUNICATION : PAIRED_COPIES;
}

static struct prices mixed(const struct program *program, const struct prices *mid,
                           const struct prices *end, enum paired_group group, struct arena *arena)
{
    struct prices out = *mid;
    int64_t *task_ns = arena_array(arena, int64_t, 2 * (size_t)program->n_task);
    int64_t *last_ns = task_ns + program->n_task;

    for (uint32_t t = 0; t < program->n_task; t++) {
        const struct prices *from = group_of(&program->tasks[t]) == group ? end : mid;
        task_ns[t] = from->task_ns[t];
        last_ns[t] = from->last_ns[t];
    }
    out.task_ns = task_ns;
    out.last_ns = last_ns;
    if (group == PAIRED_COMMUNICATION)
        out.contention_permille = end->contention_permille;
    if (group == PAIRED_HOST) {
        out.host_launch_ns = end->host_launch_ns;
        out.host_all_gather_ns = end->host_all_gather_ns;
    }
    return out;
}

/* Everything that it takes is gone behind it. */
static enum status step_of(const struct program *program, const struct prices *prices,
                           const struct placement *placement, struct arena *arena, int64_t *out,
                           struct err *err)
{
    struct step_time time;
    const enum status status = simulate(program, prices, placement, arena, &time, NULL, err);

    arena_reset(arena);
    if (status == STATUS_OK)
        *out = time.step_ns;
    return status;
}

enum status paired_simulate(const struct program *program, const struct prices prices[SPREAD_N],
                            const struct placement *placement, struct paired_shift *out,
                            struct err *err)
{
    static const enum spread ends[] = {[PAIRED_FAST] = SPREAD_LOW, [PAIRED_SLOW] = SPREAD_HIGH};
    const struct prices *mid = &prices[SPREAD_MID];
    struct paired_shift shift;
    struct arena arena;
    int64_t mid_ns, step_ns = 0;

    arena_init(&arena);
    enum status status = step_of(program, mid, placement, &arena, &mid_ns, err);
    for (int i = 0; i < PAIRED_GROUP_N * PAIRED_END_N && status == STATUS_OK; i++) {
        const int group = i / PAIRED_END_N, end = i % PAIRED_END_N;
        const struct prices other =
            mixed(program, mid, &prices[ends[end]], (enum paired_group)group, &arena);
        status = step_of(program, &other, placement, &arena, &step_ns, err);
        shift.ns[group][end] = step_ns - mid_ns;
    }
    arena_release(&arena);
    if (status == STATUS_OK)
        *out = shift;
    return status;
}

int64_t paired_uncertainty_ns(const struct paired_shift *a, const struct paired_shift *b)
{
    double sum = 0;

    for (int group = 0; group < PAIRED_GROUP_N; group++) {
        const double fast = (double)(a->ns[group][PAIRED_FAST] - b->ns[group][PAIRED_FAST]);
        const double slow = (double)(a->ns[group][PAIRED_SLOW] - b->ns[group][PAIRED_SLOW]);
        sum += fmax(fast * fast, slow * slow);
    }
    return (int64_t)ceil(sqrt(sum));
}

static int sign_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

bool paired_tie(const int64_t a_ns[SPREAD_N], const struct paired_shift *a,
                const int64_t b_ns[SPREAD_N], const struct paired_shift *b)
{
    const int64_t x = a_ns[SPREAD_MID], y = b_ns[SPREAD_MID];
    const int64_t apart = x < y ? y - x : x - y, faster = x < y ? x : y;
    const int sign = sign_of(x, y);

    for (unsigned spread = 0; spread < SPREAD_N; spread++)
        if (sign == 0 || sign_of(a_ns[spread], b_ns[spread]) != sign)
            return true;
    return (double)apart < PAIRED_LEAST_SHARE * (double)faster ||
           apart <= paired_uncertainty_ns(a, b);
}
