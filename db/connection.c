/*
 * What every use of the database shares: the settings of a connection, waiting for others, and
 * messages.
 *
 * A file is recognised (db/recognise.c) before SQLite may touch it. WAL is set once, on a file that
 * has its schema; a connection that only reads never changes the mode.
 */
#include "db/connection.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/recognise.h"
#include "db/schema.h"
#include "src/text.h"

/* Opening reads nothing: the file is locked, and repaired where it must be, by the first question. */
static const char first_read[] = "SELECT count(*) FROM sqlite_schema";

int64_t connection_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Short naps, unlike in several processes: a writer that stores run after run leaves small gaps. */
static void nap(int n)
{
    const long us = 500 + (long)((unsigned)(getpid() + n) * 2654435761u >> 22);
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int wait_for_others(void *self, int n)
{
    struct connection *connection = self;
    if (n == 0)
        connection->wait_began_ms = connection_clock_ms();
    if (connection_clock_ms() - connection->wait_began_ms >= DB_BUSY_MS)
        return 0;
    nap(n);
    return 1;
}

static const char *advice(int code)
{
    switch (code) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
        return "see that the disk has room and works, or give another file with --db";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return "make the file and its folder writable, or give another file with --db";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another program is writing to it; try again, or give another file with --db";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return "move the file away, or give another one with --db";
    default:
        return "give another file with --db";
    }
}

enum status connection_fail(const struct connection *connection, const char *what, struct err *err)
{
    return err_set(err, STATUS_DB, "cannot %s '%s': %s: %s", what, connection->shown,
                   sqlite3_errmsg(connection->db), advice(sqlite3_errcode(connection->db) & 0xff));
}

enum status connection_exec(struct connection *connection, const char *sql, const char *what,
                            struct err *err)
{
    if (sqlite3_exec(connection->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return connection_fail(connection, what, err);
    return STATUS_OK;
}

enum status connection_int(struct connection *connection, const char *sql, int64_t *out,
                           struct err *err)
{
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;
    if (sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    else
        status = connection_fail(connection, "read", err);
    sqlite3_finalize(statement);
    return status;
}

/*
 * SQLite does not wait where two processes change the mode of a new file at the same time, so that
 * the wait is here. On a file system without shared memory the mode stays as it was, which is
 * slower, not less safe.
 */
static enum status use_wal(struct connection *connection, struct err *err)
{
    static const char *const sql =
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON";
    const int64_t end_ms = connection_clock_ms() + DB_BUSY_MS;
    int code = sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
    for (int n = 0; (code & 0xff) == SQLITE_BUSY && connection_clock_ms() < end_ms; n++) {
        nap(n);
        code = sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
    }
    if (code != SQLITE_OK)
        return connection_fail(connection, "open", err);
    return STATUS_OK;
}

static enum status open_file(struct connection *connection, const char *name, int flags,
                             struct err *err)
{
    if (sqlite3_open_v2(name, &connection->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return connection_fail(connection, "open", err);
    sqlite3_extended_result_codes(connection->db, 1);
    sqlite3_busy_handler(connection->db, wait_for_others, connection);
    return STATUS_OK;
}

static enum status open_write(struct connection *connection, struct err *err)
{
    if (sqlite3_db_readonly(connection->db, "main"))
        return err_set(err, STATUS_DB, "cannot write '%s': the file is read-only: %s",
                       connection->shown, advice(SQLITE_READONLY));
    enum status status = schema_migrate(connection, err);
    if (status == STATUS_OK)
        status = use_wal(connection, err);
    return status;
}

/* What a process that died in a transaction has left is taken back, as SQLite does it. */
static enum status repair(struct connection *connection, const char *path, struct err *err)
{
    connection_close(connection);
    enum status status = open_file(connection, path, SQLITE_OPEN_READWRITE, err);
    if (status == STATUS_OK)
        status = connection_exec(connection, first_read, "repair", err);
    connection_close(connection);
    return status == STATUS_OK ? open_file(connection, path, SQLITE_OPEN_READONLY, err) : status;
}

/* A log or journal without which the file is not whole. */
static bool needs_other_files(const struct connection *connection)
{
    const char *name = sqlite3_db_filename(connection->db, "main");
    struct stat info;
    return !name || (stat(sqlite3_filename_wal(name), &info) == 0 && info.st_size > 0) ||
           (stat(sqlite3_filename_journal(name), &info) == 0 && info.st_size > 0);
}

/* An absolute path needs an empty host; what has a meaning in a URI is written in hexadecimal. */
static enum status open_unchanging(struct connection *connection, const char *path, struct err *err)
{
    struct text uri;
    text_init(&uri);
    text_add(&uri, "%s", *path == '/' ? "file://" : "file:");
    for (; *path; path++)
        text_add(&uri, strchr("%?#", *path) ? "%%%02X" : "%c", (unsigned char)*path);
    text_add(&uri, "?immutable=1");
    connection_close(connection);
    const enum status status =
        open_file(connection, uri.at, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
    text_release(&uri);
    return status;
}

/*
 * A read-only connection cannot take back what a writer that died has left, nor read a WAL file in
 * a folder where no file can be made, as a copy on a medium that cannot be written is. The latter
 * is read without locks, which is only right where no log is beside it: nobody is writing then.
 */
static enum status open_read(struct connection *connection, const char *path, struct err *err)
{
    enum status status = STATUS_OK;
    const int code = sqlite3_exec(connection->db, first_read, NULL, NULL, NULL);
    const int kind = code & 0xff;
    if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY)
        status = repair(connection, path, err);
    else if ((kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY) && !needs_other_files(connection))
        status = open_unchanging(connection, path, err);
    else if (code != SQLITE_OK)
        status = connection_fail(connection, "read", err);
    if (status == STATUS_OK)
        status = connection_exec(connection, "PRAGMA query_only = ON", "read", err);
    return status == STATUS_OK ? schema_check(connection, err) : status;
}

enum status connection_open(struct connection *connection, const char *path,
                            enum connection_mode mode, struct err *err)
{
    const bool write = mode == CONNECTION_WRITE;
    const int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    const size_t length = strlen(path);
    const bool cut = length > DB_SHOWN_CHARS;

    *connection = (struct connection){0};
    snprintf(connection->shown, sizeof(connection->shown), "%s%s", cut ? "..." : "",
             cut ? path + length - DB_SHOWN_CHARS : path);
    enum status status = recognise_path(connection, path, mode, err);
    if (status == STATUS_OK)
        status = open_file(connection, path, flags, err);
    if (status == STATUS_OK)
        status = recognise_header(connection, err);
    if (status != STATUS_OK)
        return status;
    return write ? open_write(connection, err) : open_read(connection, path, err);
}

void connection_close(struct connection *connection)
{
    sqlite3_close(connection->db);
    connection->db = NULL;
}
