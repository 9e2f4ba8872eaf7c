/*
 * The run history as the commands use it: which file it is, and a report as a run in it.
 *
 * The file is opened when the first run is stored, so that a command that fails before leaves
 * nothing behind. A run that cannot be stored is no reason to withhold an answer: the first failure
 * is kept until the end, and nothing more is stored after it.
 */
#ifndef SRC_CLI_HISTORY_H
#define SRC_CLI_HISTORY_H

#include "db/store.h"
#include "src/cli/run_report.h"

/* --db FILE, else UNSHARD_DB, else the default; STATUS_USAGE for no name, and without a home. */
enum status history_path(const struct options *options, struct arena *arena, const char **out,
                         struct err *err);

struct history {
    const struct options *options;
    enum run_kind kind;
    uint64_t group;
    struct arena arena, run; /* path; the run that is being stored */
    const char *path;
    struct store *store; /* NULL before the first run */
    struct err err;      /* the first failure */
    int64_t first_id, last_id;
    uint32_t n, n_candidate;
};

/* STATUS_USAGE for --db together with --no-db. To be ended also where it fails. */
enum status history_begin(const struct options *options, enum run_kind kind,
                          struct history *history, struct err *err);
/* Sets the report's run_id, unless --no-db is given or something failed. */
void history_put(struct history *history, struct sim_report *report);
/* The same of a real run, whose prediction gets the run_id. */
void history_put_real(struct history *history, const struct run_report *report);
/* Plans of a search that are no runs, of the same group; unless --no-db is given or something failed. */
void history_put_candidates(struct history *history, const struct store_candidate *candidates,
                            uint32_t n);
/* "run 17 stored in FILE", or nothing where nothing was stored. */
void history_text(const struct history *history, const struct term *term, struct text *out);
/* STATUS_DB and a warning where something failed. */
enum status history_end(struct history *history, struct text *warnings);

/* Whether a word names a run: a number, or last. */
bool history_is_run(const char *word);
/* That run and its number; STATUS_USAGE where there is none, and for any other word. */
enum status history_read(const struct options *options, const char *word, struct arena *arena,
                         int64_t *id, struct run *run, struct err *err);

#endif
