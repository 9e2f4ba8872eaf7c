/*
 * What runs share: texts, documents and task labels, each stored once. Private to db/.
 *
 * What was found or added is remembered, so that the database is asked once for each. Nothing that
 * is shared is ever deleted; a transaction that fails takes back what it added: then forget.
 */
#ifndef DB_SHARED_H
#define DB_SHARED_H

#include "db/statement.h"
#include "src/intern.h"
#include "src/run.h"

enum shared_kind { SHARED_STRING, SHARED_DOCUMENT, SHARED_LABEL, SHARED_N };

struct shared {
    struct connection *connection;
    struct arena arena;
    struct intern strings, labels;
    sqlite3_stmt *find[SHARED_N], *add[SHARED_N];
};

/* To be released also where it fails. */
enum status shared_open(struct shared *shared, struct connection *connection, struct err *err);
void shared_forget(struct shared *shared);
void shared_release(struct shared *shared);

enum status shared_string(struct shared *shared, const char *text, int64_t *id, struct err *err);
/* kind: "model", "plan" or "cluster". */
enum status shared_document(struct shared *shared, const char *kind, const char *name,
                            const char *json, int64_t *id, struct err *err);
enum status shared_label(struct shared *shared, const struct run_task *task, int64_t *id,
                         struct err *err);

#endif
