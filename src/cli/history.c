/*
 * Storing what a command found; see history.h. Knows no SQL: db/ has the database, record.c makes
 * the run.
 */
#include "src/cli/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/cli/record.h"

enum status history_path(const struct options *options, struct arena *arena, const char **out,
                         struct err *err)
{
    const char *path = option_text(options, OPTION_DB), *variable = getenv("UNSHARD_DB");
    if (path && !*path)
        return err_set(err, STATUS_USAGE, "--db: the name of the file is empty");
    if (!path && variable && *variable)
        path = variable;
    if (!path)
        return store_default_path(arena, out, err);
    *out = path;
    return STATUS_OK;
}

/* Of the rows of one comparison; no other comparison begins at the same nanosecond. */
static uint64_t new_group(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum status history_begin(const struct options *options, enum run_kind kind,
                          struct history *history, struct err *err)
{
    *history = (struct history){.options = options, .kind = kind};
    arena_init(&history->arena);
    arena_init(&history->run);
    if (kind == RUN_PLAN)
        history->group = new_group();
    if (option_given(options, OPTION_DB) && option_given(options, OPTION_NO_DB))
        return err_set(err, STATUS_USAGE, "--db and --no-db exclude each other; give one");
    return STATUS_OK;
}

/* A word as a shell takes it. */
static void add_word(const char *word, struct text *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./-_";
    if (*word && !word[strspn(word, plain)]) {
        text_add(out, "%s", word);
        return;
    }
    text_add(out, "'");
    for (; *word; word++)
        text_add(out, *word == '\'' ? "'\\%c'" : "%c", *word);
    text_add(out, "'");
}

static const char *command_line(const struct options *options, struct arena *arena)
{
    struct text words;
    text_init(&words);
    text_add(&words, "unshard");
    for (int i = 0; i < options->n_typed; i++) {
        text_add(&words, " ");
        add_word(options->typed[i], &words);
    }
    const char *line = arena_strdup(arena, words.at);
    text_release(&words);
    return line;
}

static enum status open_store(struct history *history)
{
    enum status status =
        history_path(history->options, &history->arena, &history->path, &history->err);
    return status == STATUS_OK ? store_open(history->path, &history->store, &history->err) : status;
}

/* Whether anything is to be stored, and can be. */
static bool is_storing(struct history *history)
{
    if (option_given(history->options, OPTION_NO_DB) || history->err.status != STATUS_OK)
        return false;
    if (!history->store && open_store(history) != STATUS_OK)
        return false;
    arena_reset(&history->run);
    return true;
}

static void put(struct history *history, const struct run *run, struct sim_report *report)
{
    int64_t id;
    if (store_put(history->store, run, &id, &history->err) != STATUS_OK)
        return;
    report->run_id = history->last_id = id;
    if (history->n++ == 0)
        history->first_id = id;
}

void history_put(struct history *history, struct sim_report *report)
{
    struct run run;
    if (!is_storing(history))
        return;
    record_run(report, history->kind, command_line(history->options, &history->run), &history->run,
               &run);
    run.group = history->group;
    put(history, &run, report);
}

void history_put_real(struct history *history, const struct run_report *report)
{
    struct run run;
    if (!is_storing(history))
        return;
    run_report_record(report, command_line(history->options, &history->run), &history->run, &run);
    put(history, &run, report->sim);
}

void history_put_candidates(struct history *history, const struct store_candidate *candidates,
                            uint32_t n)
{
    if (is_storing(history) && store_put_candidates(history->store, history->group, candidates, n,
                                                    &history->err) == STATUS_OK)
        history->n_candidate += n;
}

/* "~" in place of the home folder, so that a page that is shown to others does not tell it. */
static const char *shown_path(const struct history *history, char name[TERM_NAME_BYTES])
{
    const char *path = history->path, *home = getenv("HOME");
    size_t length = home ? strlen(home) : 0;
    struct text shown;
    text_init(&shown);
    if (length > 1 && !strncmp(path, home, length) && path[length] == '/')
        text_add(&shown, "~%s", path + length);
    else
        text_add(&shown, "%s", path);
    term_name(shown.at, name);
    text_release(&shown);
    return name;
}

void history_text(const struct history *history, const struct term *term, struct text *out)
{
    char name[TERM_NAME_BYTES];
    if (history->n == 0)
        return;
    text_add(out, "%srun%s %" PRId64, term->quiet, history->n == 1 ? "" : "s", history->first_id);
    if (history->n > 1)
        text_add(out, " to %" PRId64, history->last_id);
    if (history->n_candidate > 0)
        text_add(out, " and %" PRIu32 " candidates", history->n_candidate);
    text_add(out, " stored in %s%s\n", shown_path(history, name), term->plain);
}

enum status history_end(struct history *history, struct text *warnings)
{
    const bool failed = history->err.status != STATUS_OK;
    if (failed)
        text_add(warnings, "the run was not stored: %s\n", history->err.text);
    store_close(history->store);
    arena_release(&history->run);
    arena_release(&history->arena);
    return failed ? STATUS_DB : STATUS_OK;
}
