/*
 * Placement of one small program, worked out by hand; random programs are in place_random.c.
 *
 * MiB, on stream C unless noted. Init: shard 64. Each step:
 *
 *     event 0   forward begins
 *     event 1   a   30   unit 0
 *     event 2   b   12   unit 1
 *     event 3   a dies
 *     event 4   g   40   unit 1, stream RS
 *     event 5   b dies
 *     event 6   z   0
 *     event 7   backward begins
 *     event 8   c   25   unit 0          here 64 + 40 + 25 = 129 are allocated, the most
 *     then      g, c and z die
 */
#include "src/place.h"
#include "src/program_builder.h"
#include "tests/tap.h"

#define MIB (UINT64_C(1) << 20)

enum { EVENT_A = 1, EVENT_B = 2, EVENT_G = 4, EVENT_C = 8 };

static struct unit units[2] = {{.name = "u0"}, {.name = "u1"}};
static struct segment segments[1];
static const struct plan plan = {
    .options = {.accum = 1},
    .world = 2, .shard_ranks = 2,
    .units = units,
    .segments = segments,
    .n_unit = 2,
    .n_segment = 1,
};
static const struct layout layout;
static const struct body_table bodies;

struct ids {
    uint32_t a, b, g, z, c; /* expanded */
};

static uint32_t born(struct program_builder *build, enum buffer_role role, enum stream pool,
                     uint16_t unit, uint64_t mib)
{
    uint32_t buffer = build_buffer(build, role, pool, unit, mib * MIB);
    build_alloc(build, buffer, 0);
    return buffer;
}

static void build_step(struct program_builder *build, enum section_id section, struct ids *ids)
{
    build_section_begin(build, section);
    build_mark(build, PHASE_FORWARD, false);
    uint32_t a = born(build, ROLE_HIDDEN, STREAM_C, 0, 30);
    uint32_t b = born(build, ROLE_HIDDEN, STREAM_C, 1, 12);
    build_free(build, a, 0);
    uint32_t g = born(build, ROLE_REDUCE_IN, STREAM_RS, 1, 40);
    build_free(build, b, 0);
    uint32_t z = born(build, ROLE_FULL, STREAM_C, 1, 0);
    build_mark(build, PHASE_BACKWARD, false);
    uint32_t c = born(build, ROLE_D_HIDDEN, STREAM_C, 0, 25);
    build_free(build, g, 0);
    build_free(build, c, 0);
    build_free(build, z, 0);
    build_section_end(build);

    const struct buffer *buffers = build->program->buffers;
    *ids = (struct ids){buffers[a].expanded, buffers[b].expanded, buffers[g].expanded,
                        buffers[z].expanded, buffers[c].expanded};
}

struct rig {
    struct arena arena;
    struct program program;
    struct placement placement;
    uint32_t shard;
    struct ids first, steady;
};

static void rig_init(struct rig *rig, bool expandable, uint64_t capacity_mib)
{
    struct alloc_config config = alloc_config_default();
    struct program_builder build;

    *rig = (struct rig){0};
    arena_init(&rig->arena);
    program_builder_init(&build, &plan, &layout, &bodies, &rig->arena, &rig->program);
    build_section_begin(&build, SECTION_INIT);
    uint32_t shard = born(&build, ROLE_SHARD, STREAM_C, 0, 64);
    rig->program.buffers[shard].scope = SCOPE_RUN;
    rig->shard = rig->program.buffers[shard].expanded;
    build_section_end(&build);
    build_step(&build, SECTION_FIRST, &rig->first);
    build_step(&build, SECTION_STEADY, &rig->steady);

    config.expandable = expandable;
    config.capacity_bytes = capacity_mib > 0 ? capacity_mib * MIB : ALLOC_UNLIMITED;
    place_program(&rig->program, &config, &rig->arena, &rig->placement);
}

static void is_at(const struct rig *rig, uint32_t step, uint32_t id, uint32_t segment,
                  uint64_t offset_mib, const char *name)
{
    const struct place *place = placement_place(&rig->placement, step, id);
    ok(place && place->segment == segment && place->offset == offset_mib * MIB,
       "step %u: %s lies in segment %u at %u MiB", step, name, segment, (unsigned)offset_mib);
}

struct want_op {
    uint32_t event;
    enum segment_act act;
    uint32_t segment;
    uint64_t offset_mib, mib; /* mib 0: a range of addresses, whose size is not the point */
};

static void has_ops(const struct rig *rig, uint32_t step, const struct want_op *want, uint32_t n)
{
    static const char *const acts[] = {"reserve", "map", "unmap", "release"};
    const struct place_step *got = placement_step(&rig->placement, step);
    if (!is_int(got->n_op, n, "step %u: driver operations", step))
        return;
    for (uint32_t i = 0; i < n; i++) {
        const struct placed_op *op = &got->ops[i];
        ok(op->event == want[i].event && op->op.act == want[i].act &&
               op->op.segment == want[i].segment && op->op.offset == want[i].offset_mib * MIB &&
               (want[i].mib == 0 || op->op.bytes == want[i].mib * MIB),
           "step %u: before event %u, %s in segment %u", step, want[i].event, acts[want[i].act],
           want[i].segment);
    }
}

static void test_caching(void)
{
    static const struct want_op init[] = {{0, SEGMENT_RESERVE, 0, 0, 64}};
    static const struct want_op first[] = {
        {EVENT_A, SEGMENT_RESERVE, 1, 0, 30},
        {EVENT_B, SEGMENT_RESERVE, 2, 0, 12},
        {EVENT_G, SEGMENT_RESERVE, 3, 0, 40},
    };
    struct rig rig;

    rig_init(&rig, false, 0);
    has_ops(&rig, 0, init, 1);
    has_ops(&rig, 1, first, 3);
    is_at(&rig, 1, rig.first.a, 1, 0, "a");
    is_at(&rig, 1, rig.first.b, 2, 0, "b");
    is_at(&rig, 1, rig.first.g, 3, 0, "g");
    is_at(&rig, 1, rig.first.c, 1, 0, "c, which fits where a was,");
    for (uint32_t step = 2; step <= 5; step++) {
        has_ops(&rig, step, NULL, 0);
        is_at(&rig, step, rig.steady.a, 1, 0, "a");
        is_at(&rig, step, rig.steady.g, 3, 0, "g");
        is_at(&rig, step, rig.shard, 0, 0, "the shard");
    }
    is_int(placement_place(&rig.placement, 2, rig.steady.z)->segment, UINT32_MAX,
           "what has no bytes has no place");
    is_int(rig.placement.period, 1, "every steady step is as the first");
    is_int(rig.placement.n_step, 3, "and the third step is there all the same");
    arena_release(&rig.arena);
}

static void test_peak(void)
{
    struct rig rig;
    rig_init(&rig, false, 0);
    const struct place_step *init = placement_step(&rig.placement, 0);
    const struct place_step *step = placement_step(&rig.placement, 3);

    is_int(init->stats.peak_allocated, 64 * MIB, "init holds the shard");
    is_int(init->peak_phase, PHASE_INIT, "init's peak is in init");
    is_int(step->stats.peak_allocated, 129 * MIB, "the peak of a step");
    is_int(step->stats.peak_reserved, 146 * MIB, "what is reserved then");
    is_int(step->stats.allocated, 64 * MIB, "what is left at its end");
    is_int(step->peak_phase, PHASE_BACKWARD, "the phase of the peak");
    is_int(step->peak_unit, 0, "the unit whose buffer made the peak");
    is_int(step->stats.peak_by_class[CLASS_SHARDED_PARAM], 64 * MIB, "the shard's share of it");
    is_int(step->stats.peak_by_class[CLASS_REDUCE_BUFFER], 40 * MIB, "g's");
    is_int(step->stats.peak_by_class[CLASS_TEMPORARY], 25 * MIB, "c's");
    is_int(step->stats.peak_by_class[CLASS_ACTIVATION], 0, "a and b were gone");
    arena_release(&rig.arena);
}

/* Pages of 20 MiB; a and b extend the range, c lies in the hole that they leave. */
static void test_expandable(void)
{
    static const struct want_op init[] = {
        {0, SEGMENT_RESERVE, 0, 0, 0},
        {0, SEGMENT_MAP, 0, 0, 80},
    };
    static const struct want_op first[] = {
        {EVENT_A, SEGMENT_MAP, 0, 80, 20},
        {EVENT_B, SEGMENT_MAP, 0, 100, 20},
        {EVENT_G, SEGMENT_RESERVE, 1, 0, 0},
        {EVENT_G, SEGMENT_MAP, 1, 0, 40},
    };
    struct rig rig;

    rig_init(&rig, true, 0);
    has_ops(&rig, 0, init, 2);
    has_ops(&rig, 1, first, 4);
    has_ops(&rig, 2, NULL, 0);
    is_at(&rig, 3, rig.shard, 0, 0, "the shard");
    is_at(&rig, 3, rig.steady.a, 0, 64, "a");
    is_at(&rig, 3, rig.steady.b, 0, 94, "b");
    is_at(&rig, 3, rig.steady.g, 1, 0, "g");
    is_at(&rig, 3, rig.steady.c, 0, 64, "c");
    is_int(placement_step(&rig.placement, 3)->stats.peak_reserved, 160 * MIB, "pages in all");
    arena_release(&rig.arena);
}

/*
 * 140 MiB: g finds room only once the segment of a is given back, and c once that of b is. The next
 * step then begins with two segments, of c and g, that do not fit a. It repeats all the same.
 */
static void test_retries(void)
{
    static const struct want_op first[] = {
        {EVENT_A, SEGMENT_RESERVE, 1, 0, 30}, {EVENT_B, SEGMENT_RESERVE, 2, 0, 12},
        {EVENT_G, SEGMENT_RELEASE, 1, 0, 30}, {EVENT_G, SEGMENT_RESERVE, 1, 0, 40},
        {EVENT_C, SEGMENT_RELEASE, 2, 0, 12}, {EVENT_C, SEGMENT_RESERVE, 2, 0, 26},
    };
    static const struct want_op steady[] = {
        {EVENT_A, SEGMENT_RELEASE, 2, 0, 26}, {EVENT_A, SEGMENT_RELEASE, 1, 0, 40},
        {EVENT_A, SEGMENT_RESERVE, 1, 0, 30}, {EVENT_B, SEGMENT_RESERVE, 2, 0, 12},
        {EVENT_G, SEGMENT_RELEASE, 1, 0, 30}, {EVENT_G, SEGMENT_RESERVE, 1, 0, 40},
        {EVENT_C, SEGMENT_RELEASE, 2, 0, 12}, {EVENT_C, SEGMENT_RESERVE, 2, 0, 26},
    };
    struct rig rig;

    rig_init(&rig, false, 140);
    has_ops(&rig, 1, first, 6);
    has_ops(&rig, 2, steady, 8);
    has_ops(&rig, 9, steady, 8);
    is_int(placement_step(&rig.placement, 1)->stats.retries, 2, "retries of the first step");
    is_int(placement_step(&rig.placement, 3)->stats.retries, 3, "retries of each later one");
    const struct alloc_stats *stats = &placement_step(&rig.placement, 3)->stats;
    uint64_t pools = 0;
    for (int pool = 0; pool < ALLOC_MAX_POOLS; pool++)
        pools += stats->peak_reserved_by_pool[pool];
    is_int(stats->peak_reserved, 130 * MIB, "the most reserved");
    is_int(pools, 130 * MIB, "which its pools had then");
    is_int(rig.placement.period, 1, "giving back and taking again repeats");
    arena_release(&rig.arena);
}

static void test_out_of_memory(void)
{
    struct rig rig;

    rig_init(&rig, false, 100);
    ok(rig.placement.out_of_memory, "100 MiB are not enough");
    is_int(rig.placement.oom_step, 1, "in the first step");
    is_int(rig.placement.oom_event, EVENT_B, "at b");
    is_int(rig.placement.oom_bytes, 12 * MIB, "which asks for this");
    is_int(rig.placement.n_step, 0, "that step does not count");
    ok(placement_step(&rig.placement, 0) && !placement_step(&rig.placement, 1),
       "init is placed and the step is not");
    arena_release(&rig.arena);

    rig_init(&rig, true, 60);
    ok(rig.placement.out_of_memory && rig.placement.oom_step == 0 &&
           rig.placement.oom_bytes == 64 * MIB,
       "60 MiB are not enough for init");
    ok(!placement_step(&rig.placement, 0), "then init is not placed");
    arena_release(&rig.arena);
}

static void test_hash(void)
{
    struct rig one, again, other;
    rig_init(&one, false, 0);
    rig_init(&again, false, 0);
    rig_init(&other, true, 0);
    ok(placement_hash(&one.placement) == placement_hash(&again.placement),
       "the same program has the same hash");
    ok(placement_hash(&one.placement) != placement_hash(&other.placement),
       "other addresses have another");
    arena_release(&one.arena);
    arena_release(&again.arena);
    arena_release(&other.arena);
}

int main(void)
{
    test_caching();
    test_peak();
    test_expandable();
    test_retries();
    test_out_of_memory();
    test_hash();
    return tap_done();
}
