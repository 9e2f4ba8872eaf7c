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

static const char *const steps[] = {
#include "db/schema.inc"
};
const int schema_version = (int)(sizeof(steps) / sizeof(steps[0]));

static enum status set_numbers(struct connection *connection, int64_t version, struct err *err)
{
    char sql[120];
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %" PRId64,
             (int)DB_APPLICATION_ID, version);
    return connection_exec(connection, sql, "write", err);
}

/* A file without any table may have been empty when it was looked at. */
static enum status check_owner(struct connection *connection, struct err *err)
{
    int64_t application_id = 0, n_thing = 0;
    enum status status = connection_int(connection, "PRAGMA application_id", &application_id, err);
    if (status == STATUS_OK && application_id == 0)
        status = connection_int(connection, "SELECT count(*) FROM sqlite_schema", &n_thing, err);
    if (status != STATUS_OK || (application_id == 0 && n_thing == 0))
        return status;
    return recognise_owner(connection, application_id, err);
}

/* Within a transaction: the version may have changed while the lock was waited for. */
static enum status take_next_step(struct connection *connection, struct err *err)
{
    int64_t version = 0;
    enum status status = check_owner(connection, err);
    if (status == STATUS_OK)
        status = connection_int(connection, "PRAGMA user_version", &version, err);
    if (status != STATUS_OK || version < 0 || version >= schema_version)
        return status;
    status = connection_exec(connection, steps[version], "write", err);
    if (status == STATUS_OK)
        status = set_numbers(connection, version + 1, err);
    return status;
}

enum status schema_migrate(struct connection *connection, struct err *err)
{
    int64_t version = 0;
    enum status status = connection_int(connection, "PRAGMA user_version", &version, err);
    while (status == STATUS_OK && version >= 0 && version < schema_version) {
        status = connection_exec(connection, "BEGIN IMMEDIATE", "write", err);
        if (status != STATUS_OK)
            return status;
        status = take_next_step(connection, err);
        if (status == STATUS_OK)
            status = connection_exec(connection, "COMMIT", "write", err);
        if (status != STATUS_OK)
            sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
        else
            status = connection_int(connection, "PRAGMA user_version", &version, err);
    }
    if (status == STATUS_OK && version != schema_version)
        status = recognise_version(connection, version, err);
    return status;
}
