/*
 * Options to a job; see run_job.h.
 */
#include "src/cli/run_job.h"

#include <string.h>

#include "src/hash.h"

/* ---- what cannot be run ---------------------------------------------------------------------- */

/* One rank has nobody to meet, and nothing to save. */
static enum status refuse_emulation(const struct options *options, struct err *err)
{
    static const enum option_id others[] = {OPTION_RANKS, OPTION_TRANSPORT, OPTION_RENDEZVOUS,
                                            OPTION_SAVE,  OPTION_RESUME,    OPTION_SLOW_COMM};

    if (!option_given(options, OPTION_EMULATE_RANKS))
        return STATUS_OK;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (option_given(options, others[i]))
            return err_set(
                err, STATUS_USAGE,
                "--emulate-ranks runs one rank alone, and what it computes means nothing; "
                "leave out --%s",
                option_table[others[i]].name);
    return STATUS_OK;
}

enum status run_refuse(const struct options *options, struct err *err)
{
    const struct device_ops *device;
    enum status status =
        device_find((enum device)option_number(options, OPTION_DEVICE), &device, err);

    if (status == STATUS_OK)
        status = device->probe(err);
    if (status != STATUS_OK)
        return status;
    status = refuse_emulation(options, err);
    if (status != STATUS_OK)
        return status;
    if (option_given(options, OPTION_GRAPH) && !device->replay)
        return err_set(err, STATUS_USAGE,
                       "--graph: device %s has no graphs; leave it out, or take --device cuda",
                       device->name);
    if (option_given(options, OPTION_GRAPH) && option_given(options, OPTION_HOST_PACE))
        return err_set(
            err, STATUS_USAGE,
            "--host-pace holds launches back, and a step that is replayed has none; leave "
            "out --graph");
    if (option_number(options, OPTION_SYSTEM) == SYSTEM_FSDP1)
        return err_set(err, STATUS_USAGE,
                       "fsdp1 is simulated only: record_stream ties its memory to time, so that "
                       "nothing has an address before the run");
    if (option_number(options, OPTION_OPS) != OPS_NATIVE)
        return err_set(err, STATUS_USAGE,
                       "what PyTorch launches cannot be run here; leave --ops native");
    if (option_number(options, OPTION_WARMUP) >= option_number(options, OPTION_STEPS))
        return err_set(err, STATUS_USAGE, "--warmup %llu leaves none of --steps %llu to measure",
                       (unsigned long long)option_number(options, OPTION_WARMUP),
                       (unsigned long long)option_number(options, OPTION_STEPS));
    return STATUS_OK;
}

static double real_or(const struct options *options, enum option_id id, double otherwise)
{
    return option_given(options, id) ? options->values[id].real : otherwise;
}

static struct optimizer_options optimizer_from(const struct options *options)
{
    return (struct optimizer_options){.adamw = option_number(options, OPTION_OPTIMIZER) ==
                                               OPTIMIZER_ADAMW,
                                      .lr = real_or(options, OPTION_LR, 1e-3),
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .eps = 1e-8,
                                      .weight_decay = 0.1};
}

/* What changes numbers and is in no program. */
static uint64_t settings_hash(const struct run_asked *asked)
{
    const struct run_job *job = &asked->job;
    const double reals[] = {job->optimizer.lr,  job->optimizer.beta1,        job->optimizer.beta2,
                            job->optimizer.eps, job->optimizer.weight_decay, (double)job->max_norm};
    uint64_t hash = hash_add(job->steps, asked->real.seed);

    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        uint64_t bits;
        memcpy(&bits, &reals[i], sizeof bits);
        hash = hash_add(hash, bits);
    }
    return hash_add(hash_add(hash, job->optimizer.adamw), job->graph);
}

/* ---- where a run begins and what it leaves --------------------------------------------------- */

static enum status make_values(void *context, uint32_t rank, struct values *out, struct err *err)
{
    struct run_asked *asked = context;

    (void)err;
    asked->seeded =
        (struct seeded_values){.plan = asked->plan, .seed = asked->real.seed, .rank = rank};
    asked->resumed = (struct resumed_values){.resume = asked->from, .seeded = asked->seeded};
    *out = asked->from ? values_resumed(&asked->resumed) : values_seeded(&asked->seeded);
    return STATUS_OK;
}

static enum status save_rank(void *context, uint32_t rank, struct executor *executor,
                             struct err *err)
{
    const struct run_asked *asked = context;
    return checkpoint_write_rank(asked->to, rank, executor, err);
}

static enum status open_resume(const struct options *options, struct run_asked *out,
                               struct err *err)
{
    const char *dir = option_text(options, OPTION_RESUME);
    enum status status;

    if (!dir)
        return STATUS_OK;
    if (option_given(options, OPTION_SEED))
        return err_set(err, STATUS_USAGE,
                       "--resume goes on with the seed of the checkpoint; leave out --seed");
    status = resume_open(dir, out->plan, out->job.optimizer.adamw, &out->from, err);
    if (status == STATUS_OK)
        out->real.seed = resume_state(out->from)->seed;
    return status;
}

static enum status create_checkpoint(const struct options *options, bool creates,
                                     struct run_asked *out, struct err *err)
{
    const char *dir = option_text(options, OPTION_SAVE);
    struct checkpoint_setup setup = {.dir = dir, .program = out->job.program};

    if (!dir)
        return STATUS_OK;
    setup.state = out->from ? *resume_state(out->from)
                            : (struct checkpoint_state){.seed = out->real.seed,
                                                        .adamw = out->job.optimizer.adamw};
    checkpoint_state_advance(&setup.state, out->plan, out->job.steps);
    out->to = checkpoint_new(&setup);
    out->job.at_end = save_rank;
    return creates ? checkpoint_create(out->to, err) : STATUS_OK;
}

enum status run_asked_commit(struct run_asked *asked, struct err *err)
{
    return asked->to ? checkpoint_commit(asked->to, err) : STATUS_OK;
}

void run_asked_release(struct run_asked *asked)
{
    checkpoint_free(asked->to);
    resume_free(asked->from);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const char *transport_of(const struct options *options, const struct prepared *prepared,
                                const struct world *world)
{
    if (option_given(options, OPTION_EMULATE_RANKS))
        return "emulated";
    if (world->is_launched)
        return world->transport->name;
    return prepared->plan.world > 1 ? shm_transport_ops.name : "none";
}

const int64_t *run_pace(const struct options *options, const struct program *program,
                        const struct prices *prices, struct arena *arena)
{
    int64_t *task_ns;

    if (!option_given(options, OPTION_HOST_PACE))
        return NULL;
    const struct host_costs costs = host_costs_of(prices, program->plan);
    task_ns = arena_array(arena, int64_t, program->n_task + 1);
    for (uint32_t t = 0; t < program->n_task; t++) {
        const struct task *task = &program->tasks[t];
        task_ns[t] = costs.task_ns[task->kind] + costs.kernel_ns[task->kind] * task->kernels;
    }
    return task_ns;
}

const int64_t *run_emulation(const struct options *options, const struct prices *prices)
{
    return option_given(options, OPTION_EMULATE_RANKS) ? prices->task_ns : NULL;
}

/* The first step behind the warm-up has stamps, the second has none. */
static uint32_t bare_from(const struct options *options)
{
    const bool alternates = option_number(options, OPTION_STAMPS) == STAMPS_ALTERNATE;
    return alternates ? (uint32_t)option_number(options, OPTION_WARMUP) : 0;
}

int64_t run_timeout_ns(const struct options *options)
{
    const uint64_t timeout_s = option_number(options, OPTION_TIMEOUT);
    return (int64_t)(timeout_s > 0 ? timeout_s : 1000000000) * 1000000000;
}

enum status run_asked_make(const struct options *options, const struct prepared *prepared,
                           const struct placement *placement, const struct world *world,
                           struct run_asked *out, struct err *err)
{
    const struct device_ops *device = NULL;
    enum status status;

    *out = (struct run_asked){.plan = &prepared->plan,
                              .real = {.device = option_text(options, OPTION_DEVICE),
                                       .transport = transport_of(options, prepared, world),
                                       .emulated = option_given(options, OPTION_EMULATE_RANKS),
                                       .seed = option_number(options, OPTION_SEED),
                                       .warmup = option_number(options, OPTION_WARMUP)}};
    status = run_debug_parse(option_text(options, OPTION_DEBUG), &out->debug, err);
    if (status == STATUS_OK)
        status = device_find((enum device)option_number(options, OPTION_DEVICE), &device, err);
    if (status != STATUS_OK)
        return status;
    out->job =
        (struct run_job){.program = &prepared->program,
                         .placement = placement,
                         .device = device,
                         .ranks = out->real.emulated ? 1 : (uint32_t)prepared->plan.world,
                         .steps = (uint32_t)option_number(options, OPTION_STEPS),
                         .optimizer = optimizer_from(options),
                         .max_norm = (float)real_or(options, OPTION_CLIP, 0),
                         .timeout_ns = run_timeout_ns(options),
                         .bare_from = bare_from(options),
                         .graph = option_given(options, OPTION_GRAPH),
                         .debug = {.poison = out->debug.poison,
                                   .jitter_seed = out->debug.jitter_seed,
                                   .slow_comm = option_given(options, OPTION_SLOW_COMM),
                                   .slow_bytes_per_s = real_or(options, OPTION_SLOW_COMM, 0) * 1e9},
                         .alloc_bias_bytes = out->debug.alloc_bias_bytes,
                         .die_rank = out->debug.die_rank,
                         .hang_rank = out->debug.hang_rank,
                         .context = out,
                         .values = make_values};
    status = open_resume(options, out, err);
    if (status == STATUS_OK)
        status = create_checkpoint(options, world->rank == 0, out, err);
    out->job.settings_hash = settings_hash(out);
    return status;
}
