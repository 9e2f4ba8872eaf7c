/*
 * Packing on the device bit by bit: random bytes into poison, against the host's loop over the same
 * table, gaps between slots included; uniform and mixed units, even and ragged ranks, both reduce
 * dtypes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/device_part.h"

enum { POISON = 0xa5 };

static void fill_random(uint8_t *out, uint64_t bytes, uint64_t state)
{
    for (uint64_t at = 0; at < bytes; at += sizeof state) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t bits = state ^ state >> 33;
        memcpy(out + at, &bits, bytes - at < sizeof bits ? bytes - at : sizeof bits);
    }
}

/* Memory of both sides on the host, and the table. */
struct trial {
    struct device_packing packing;
    uint8_t *from, *want, *got;
    struct arena arena;
};

static uint8_t *room(uint64_t bytes)
{
    uint8_t *at = malloc(bytes);
    if (!at)
        err_out_of_memory(bytes);
    return at;
}

static void trial_make(const struct device_unit *unit, enum device_move move, enum dtype reduce,
                       struct trial *out)
{
    arena_init(&out->arena);
    device_unit_pack(unit, move, reduce, &out->arena, &out->packing);
    out->from = room(out->packing.from_bytes);
    out->want = room(out->packing.to_bytes);
    out->got = room(out->packing.to_bytes);
    fill_random(out->from, out->packing.from_bytes, unit->ranks + out->packing.to_bytes);
    memset(out->want, POISON, out->packing.to_bytes);
    host_pack(&out->packing.table, out->from, out->want);
}

static void trial_release(struct trial *trial)
{
    free(trial->from);
    free(trial->want);
    free(trial->got);
    arena_release(&trial->arena);
}

static enum status run_there(struct timed_device *timed, const struct trial *trial, struct err *err)
{
    const struct device_packing *packing = &trial->packing;
    void *from = NULL, *to = NULL;
    enum status status = timed_take(timed, packing->from_bytes, &from, err);

    if (status == STATUS_OK)
        status = timed_take(timed, packing->to_bytes, &to, err);
    if (status == STATUS_OK)
        status = timed_put(timed, from, trial->from, packing->from_bytes, err);
    const struct work poison = {.kind = WORK_FILL,
                                .is.fill = {.to = to, .bytes = packing->to_bytes, .value = POISON}};
    if (status == STATUS_OK)
        status = timed_do(timed, &poison, err);
    const struct work_pack pack = {&packing->table, from, to};
    struct work work = {.kind = WORK_PACK, .n = 1, .is.packs = &pack};
    if (status == STATUS_OK)
        status = timed->ops->prepare(timed->self, &work, err);
    if (status == STATUS_OK)
        status = timed_do(timed, &work, err);
    if (status == STATUS_OK)
        status = timed_get(timed, trial->got, to, packing->to_bytes, err);
    timed_reset(timed);
    return status;
}

static uint64_t differ(const uint8_t *a, const uint8_t *b, uint64_t bytes)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < bytes; i++)
        n += a[i] != b[i];
    return n;
}

static enum status check(struct device_part_run *run, const struct device_unit *unit,
                         enum device_move move, enum dtype reduce, struct err *err)
{
    static const char *const moves[] = {
        [MOVE_IN] = "copy-in", [MOVE_OUT] = "copy-out", [MOVE_PACK] = "gradients"};
    char key[64], words[128];
    struct trial trial;

    trial_make(unit, move, reduce, &trial);
    const enum status status = run_there(&run->timed, &trial, err);
    if (status == STATUS_OK) {
        snprintf(key, sizeof key, "%s_%s_%s_%u", moves[move], unit->name, dtype_name(reduce),
                 unit->ranks);
        snprintf(words, sizeof words, "bytes that differ: %s, %s%s%s, %u ranks", moves[move],
                 unit->name, move == MOVE_PACK ? " to " : "",
                 move == MOVE_PACK ? dtype_name(reduce) : "", unit->ranks);
        device_faults(run, key, words, differ(trial.got, trial.want, trial.packing.to_bytes));
    }
    trial_release(&trial);
    return status;
}

enum status device_part_packing(struct device_part_run *run, struct err *err)
{
    static const struct {
        uint8_t move, reduce;
    } cases[] = {{MOVE_PACK, DTYPE_FP32},
                 {MOVE_PACK, DTYPE_BF16},
                 {MOVE_IN, DTYPE_FP32},
                 {MOVE_OUT, DTYPE_FP32}};
    static const uint32_t ranks[] = {8, 7};
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < 4 * 2 * 2 && status == STATUS_OK; i++) {
        const struct device_unit unit =
            device_unit_block(run->scale.shrink, ranks[i / 2 % 2], i % 2, &run->arena);
        status = check(run, &unit, (enum device_move)cases[i / 4].move,
                       (enum dtype)cases[i / 4].reduce, err);
    }
    return status;
}
