/*
 * Recognising a file by the numbers in its header, without leaving a trace on it.
 *
 * Another process may be writing or may have died while it did, so that the file is only whole
 * together with its log and under a lock. All that holds without them is what the first bytes say
 * once they are there: step 1 of the schema writes the owner together with the first page, and
 * versions only grow. A header of zeros is a file that is being made. The bytes are read through
 * the connection's own descriptor: closing another one would lose the locks of this process.
 */
#include "db/recognise.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "db/schema.h"

enum { HEADER_BYTES = 100, HEADER_USER_VERSION = 60, HEADER_APPLICATION_ID = 68 };
static const char magic[16] = "SQLite format 3"; /* the zero at its end belongs to it */

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

enum status recognise_empty(const struct connection *connection, struct err *err)
{
    return err_set(err, STATUS_DB, "'%s' is empty: no run was stored yet", connection->shown);
}

/* A big-endian number of 32 bits with a sign. */
static int32_t number_at(const unsigned char *bytes)
{
    return (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
                     bytes[3]);
}

/* SQLite fills up with zeros what is not there. */
static int read_header(const struct connection *connection, unsigned char header[HEADER_BYTES])
{
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code == SQLITE_OK && file && file->pMethods)
        code = file->pMethods->xRead(file, header, HEADER_BYTES, 0);
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

enum status recognise_header(const struct connection *connection, struct err *err)
{
    static const unsigned char nothing[HEADER_BYTES];
    unsigned char header[HEADER_BYTES] = {0};
    if (read_header(connection, header) != SQLITE_OK)
        return err_set(err, STATUS_DB, "cannot read '%s': give another file with --db",
                       connection->shown);
    if (!memcmp(header, nothing, sizeof(header)))
        return STATUS_OK;
    if (memcmp(header, magic, sizeof(magic)) != 0)
        return err_set(err, STATUS_DB, "'%s' is not a database: give another file with --db",
                       connection->shown);
    const enum status status =
        recognise_owner(connection, number_at(header + HEADER_APPLICATION_ID), err);
    const int32_t version = number_at(header + HEADER_USER_VERSION);
    if (status != STATUS_OK || (version >= 0 && version <= schema_version))
        return status;
    return recognise_version(connection, version, err);
}

enum status recognise_path(const struct connection *connection, const char *path,
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
    return info.st_size > 0 || write ? STATUS_OK : recognise_empty(connection, err);
}
