/*
 * The run history in SQLite: open, put, get.
 *
 * One file, WAL, one transaction a run, so that a run is whole or absent. Models, plans and clusters
 * are stored once by content. A file that is not ours, or of a newer schema, is refused before any
 * write. Nothing of sqlite3.h is visible here. Every failure is STATUS_DB and names the file.
 */
#ifndef DB_STORE_H
#define DB_STORE_H

#include "src/device_check.h"
#include "src/err.h"
#include "src/run.h"

struct store;

/* $XDG_DATA_HOME/unshard/runs.db, or ~/.local/share/unshard/runs.db; STATUS_USAGE without a home. */
enum status store_default_path(struct arena *arena, const char **out, struct err *err);

/* Create what is missing (the folder too), or migrate; then ready for put and get. */
enum status store_open(const char *path, struct store **out, struct err *err);
/*
 * Never writes but to take back what a process that died in a transaction has left: a missing file
 * is an error. A copy where nothing can be written is read too.
 */
enum status store_open_read(const char *path, struct store **out, struct err *err);
void store_close(struct store *store);

/* Stores run with created_ns from the clock; its id is the next: 1, 2, … */
enum status store_put(struct store *store, const struct run *run, int64_t *id, struct err *err);
/* Parts of a device check, all of them or none. */
enum status store_put_device(struct store *store, const struct device_check *checks, uint32_t n,
                             struct err *err);
/* A plan that a search has judged, not a run. */
struct store_candidate {
    uint32_t rank;               /* in its search, from 1 */
    const char *units, *options; /* in words */
    int64_t step_ns;
    uint64_t peak_bytes;     /* requested */
    uint64_t reserved_bytes; /* 0: that was not looked at */
    bool fits, on_front;
};
/* Those of one more search of the group (struct run), in one transaction. */
enum status store_put_candidates(struct store *store, uint64_t group,
                                 const struct store_candidate *candidates, uint32_t n,
                                 struct err *err);
/* id 0: the newest. STATUS_USAGE where there is no such run, with the ids that exist. */
enum status store_get(struct store *store, int64_t id, struct arena *arena, struct run *out,
                      struct err *err);

#endif
