/*
 * Plans that a search has judged into their table, in one transaction.
 *
 * A row needs nothing of other tables, so that a hundred thousand of them take no longer than what
 * they are made of.
 */
#include "db/statement.h"
#include "db/store_inner.h"

static const char what[] = "store candidates in";

static enum status check_numbers(uint64_t group, const struct store_candidate *candidates,
                                 uint32_t n, struct err *err)
{
    uint64_t all = group;

    for (uint32_t i = 0; i < n; i++)
        all |= candidates[i].peak_bytes | candidates[i].reserved_bytes;
    if (all > INT64_MAX)
        return err_set(err, STATUS_DB, "cannot store candidates: a number is past 2^63 - 1");
    return STATUS_OK;
}

static enum status find_search(struct connection *connection, uint64_t group, int64_t *out,
                               struct err *err)
{
    sqlite3_stmt *last = NULL;
    bool row;
    enum status status = statement_prepare(
        connection, "SELECT ifnull(max(search), 0) + 1 FROM candidate WHERE plan_group = ?1", &last,
        err);

    if (status == STATUS_OK) {
        BIND_INTS(last, 1, (int64_t)group);
        status = statement_next(connection, last, &row, err);
    }
    if (status == STATUS_OK)
        *out = sqlite3_column_int64(last, 0);
    sqlite3_finalize(last);
    return status;
}

static enum status put(struct connection *connection, sqlite3_stmt *insert,
                       const struct store_candidate *candidate, struct err *err)
{
    BIND_INTS(insert, 3, candidate->rank, candidate->step_ns, (int64_t)candidate->peak_bytes,
              (int64_t)candidate->reserved_bytes, candidate->fits, candidate->on_front);
    statement_bind_text(insert, 9, candidate->units);
    statement_bind_text(insert, 10, candidate->options);
    return statement_run(connection, insert, err);
}

/* Within the transaction. */
static enum status put_all(struct connection *connection, uint64_t group,
                           const struct store_candidate *candidates, uint32_t n, struct err *err)
{
    static const char sql[] =
        "INSERT INTO candidate (plan_group, search, rank, step_ns, peak_bytes, reserved_bytes, "
        "fits,"
        " on_front, units, options) VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, 0), ?7, ?8, ?9, ?10)";
    sqlite3_stmt *insert = NULL;
    int64_t search = 0;
    enum status status = find_search(connection, group, &search, err);

    if (status == STATUS_OK)
        status = statement_prepare(connection, sql, &insert, err);
    if (status == STATUS_OK)
        BIND_INTS(insert, 1, (int64_t)group, search);
    for (uint32_t i = 0; i < n && status == STATUS_OK; i++)
        status = put(connection, insert, &candidates[i], err);
    sqlite3_finalize(insert);
    return status;
}

enum status store_put_candidates(struct store *store, uint64_t group,
                                 const struct store_candidate *candidates, uint32_t n,
                                 struct err *err)
{
    struct connection *connection = &store->connection;
    enum status status = check_numbers(group, candidates, n, err);

    if (status == STATUS_OK)
        status = connection_exec(connection, "BEGIN IMMEDIATE", what, err);
    if (status != STATUS_OK)
        return status;
    status = put_all(connection, group, candidates, n, err);
    if (status == STATUS_OK)
        status = connection_exec(connection, "COMMIT", what, err);
    if (status != STATUS_OK)
        sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
