/*
 * A connection to a run history: opened, recognised, migrated; and what its statements have in
 * common. Private to db/.
 *
 * Nothing is written to a file before it is known to be ours and of a schema that this program
 * knows. Every failure names the file, says SQLite's own words and what to do.
 */
#ifndef DB_CONNECTION_H
#define DB_CONNECTION_H

#include <sqlite3.h>
#include <stdint.h>

#include "src/err.h"

enum { DB_APPLICATION_ID = 0x756e7368 /* "unsh" */, DB_BUSY_MS = 30000, DB_SHOWN_CHARS = 200 };

struct connection {
    sqlite3 *db;
    int64_t wait_began_ms;          /* of the wait for another process that goes on */
    char shown[DB_SHOWN_CHARS + 8]; /* the path in messages: the end of a long one */
};

/* CONNECTION_WRITE creates and migrates; CONNECTION_READ refuses a file that does not exist. */
enum connection_mode { CONNECTION_READ, CONNECTION_WRITE };

/* To be closed also where it fails; must not move in between. For one thread at a time. */
enum status connection_open(struct connection *connection, const char *path,
                            enum connection_mode mode, struct err *err);
void connection_close(struct connection *connection);

/* "cannot WHAT 'PATH': SQLite's words: what to do", for the last error of the connection. */
enum status connection_fail(const struct connection *connection, const char *what, struct err *err);

/* Statements without a result; what: as connection_fail() takes it. */
enum status connection_exec(struct connection *connection, const char *sql, const char *what,
                            struct err *err);
/* The number in the first column of the first row; a statement without rows is a fault in here. */
enum status connection_int(struct connection *connection, const char *sql, int64_t *out,
                           struct err *err);
int64_t connection_clock_ms(void); /* never goes back */

#endif
