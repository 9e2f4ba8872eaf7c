/*
 * What tests of the run history share: a folder that goes away, and questions in SQL.
 */
#ifndef TESTS_STORE_RIG_H
#define TESTS_STORE_RIG_H

#include "db/query.h"
#include "db/store.h"

/* A path in a folder of this process that is removed with all in it at exit. Lives until then. */
const char *rig_path(const char *name);

/* Rows as lines, values parted by '|', names first; "error: ..." where it fails. To be freed. */
char *rig_query(const char *path, const char *sql);
/* The only value of a query; INT64_MIN where there is no such. */
int64_t rig_number(const char *path, const char *sql);

/* Ends the test where it cannot go on. */
struct store *rig_open(const char *path);
int64_t rig_put(struct store *store, const struct run *run);

/* Writes a big-endian number over four bytes of a file. */
void rig_patch(const char *path, long offset, uint32_t number);
enum { HEADER_USER_VERSION = 60, HEADER_APPLICATION_ID = 68 }; /* of a SQLite file */

/* integrity_check and foreign_key_check find nothing. */
bool rig_is_clean(const char *path);

#endif
