/*
 * What a run of kind real has beside any other, into its tables.
 *
 * Part of the transaction of db/store_put.c. Steps are numbered from 1 on: 0 is initialisation.
 */
#include "db/store_inner.h"

uint64_t store_real_numbers(const struct run_real *real)
{
    uint64_t all = real->seed | real->warmup;
    for (uint32_t i = 0; i < real->n_step; i++)
        all |= real->steps[i].not_finite;
    for (uint32_t i = 0; i < real->n_rank; i++)
        all |= real->ranks[i].step;
    for (uint32_t i = 0; i < real->n_check; i++)
        all |= real->checks[i].rank | real->checks[i].step | real->checks[i].reserved_bytes |
               real->checks[i].mapped_bytes;
    return all;
}

enum status store_put_real_run(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    const struct run_real *real = &put->run->real;
    if (!run_kind_has_run(put->run->kind))
        return STATUS_OK;
    BIND_INTS(statement, 1, put->run_id, (int64_t)real->seed, (int64_t)real->warmup);
    statement_bind_text(statement, 4, real->device);
    statement_bind_text(statement, 5, real->transport);
    statement_bind_text(statement, 6, real->error);
    return statement_run(put->connection, statement, err);
}

enum status store_put_real_steps(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    const struct run_real *real = &put->run->real;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < real->n_step && status == STATUS_OK; i++) {
        const struct run_step *step = &real->steps[i];
        BIND_INTS(statement, 1, put->run_id, i + 1, step->step_ns, (int64_t)step->not_finite,
                  step->skipped);
        sqlite3_bind_double(statement, 6, step->loss); /* NAN becomes NULL */
        status = statement_run(put->connection, statement, err);
    }
    return status;
}

enum status store_put_real_ranks(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    const struct run_real *real = &put->run->real;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < real->n_rank && status == STATUS_OK; i++) {
        const struct run_rank *rank = &real->ranks[i];
        BIND_INTS(statement, 1, put->run_id, i, (int64_t)rank->step);
        statement_bind_text(statement, 4, rank->error);
        for (int s = 0; s < STREAM_N; s++)
            statement_bind_text(statement, 5 + s, rank->last_task[s]);
        status = statement_run(put->connection, statement, err);
    }
    return status;
}

enum status store_put_real_checks(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    const struct run_real *real = &put->run->real;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < real->n_check && status == STATUS_OK; i++) {
        const struct run_check *check = &real->checks[i];
        BIND_INTS(statement, 1, put->run_id, i, (int64_t)check->rank, (int64_t)check->step,
                  (int64_t)check->reserved_bytes, (int64_t)check->mapped_bytes);
        status = statement_run(put->connection, statement, err);
    }
    return status;
}
