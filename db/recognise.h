/*
 * Whose file is this? Asked before SQLite may write, lock or repair anything. Private to db/.
 */
#ifndef DB_RECOGNISE_H
#define DB_RECOGNISE_H

#include "db/connection.h"

/*
 * STATUS_DB for a file that is not SQLite's, belongs to another program or has a newer schema, and
 * for what is no file. A missing or empty file is new: fine to write, an error to read.
 */
enum status recognise_file(const struct connection *connection, const char *path,
                           enum connection_mode mode, struct err *err);

/* STATUS_DB with what to do, for a schema that is not the newest. */
enum status recognise_version(const struct connection *connection, int64_t version,
                              struct err *err);
/* STATUS_DB where the id is not ours. */
enum status recognise_owner(const struct connection *connection, int64_t application_id,
                            struct err *err);

#endif
