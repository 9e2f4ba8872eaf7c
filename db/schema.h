/*
 * The steps that lead from an empty file to the newest schema. Private to db/.
 *
 * Step i brings schema i to i + 1, in one transaction with its number. A step that was released is
 * never changed.
 */
#ifndef DB_SCHEMA_H
#define DB_SCHEMA_H

#include "db/connection.h"

extern const int schema_version; /* the newest: what user_version says */

/*
 * STATUS_DB where the file, as a transaction sees it, is not ours, has no runs, another schema than
 * the newest, or lacks a table or view of it.
 */
enum status schema_check(struct connection *connection, struct err *err);
/* Up to the newest, in a file that is empty or ours and not newer; does not write where it is. */
enum status schema_migrate(struct connection *connection, struct err *err);

#endif
