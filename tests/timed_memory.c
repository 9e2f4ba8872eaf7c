/*
 * Memory that is tied to time, by hand: when what was freed comes back.
 *
 * The host takes 10 ns a launch. A gather writes a of 32 MiB in AG's pool from 10 to 110 ns, a
 * forward on C reads it until C is done with it; a is freed at 20 ns and recorded on C. Then the
 * host allocates b and, n launches later, c, each of 32 MiB in the same pool: which of them are given
 * a's memory says how far the virtual clock has come.
 */
#include "sim/simulate.h"
#include "tests/engine_rig.h"
#include "tests/tap.h"

#define MIB (UINT64_C(1) << 20)

static uint32_t born(struct rig *rig, enum buffer_role role)
{
    const uint32_t buffer = build_buffer(&rig->build, role, STREAM_AG, 0, 32 * MIB);
    build_alloc(&rig->build, buffer, 0);
    return buffer;
}

struct toy_step {
    int64_t forward_ns;
    int launches; /* between b and c */
    bool records, waits;
};

static void build_step(struct rig *rig, const struct toy_step *toy)
{
    const uint32_t a = born(rig, ROLE_FULL);

    rig_launch(rig, STREAM_AG, TASK_ALL_GATHER, 0, 100);
    rig_after(rig, STREAM_C, STREAM_AG);
    rig_launch(rig, STREAM_C, TASK_FORWARD, 0, toy->forward_ns);
    if (toy->records)
        build_record_stream(&rig->build, a, STREAM_C);
    build_free(&rig->build, a, 0);
    const uint32_t done = build_record(&rig->build, STREAM_C);
    const uint32_t b = born(rig, ROLE_FULL);
    for (int i = 0; i < toy->launches; i++)
        rig_launch(rig, STREAM_RS, TASK_POST_REDUCE, 0, 1);
    if (toy->waits)
        rig_host_wait(rig, done);
    const uint32_t c = born(rig, ROLE_FULL);
    build_free(&rig->build, b, 0);
    build_free(&rig->build, c, 0);
}

/* Reserved and active MiB of the first step, at their peaks. */
static void check(const char *name, const struct toy_step *toy, uint64_t capacity_mib,
                  uint64_t reserved, uint64_t active)
{
    struct alloc_config config = alloc_config_default();
    struct placement placement;
    struct step_time time;
    struct err err = {0};
    struct rig rig;

    rig_init(&rig, 10, 0, 0);
    for (int section = SECTION_FIRST; section <= SECTION_STEADY; section++) {
        build_section_begin(&rig.build, (enum section_id)section);
        build_step(&rig, toy);
        build_section_end(&rig.build);
    }
    if (capacity_mib > 0)
        config.capacity_bytes = capacity_mib * MIB;
    is_int(simulate_timed(&rig.program, &rig.prices, &config, &rig.arena, &time, &placement, NULL,
                          NULL, &err),
           STATUS_OK, "%s: runs", name);
    is_int(placement.steps[0].stats.peak_reserved / MIB, reserved, "%s: reserved", name);
    is_int(placement.steps[0].stats.peak_active / MIB, active, "%s: active", name);
    rig_release(&rig);
}

/* C is done at 110 + 200 = 310 ns; b is asked for at 20 ns, c at 20 + 10 n. */
static void test_deferred(void)
{
    const struct toy_step nobody = {.forward_ns = 200, .launches = 2};
    const struct toy_step early = {.forward_ns = 200, .launches = 28, .records = true};
    const struct toy_step late = {.forward_ns = 200, .launches = 29, .records = true};
    const struct toy_step waits = {.forward_ns = 200, .records = true, .waits = true};

    check("nothing recorded", &nobody, 0, 64, 64);
    check("c at 300 ns", &early, 0, 96, 96);
    check("c at 310 ns", &late, 0, 64, 64);
    check("the host waits for the forward", &waits, 0, 64, 64);
}

/* With room for two the request for c waits for all events, as the allocator's last resort. */
static void test_short_of_memory(void)
{
    const struct toy_step early = {.forward_ns = 200, .launches = 2, .records = true};
    struct alloc_config config = alloc_config_default();
    struct placement placement;
    struct step_time time;
    struct err err = {0};
    struct rig rig;

    check("room for two", &early, 64, 64, 64);
    rig_init(&rig, 10, 0, 0);
    build_section_begin(&rig.build, SECTION_FIRST);
    build_step(&rig, &early);
    build_section_end(&rig.build);
    config.capacity_bytes = 32 * MIB;
    is_int(simulate_timed(&rig.program, &rig.prices, &config, &rig.arena, &time, &placement, NULL,
                          NULL, &err),
           STATUS_RUN, "room for one is too little");
    ok(placement.out_of_memory && placement.oom_step == 1 && placement.oom_bytes == 32 * MIB,
       "it says where and for what");
    is_str(err.text, "out of memory in step 1: no room for another 33554432 bytes", "in words too");
    rig_release(&rig);
}

int main(void)
{
    test_deferred();
    test_short_of_memory();
    return tap_done();
}
