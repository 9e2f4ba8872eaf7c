/*
 * What a run of kind real has beside any other, back out of its tables.
 */
#include <math.h>

#include "db/get_rows.h"
#include "db/store_inner.h"

static enum status read_real(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    (void)i;
    (void)err;
    get->run->real = (struct run_real){
        .emulated = get->run->kind == RUN_EMULATED,
        .seed = get_u64(statement, 0),
        .warmup = get_u64(statement, 1),
        .device = get_text(get, statement, 2),
        .transport = get_text(get, statement, 3),
        .error = get_text_or_null(get, statement, 4),
    };
    return STATUS_OK;
}

static enum status read_step(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    const bool has_loss = sqlite3_column_type(statement, 3) != SQLITE_NULL;
    (void)err;
    get->run->real.steps[i] = (struct run_step){
        .step_ns = sqlite3_column_int64(statement, 0),
        .not_finite = get_u64(statement, 1),
        .skipped = sqlite3_column_int(statement, 2),
        .loss = has_loss ? sqlite3_column_double(statement, 3) : NAN,
    };
    return STATUS_OK;
}

static enum status read_rank(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    struct run_rank *rank = &get->run->real.ranks[i];
    (void)err;
    rank->step = get_u64(statement, 0);
    rank->error = get_text_or_null(get, statement, 1);
    for (int s = 0; s < STREAM_N; s++)
        rank->last_task[s] = get_text_or_null(get, statement, 2 + s);
    return STATUS_OK;
}

static enum status read_check(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    (void)err;
    get->run->real.checks[i] = (struct run_check){
        .rank = get_u64(statement, 0),
        .step = get_u64(statement, 1),
        .reserved_bytes = get_u64(statement, 2),
        .mapped_bytes = get_u64(statement, 3),
    };
    return STATUS_OK;
}

static enum status get_steps(struct get *get, struct err *err)
{
    struct run_real *real = &get->run->real;
    const enum status status = get_count(get, "real_step", &real->n_step, err);
    if (status != STATUS_OK)
        return status;
    real->steps = arena_array(get->arena, struct run_step, real->n_step);
    return get_rows(get,
                    "SELECT step_ns, not_finite, skipped, loss FROM real_step WHERE run_id = ?1"
                    " ORDER BY step",
                    1, &get->id, real->n_step, read_step, err);
}

static enum status get_ranks(struct get *get, struct err *err)
{
#define X(id, name) ", last_" name
    static const char *const sql =
        "SELECT step, error" STREAMS(X) " FROM real_rank WHERE run_id = ?1 ORDER BY rank";
#undef X
    struct run_real *real = &get->run->real;
    const enum status status = get_count(get, "real_rank", &real->n_rank, err);
    if (status != STATUS_OK)
        return status;
    real->ranks = arena_array(get->arena, struct run_rank, real->n_rank);
    return get_rows(get, sql, 1, &get->id, real->n_rank, read_rank, err);
}

static enum status get_checks(struct get *get, struct err *err)
{
    struct run_real *real = &get->run->real;
    const enum status status = get_count(get, "real_check", &real->n_check, err);
    if (status != STATUS_OK)
        return status;
    real->checks = arena_array(get->arena, struct run_check, real->n_check);
    return get_rows(get,
                    "SELECT rank, step, reserved_bytes, mapped_bytes FROM real_check"
                    " WHERE run_id = ?1 ORDER BY position",
                    1, &get->id, real->n_check, read_check, err);
}

enum status store_get_real(struct get *get, struct err *err)
{
    static const char *const sql =
        "SELECT seed, warmup, device, transport, error FROM real_run WHERE run_id = ?1";
    enum status (*const parts[])(struct get * get, struct err * err) = {get_steps, get_ranks,
                                                                        get_checks};
    if (!run_kind_has_run(get->run->kind))
        return STATUS_OK;
    enum status status = get_rows(get, sql, 1, &get->id, 1, read_real, err);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == STATUS_OK; i++)
        status = parts[i](get, err);
    return status;
}
