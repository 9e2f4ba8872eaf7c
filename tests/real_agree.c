/*
 * Ranks that were started differently do not begin: each finds that programs, placements or settings
 * are not the same, and says whose, before the first step.
 */
#include <stdio.h>
#include <string.h>

#include "gpu/ranks.h"
#include "tests/ranks_rig.h"
#include "tests/real_plans.h"
#include "tests/tap.h"

enum { RANKS = 3 };

static const struct real_plan plans[] = {{"as asked", "llama", "--gpus 3"},
                                         {"another", "llama", "--gpus 3 --prefetch 1"}};

/* What one rank is started with, in place of what the others are. */
struct odd_one {
    const char *name;
    uint32_t rank;
    bool program, placement, settings;
};
static const struct odd_one odd_ones[] = {
    {"another program", 2, true, false, false},
    {"another program", 0, true, false, false},
    {"another placement", 1, false, true, false},
    {"other settings of the run", 2, false, false, true},
    {NULL, 0, false, false, false},
};

struct shared {
    struct made made[2];
    struct placement placements[2]; /* of the first, by either allocator */
    struct placement other;         /* of the second */
    const struct odd_one *odd;
    struct shm_region *region;
    struct run_log *log;
};

static enum status seeded(void *context, uint32_t rank, struct values *out, struct err *err)
{
    static struct seeded_values values;

    (void)err;
    values =
        (struct seeded_values){.plan = &((struct shared *)context)->made[0].plan, .rank = rank};
    *out = values_seeded(&values);
    return STATUS_OK;
}

static int be_rank(uint32_t rank, void *context)
{
    struct shared *shared = context;
    const struct odd_one *odd = shared->odd;
    const bool is_odd = odd->name && rank == odd->rank;
    const bool other = is_odd && odd->program;
    struct shm_transport *transport = shm_transport_new(shared->region);
    struct err err = {0};
    const struct run_job job = {.program = &shared->made[other].program,
                                .placement = other ? &shared->other
                                                   : &shared->placements[is_odd && odd->placement],
                                .device = &host_device_ops,
                                .ranks = RANKS,
                                .steps = 2,
                                .settings_hash = is_odd && odd->settings,
                                .timeout_ns = 20000000000,
                                .die_rank = -1,
                                .hang_rank = -1,
                                .context = shared,
                                .values = seeded};
    const enum status status =
        run_rank(&job, rank, &shm_transport_ops, transport, shared->log, &err);

    shm_transport_free(transport);
    return (int)status;
}

/* Where the message names the rank that differs from rank 0 and nothing was begun. */
static uint32_t count_refused(const struct shared *shared)
{
    const uint32_t differs = shared->odd->rank > 0 ? shared->odd->rank : 1;
    char want[80];
    uint32_t n = 0;

    snprintf(want, sizeof want, "rank %u has %s than rank 0", differs, shared->odd->name);
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct rank_log *log = &shared->log->rank[r];
        const bool began = rank_log_time(shared->log, r, 0, 0)->launch_ns > 0;
        const bool good = log->ended && log->status == STATUS_RUN && !began &&
                          strncmp(log->err.text, want, strlen(want)) == 0;
        if (!good)
            tap_note("rank %u: %s", r, log->err.text);
        n += good;
    }
    return n;
}

static void check_odd(struct shared *shared, const struct odd_one *odd)
{
    struct err err = {0};
    int statuses[RANKS];

    shared->odd = odd;
    if (shm_region_new(RANKS, &shared->region, &err) != STATUS_OK ||
        run_log_new(RANKS, 2, shared->made[0].program.n_task, &shared->log, &err) != STATUS_OK)
        tap_bail(err.text);
    const uint32_t n_bad = ranks_run(RANKS, shared->region, be_rank, shared, statuses);
    if (odd->name) {
        is_int(count_refused(shared), RANKS, "rank %u has %s: all ranks refuse to begin", odd->rank,
               odd->name);
        is_int(n_bad, RANKS, "and fail");
    } else {
        is_int(n_bad, 0, "the same ranks, alike, run");
    }
    run_log_free(shared->log);
    shm_region_free(shared->region);
}

static void place(struct made *made, bool expandable, struct placement *out)
{
    struct alloc_config config = alloc_config_default();

    config.expandable = expandable;
    place_program(&made->program, &config, &made->arena, out);
}

int main(void)
{
    struct shared shared;

    for (int i = 0; i < 2; i++)
        real_plan_init(&shared.made[i], &plans[i]);
    place(&shared.made[0], false, &shared.placements[0]);
    place(&shared.made[0], true, &shared.placements[1]);
    place(&shared.made[1], false, &shared.other);
    for (size_t i = 0; i < sizeof odd_ones / sizeof *odd_ones; i++)
        check_odd(&shared, &odd_ones[i]);
    for (int i = 0; i < 2; i++)
        make_release(&shared.made[i]);
    return tap_done();
}
