/*
 * Ranks without a device; see checkpoint_rig.h.
 */
#include "tests/checkpoint_rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/convert.h"
#include "tests/tap.h"

enum { PADDING = 0x7e }; /* 8.4e37 and the like */

float checkpoint_rig_value(uint32_t param, int which, uint64_t element)
{
    return (float)((element * 13 + param * 31 + (uint64_t)(which + 1) * 101) % 251);
}

float checkpoint_rig_updates(uint32_t param)
{
    return (float)(1000 + param);
}

/* ---- memory -------------------------------------------------------------------------------- */

struct rank_memory {
    const struct program *program;
    char **members; /* by expanded id */
};

static char *member_at(void *context, uint32_t buffer, uint32_t member)
{
    const struct rank_memory *memory = context;
    return memory->members[memory->program->buffers[buffer].expanded + member];
}

static void put(char *to, uint64_t i, enum dtype dtype, float value)
{
    const uint16_t half = dtype == DTYPE_BF16 ? f32_to_bf16(value) : f32_to_fp16(value);

    if (dtype == DTYPE_FP32)
        memcpy(to + i * sizeof value, &value, sizeof value);
    else
        memcpy(to + i * sizeof half, &half, sizeof half);
}

/* torch.chunk along the sharded dimension, each element by itself. */
static void fill_shard(const struct made *made, uint32_t id, int which, uint64_t rank, char *to)
{
    const struct param *param = &made->model.params[id];
    const struct param_policy *policy = &made->plan.policy[id];
    const uint64_t rows = param->shape[policy->shard_dim];
    const uint64_t chunk = (rows + made->plan.shard_ranks - 1) / made->plan.shard_ranks;
    uint64_t behind = 1;

    for (uint32_t d = policy->shard_dim + 1u; d < param->n_dim; d++)
        behind *= param->shape[d];
    for (uint64_t e = 0; e < param->numel; e++) {
        const uint64_t row = e / behind % rows, before = e / behind / rows;
        if (row / chunk == rank)
            put(to, (before * chunk + row % chunk) * behind + e % behind,
                (enum dtype)policy->storage, checkpoint_rig_value(id, which, e));
    }
}

static void fill_group(const struct made *made, uint64_t rank, const struct buffer *buffer,
                       char **members)
{
    const struct unit *unit = &made->plan.units[buffer->unit];
    uint32_t at = 0;

    for (uint32_t i = 0; i < unit->n_param; i++) {
        const uint32_t id = made->plan.unit_params[unit->param + i];
        const float updates = checkpoint_rig_updates(id);
        if (buffer->role == ROLE_SHARD) {
            fill_shard(made, id, -1, rank, members[at++]);
        } else if (checkpoint_is_updated(&made->plan, id)) {
            memcpy(members[at++], &updates, sizeof updates);
            fill_shard(made, id, 0, rank, members[at++]);
            fill_shard(made, id, 1, rank, members[at++]);
        }
    }
}

static void fill_ignored(const struct made *made, char *to)
{
    for (uint32_t id = 0; id < made->model.n_param; id++) {
        const enum dtype dtype = (enum dtype)made->plan.policy[id].storage;
        if (made->plan.policy[id].managed)
            continue;
        for (uint64_t e = 0; e < made->model.params[id].numel; e++)
            put(to, e, dtype, checkpoint_rig_value(id, -1, e));
        to += made->model.params[id].numel * dtype_bytes(dtype);
    }
}

static void fill_buffer(const struct made *made, uint32_t rank, const struct buffer *buffer,
                        char **members, struct arena *arena)
{
    for (uint32_t m = 0; m < buffer->n_member; m++) {
        const uint64_t bytes = buffer_member_bytes(&made->program, buffer, m);
        members[m] = arena_take(arena, bytes);
        memset(members[m], PADDING, bytes);
    }
    if (buffer->role == ROLE_IGNORED)
        fill_ignored(made, members[0]);
    else
        fill_group(made, rank % made->plan.shard_ranks, buffer, members);
}

static enum status read_at(void *context, void *to, const void *from, uint64_t bytes,
                           struct err *err)
{
    (void)context, (void)err;
    memcpy(to, from, bytes);
    return STATUS_OK;
}

struct checkpoint_memory checkpoint_rig_memory(const struct made *made, uint32_t rank,
                                               struct arena *arena)
{
    struct rank_memory *memory = arena_array(arena, struct rank_memory, 1);

    memory->program = &made->program;
    memory->members = arena_array(arena, char *, made->program.n_expanded + 1);
    for (uint32_t b = 0; b < made->program.n_buffer; b++) {
        const struct buffer *buffer = &made->program.buffers[b];
        if (buffer->role == ROLE_SHARD || buffer->role == ROLE_STATE ||
            buffer->role == ROLE_IGNORED)
            fill_buffer(made, rank, buffer, &memory->members[buffer->expanded], arena);
    }
    return (struct checkpoint_memory){.context = memory, .member = member_at, .read = read_at};
}

/* ---- a run's part -------------------------------------------------------------------------- */

enum status checkpoint_rig_save(const struct made *made, const char *dir,
                                const struct checkpoint_state *state, struct err *err)
{
    struct checkpoint *checkpoint = checkpoint_new(
        &(struct checkpoint_setup){.dir = dir, .program = &made->program, .state = *state});
    enum status status = checkpoint_create(checkpoint, err);
    struct arena arena;

    arena_init(&arena);
    for (uint32_t rank = (uint32_t)made->plan.world; rank-- > 0 && !status; arena_reset(&arena)) {
        struct checkpoint_memory memory = checkpoint_rig_memory(made, rank, &arena);
        memory.scaler = state->scaler;
        status = checkpoint_write_memory(checkpoint, rank, &memory, err);
    }
    if (!status)
        status = checkpoint_commit(checkpoint, err);
    checkpoint_free(checkpoint);
    arena_release(&arena);
    return status;
}

/* ---- what comes back ----------------------------------------------------------------------- */

static enum status ask(const struct values *values, uint32_t param, int which, uint64_t first,
                       uint64_t n, float *out)
{
    struct err err = {0};
    const enum status status =
        which < 0 ? values->param(values->context, param, first, n, out, &err)
                  : values->moment(values->context, param, (unsigned)which, first, n, out, &err);
    if (status)
        tap_note("%s", err.text);
    return status;
}

/* From one element to another, and nothing but that. */
static uint64_t wrong_range(const struct values *values, uint32_t param, int which, uint64_t first,
                            uint64_t n)
{
    float *out = calloc(n + 1, sizeof *out);
    uint64_t wrong = 0;

    if (!out)
        err_out_of_memory(n * sizeof *out);
    out[n] = -7;
    wrong += ask(values, param, which, first, n, out) != STATUS_OK;
    for (uint64_t i = 0; i < n; i++)
        wrong += out[i] != checkpoint_rig_value(param, which, first + i);
    wrong += out[n] != -7;
    free(out);
    return wrong;
}

uint64_t checkpoint_rig_wrong(const struct made *made, struct resume *resume, uint64_t *random)
{
    struct resumed_values context = {.resume = resume, .seeded = {.plan = &made->plan}};
    const struct values values = values_resumed(&context);
    uint64_t wrong = 0;

    for (uint32_t id = 0; id < made->model.n_param; id++) {
        const uint64_t numel = made->model.params[id].numel;
        const uint64_t first = tap_below(random, numel);
        const int last = values.moment && checkpoint_is_updated(&made->plan, id) ? MOMENTS : 0;
        for (int which = -1; which < last; which++) {
            wrong += wrong_range(&values, id, which, 0, numel);
            wrong += wrong_range(&values, id, which, first, 1 + tap_below(random, numel - first));
        }
        if (last > 0)
            wrong += values.updates(values.context, id) != checkpoint_rig_updates(id);
    }
    return wrong;
}

/* ---- folders ------------------------------------------------------------------------------- */

bool checkpoint_rig_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

void checkpoint_rig_remove(const char *dir)
{
    static const char *const names[] = {"parameters.safetensors", "optimizer.safetensors",
                                        "state.json"};
    struct arena arena;

    arena_init(&arena);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(arena_printf(&arena, "%s/%s", dir, names[i]));
    rmdir(dir);
    arena_release(&arena);
}
