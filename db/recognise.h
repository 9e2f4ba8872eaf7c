/*
 * Whose file is this? Private to db/.
 *
 * Asked in two steps: what is certainly not ours is refused by its first bytes, before SQLite may
 * lock or repair anything; the rest is decided on the connection, as its transaction sees the file.
 */
#ifndef DB_RECOGNISE_H
#define DB_RECOGNISE_H

#include "db/connection.h"

/*
 * STATUS_DB for what is no file. A missing or empty file is new: fine to write, an error to read.
 */
enum status recognise_path(const struct connection *connection, const char *path,
                           enum connection_mode mode, struct err *err);

/*
 * Of an open connection that has done nothing yet: STATUS_DB for a file that is not SQLite's,
 * belongs to another program or has a newer schema.
 */
enum status recognise_header(const struct connection *connection, struct err *err);

/* STATUS_DB with what to do, for a schema that is not the newest. */
enum status recognise_version(const struct connection *connection, int64_t version,
                              struct err *err);
/* STATUS_DB where the id is not ours. */
enum status recognise_owner(const struct connection *connection, int64_t application_id,
                            struct err *err);
/* STATUS_DB for a file that has no run yet. */
enum status recognise_empty(const struct connection *connection, struct err *err);

#endif
