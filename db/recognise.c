/*
 * Recognising a file by the numbers in its header, without leaving a trace on it.
 *
 * The header is read through SQLite with immutable=1: no lock, no journal replayed, no file made
 * beside it; and, other than with a descriptor of our own, no lock lost that another connection of
 * this process holds. The write-ahead log is not seen so: the version is asked again once the file
 * is known to be ours.
 */
#include "db/recognise.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "db/schema.h"
#include "src/text.h"

enum status recognise_version(const struct connection *connection, int64_t version, struct err *err)
{
    if (version < 0 || version > schema_version)
        return err_set(err, STATUS_DB,
                       "'%s' is of a newer version of this program (schema %" PRId64
                       ", here %d): update, or give another file with --db",
                       connection->shown, version, schema_version);
    return err_set(err, STATUS_DB,
                   "'%s' has an older schema (%" PRId64
                   ", here %d): store a run in it, which brings it up to date",
                   connection->shown, version, schema_version);
}

enum status recognise_owner(const struct connection *connection, int64_t application_id,
                            struct err *err)
{
    if (application_id == DB_APPLICATION_ID)
        return STATUS_OK;
    return err_set(err, STATUS_DB,
                   "'%s' is a database of another program (application_id %" PRId64
                   "): give another file with --db",
                   connection->shown, application_id);
}

/* An absolute path needs an empty host; what has a meaning in a URI is written in hexadecimal. */
static void add_uri(struct text *uri, const char *path)
{
    text_add(uri, "%s", *path == '/' ? "file://" : "file:");
    for (; *path; path++)
        text_add(uri, strchr("%?#", *path) ? "%%%02X" : "%c", (unsigned char)*path);
    text_add(uri, "?immutable=1");
}

static enum status check_header(struct connection *probe, struct err *err)
{
    int64_t application_id = 0, version = 0;
    enum status status = connection_int(probe, "PRAGMA application_id", &application_id, err);
    if (status != STATUS_OK && sqlite3_errcode(probe->db) == SQLITE_NOTADB)
        return err_set(err, STATUS_DB, "'%s' is not a database: give another file with --db",
                       probe->shown);
    if (status == STATUS_OK)
        status = recognise_owner(probe, application_id, err);
    if (status == STATUS_OK)
        status = connection_int(probe, "PRAGMA user_version", &version, err);
    if (status == STATUS_OK && (version < 0 || version > schema_version))
        status = recognise_version(probe, version, err);
    return status;
}

static enum status look_into(const struct connection *connection, const char *path, struct err *err)
{
    struct connection probe = *connection;
    enum status status;
    struct text uri;
    text_init(&uri);
    add_uri(&uri, path);
    if (sqlite3_open_v2(uri.at, &probe.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) ==
        SQLITE_OK)
        status = check_header(&probe, err);
    else
        status = connection_fail(&probe, "open", err);
    connection_close(&probe);
    text_release(&uri);
    return status;
}

enum status recognise_file(const struct connection *connection, const char *path,
                           enum connection_mode mode, struct err *err)
{
    const bool write = mode == CONNECTION_WRITE;
    struct stat info;
    if (!*path || !strcmp(path, ":memory:")) /* to SQLite these are databases that nobody sees */
        return err_set(err, STATUS_DB, "cannot open '%s': not a file: give another with --db",
                       connection->shown);
    if (stat(path, &info)) {
        if (errno == ENOENT && write)
            return STATUS_OK;
        return err_set(err, STATUS_DB, "cannot open '%s': %s%s", connection->shown, strerror(errno),
                       errno == ENOENT ? ": no run was stored yet, or give another file with --db"
                                       : ": give another file with --db");
    }
    if (!S_ISREG(info.st_mode))
        return err_set(err, STATUS_DB, "cannot open '%s': not a file: give another with --db",
                       connection->shown);
    if (info.st_size > 0)
        return look_into(connection, path, err);
    if (write)
        return STATUS_OK;
    return err_set(err, STATUS_DB, "'%s' is empty: no run was stored yet", connection->shown);
}
