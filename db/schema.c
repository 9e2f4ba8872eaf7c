/*
 * The schema's steps and how they are taken.
 *
 * Each step is one transaction with its number in user_version, so that a process that dies leaves
 * the schema before or after it. Several processes may meet in a new file: who holds the write lock
 * looks again before it acts.
 */
#include "db/schema.h"

#include <inttypes.h>
#include <stdio.h>

#include "db/recognise.h"
#include "db/statement.h"

static const char *const steps[] = {
#include "db/schema.inc"
    ,
#include "db/schema_2.inc"
    ,
#include "db/schema_3.inc"
    ,
#include "db/schema_4.inc"
    ,
#include "db/schema_5.inc"
    ,
#include "db/schema_6.inc"
    ,
#include "db/schema_7.inc"
};
const int schema_version = (int)(sizeof(steps) / sizeof(steps[0]));

static enum status set_numbers(struct connection *connection, int64_t version, struct err *err)
{
    char sql[120];
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %" PRId64,
             (int)DB_APPLICATION_ID, version);
    return connection_exec(connection, sql, "write", err);
}

static enum status fail_damaged(const struct connection *connection, const char *kind,
                                const char *name, struct err *err)
{
    return err_set(err, STATUS_DB,
                   "'%s' is damaged: it lacks its %s '%s': move the file away, or give another one"
                   " with --db",
                   connection->shown, kind, name);
}

/* STATUS_DB for the first table, index or view of the steps in model that connection lacks. */
static enum status compare(struct connection *connection, struct connection *model, struct err *err)
{
    static const char find[] = "SELECT 1 FROM sqlite_schema WHERE type = ?1 AND name = ?2";
    sqlite3_stmt *each = NULL, *same = NULL;
    bool more = true, found = true;
    enum status status =
        statement_prepare(model, "SELECT type, name FROM sqlite_schema", &each, err);
    if (status == STATUS_OK)
        status = statement_prepare(connection, find, &same, err);
    while (status == STATUS_OK && more) {
        status = statement_next(model, each, &more, err);
        if (status != STATUS_OK || !more)
            break;
        const char *type = (const char *)sqlite3_column_text(each, 0);
        const char *name = (const char *)sqlite3_column_text(each, 1);
        statement_bind_text(same, 1, type);
        statement_bind_text(same, 2, name);
        status = statement_next(connection, same, &found, err);
        if (status == STATUS_OK && !found)
            status = fail_damaged(connection, type, name, err);
        sqlite3_reset(same);
    }
    sqlite3_finalize(each);
    sqlite3_finalize(same);
    return status;
}

/* The steps are taken in memory, so that what a schema has is said once. */
static enum status check_complete(struct connection *connection, struct err *err)
{
    struct connection model = {.shown = "memory"};
    enum status status = STATUS_OK;
    if (sqlite3_open_v2(":memory:", &model.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        status = connection_fail(&model, "open", err);
    for (int i = 0; i < schema_version && status == STATUS_OK; i++)
        status = connection_exec(&model, steps[i], "write", err);
    if (status == STATUS_OK)
        status = compare(connection, &model, err);
    connection_close(&model);
    return status;
}

/* Within a transaction. Version 0 is a file that has nothing; it may have been empty before. */
static enum status look(struct connection *connection, int64_t *version, struct err *err)
{
    int64_t application_id = 0, n_thing = 0;
    enum status status = connection_int(connection, "PRAGMA application_id", &application_id, err);
    if (status == STATUS_OK)
        status = connection_int(connection, "PRAGMA user_version", version, err);
    if (status == STATUS_OK)
        status = connection_int(connection, "SELECT count(*) FROM sqlite_schema", &n_thing, err);
    if (status != STATUS_OK || (application_id == 0 && *version == 0 && n_thing == 0))
        return status;
    status = recognise_owner(connection, application_id, err);
    if (status == STATUS_OK && *version == 0)
        status = fail_damaged(connection, "schema number", "user_version", err);
    else if (status == STATUS_OK && (*version < 0 || *version > schema_version))
        status = recognise_version(connection, *version, err);
    else if (status == STATUS_OK && *version == schema_version)
        status = check_complete(connection, err);
    return status;
}

static enum status look_once(struct connection *connection, int64_t *version, struct err *err)
{
    enum status status = connection_exec(connection, "BEGIN", "read", err);
    if (status != STATUS_OK)
        return status;
    status = look(connection, version, err);
    sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

enum status schema_check(struct connection *connection, struct err *err)
{
    int64_t version = 0;
    const enum status status = look_once(connection, &version, err);
    if (status != STATUS_OK || version == schema_version)
        return status;
    return version == 0 ? recognise_empty(connection, err)
                        : recognise_version(connection, version, err);
}

/* Within a transaction: the version may have changed while the lock was waited for. */
static enum status take_next_step(struct connection *connection, int64_t *version, struct err *err)
{
    enum status status = look(connection, version, err);
    if (status != STATUS_OK || *version == schema_version)
        return status;
    status = connection_exec(connection, steps[*version], "write", err);
    if (status == STATUS_OK)
        status = set_numbers(connection, *version + 1, err);
    if (status == STATUS_OK)
        ++*version;
    return status;
}

enum status schema_migrate(struct connection *connection, struct err *err)
{
    int64_t version = 0;
    enum status status = look_once(connection, &version, err);
    while (status == STATUS_OK && version < schema_version) {
        status = connection_exec(connection, "BEGIN IMMEDIATE", "write", err);
        if (status != STATUS_OK)
            return status;
        status = take_next_step(connection, &version, err);
        if (status == STATUS_OK)
            status = connection_exec(connection, "COMMIT", "write", err);
        if (status != STATUS_OK)
            sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}
