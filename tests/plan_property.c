/*
 * What holds for every plan: 2,000 random models under random options.
 *
 * Each program is safe; a step ends with the bytes it began with; built twice, and built from the
 * options with every default filled in, it has one hash; and simulated it takes no less than its
 * longest path, its busiest stream and its busiest communicator.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/engine.h"
#include "src/exec.h"
#include "src/summary.h"
#include "src/verify.h"
#include "tests/make.h"
#include "tests/slow_path.h"
#include "tests/tap.h"

enum { N_PLANS = 2000, STEPS = 2 };

static const char *const families[] = {"llama", "mpt", "gpt2"};

/* What has been drawn, so that the properties are known to have been asked of it. */
static struct {
    unsigned mixed, frozen, alone, replicas, accumulated, meshes, exact;
} met;

struct drawn {
    const char *family;
    struct dims dims;
    struct plan_options options;
};

static void draw_family(uint64_t *state, struct drawn *drawn)
{
    drawn->family = families[tap_below(state, sizeof families / sizeof *families)];
    if (!strcmp(drawn->family, "llama"))
        return;
    if (drawn->options.ops == OPS_NATIVE) /* not mpt's */
        drawn->family = "gpt2";
    drawn->dims.kv_heads = drawn->dims.heads;
    drawn->dims.bias = drawn->family[0] == 'g' || tap_below(state, 2);
    drawn->dims.tied = drawn->family[0] == 'g' || tap_below(state, 2);
    drawn->dims.positions = drawn->options.seq + tap_below(state, 50);
    drawn->options.norm = NORM_FUSED;
    if (drawn->dims.tied)
        drawn->options.output_dtype = DTYPE_N; /* the last block goes into the embedding's unit */
}

/* Names of parameters of all families, and nothing that a second mesh cannot be combined with. */
static void draw_meshes(uint64_t *state, struct plan_options *options)
{
    static const char *const second[] = {NULL, "*.0.*", "*proj*", "*weight"};

    if (options->policy.behavior == BEHAVIOR_TORCH_2_11 || options->replicas > 1 ||
        options->reshard == RESHARD_RANKS || options->separate_reduce_comm || options->clip ||
        options->scaler)
        return;
    options->policy.second_mesh = second[tap_below(state, sizeof second / sizeof *second)];
}

/* Names of parameters of all families; nothing that a behavior refuses. */
static void draw_policy(uint64_t *state, struct drawn *drawn)
{
    static const char *const frozen[] = {NULL, NULL, NULL, "*.0.*", "*weight", "*"};
    struct plan_options *options = &drawn->options;
    const enum behavior behavior = options->policy.behavior;

    options->policy.freeze = frozen[tap_below(state, sizeof frozen / sizeof *frozen)];
    options->zero_unused = tap_below(state, 4) == 0;
    if (behavior == BEHAVIOR_TORCH_2_11 || options->policy.storage != DTYPE_FP32)
        return;
    options->policy.keep_fp32 = tap_below(state, 2) ? "*.0.*" : NULL;
    if (eligible_arrange(behavior, ARRANGE_PRECAST) == NULL && tap_below(state, 3) == 0)
        options->arrange = ARRANGE_PRECAST;
}

static struct drawn draw(uint64_t seed)
{
    uint64_t state = seed;
    struct drawn drawn = {.dims = make_random_dims(&state)};

    drawn.options = make_random_options(&state, &drawn.dims);
    draw_family(&state, &drawn);
    draw_policy(&state, &drawn);
    draw_meshes(&state, &drawn.options);
    return drawn;
}

static void note_met(const struct plan_options *options)
{
    met.mixed += options->policy.keep_fp32 != NULL;
    met.frozen += options->policy.freeze != NULL;
    met.meshes += options->policy.second_mesh != NULL;
    met.alone += options->gpus == options->replicas;
    met.replicas += options->replicas > 1;
    met.accumulated += options->accum > 1 && options->sync == MICROBATCH_LAST;
}

static bool is_safe(struct made *made)
{
    struct fault fault;
    struct err err = {0};

    if (verify_program(&made->program, &made->arena, &fault, &err) == STATUS_OK)
        return true;
    tap_note("%s", err.text);
    return false;
}

static bool keeps_its_bytes(const struct program *program)
{
    struct summary summary;

    summary_of(program, &summary);
    return summary.end_bytes[SECTION_FIRST] == summary.end_bytes[SECTION_STEADY];
}

static bool has_hash(const struct drawn *drawn, const struct plan_options *options, uint64_t hash)
{
    struct made again;

    make_init_family(&again, drawn->family, &drawn->dims, options);
    const bool same = program_hash(&again.program) == hash;
    make_release(&again);
    return same;
}

/* A divisor by default is the number of ranks; with replicas it is told to NCCL in other words. */
static bool has_one_hash(const struct drawn *drawn, const struct made *made)
{
    const uint64_t hash = program_hash(&made->program);
    struct plan_options filled = made->plan.options;

    if (filled.divide_factor == 0 && filled.replicas == 1)
        filled.divide_factor = (double)filled.gpus;
    return has_hash(drawn, &drawn->options, hash) && has_hash(drawn, &filled, hash);
}

/* Prices of the toy cluster; contention and the host's ways are drawn. */
static struct prices draw_prices(uint64_t *state, struct made *made)
{
    struct cluster cluster;
    struct prices prices;
    struct err err = {0};

    if (cluster_open("toy", &made->arena, &cluster, &err) != STATUS_OK ||
        cost_price(&cluster, SPREAD_MID, &made->program, &made->arena, &prices, &err) != STATUS_OK)
        tap_bail(err.text);
    prices.contention_permille = tap_below(state, 2) ? 300 : 0;
    prices.host_launch_ns = (int64_t)tap_below(state, 60);
    prices.host_all_gather_ns = tap_below(state, 2) ? 700 : 0;
    return prices;
}

static bool takes_its_time(uint64_t *state, struct made *made)
{
    const struct prices prices = draw_prices(state, made);
    struct engine *engine = engine_new(&prices, &made->arena);
    struct slow_path path;
    struct err err = {0};
    int64_t end_ns = 0;

    if (exec_program(&made->program, EXEC_UNIT, NULL, STEPS, &engine_backend, engine, &err) !=
        STATUS_OK)
        tap_bail(err.text);
    for (uint32_t step = 0; step <= STEPS; step++)
        if (engine_step_end_ns(engine, step) > end_ns)
            end_ns = engine_step_end_ns(engine, step);
    slow_path_of(&made->program, &prices, STEPS, &path);
    const bool exact = prices.contention_permille == 0 && path.n_comm <= 1;
    met.exact += exact;
    if (end_ns >= path.longest_ns && end_ns >= path.busiest_stream_ns &&
        end_ns >= path.busiest_comm_ns && (!exact || end_ns == path.longest_ns))
        return true;
    tap_note("%lld ns, longest path %lld, busiest stream %lld, communicator %lld",
             (long long)end_ns, (long long)path.longest_ns, (long long)path.busiest_stream_ns,
             (long long)path.busiest_comm_ns);
    return false;
}

static void note_case(const char *what, uint64_t seed, const struct drawn *drawn)
{
    tap_note("%s: UNSHARD_SEED=%" PRIu64 ", %s in units %s on %" PRIu64 " GPUs", what, seed,
             drawn->family, drawn->options.units, drawn->options.gpus);
}

struct failures {
    unsigned safe, bytes, hash, time;
};

static void try_plan(uint64_t seed, struct failures *failures)
{
    const struct drawn drawn = draw(seed);
    struct made made;
    uint64_t state = seed;
    make_init_family(&made, drawn.family, &drawn.dims, &drawn.options);
    note_met(&drawn.options);
    const struct {
        const char *what;
        bool good;
        unsigned *failed;
    } properties[] = {
        {"safe", is_safe(&made), &failures->safe},
        {"bytes", keeps_its_bytes(&made.program), &failures->bytes},
        {"hash", has_one_hash(&drawn, &made), &failures->hash},
        {"time", takes_its_time(&state, &made), &failures->time},
    };
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        *properties[i].failed += !properties[i].good;
        if (!properties[i].good)
            note_case(properties[i].what, seed, &drawn);
    }
    make_release(&made);
}

int main(void)
{
    const uint64_t seed = tap_seed(20261130);
    struct failures failures = {0};

    for (uint32_t i = 0; i < N_PLANS; i++)
        try_plan(seed + i, &failures);
    is_int(failures.safe, 0, "programs of %d random models and plans are safe", N_PLANS);
    is_int(failures.bytes, 0, "their steady steps end with the bytes they began with");
    is_int(failures.hash, 0, "built again, and with defaults filled in, they have the same hash");
    is_int(failures.time, 0,
           "none is faster than its longest path, busiest stream and "
           "communicator; where nothing contends they take the path exactly");
    ok(met.mixed > 100 && met.frozen > 100 && met.alone > 100 && met.replicas > 100 &&
           met.accumulated > 100 && met.meshes > 100 && met.exact > 100,
       "of each kind there are over a hundred");
    return tap_done();
}
