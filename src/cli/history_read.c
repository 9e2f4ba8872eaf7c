/*
 * A run of the history by the word for it; see history.h.
 */
#include <stdlib.h>
#include <string.h>

#include "db/query.h"
#include "src/cli/history.h"

static const char newest_word[] = "last";

static enum status take_id(void *self, int n, const char *const *names,
                           const struct query_value *values, struct err *err)
{
    int64_t *id = self;
    (void)n;
    (void)names;
    (void)err;
    if (values && values[0].kind == QUERY_INTEGER)
        *id = strtoll(values[0].text, NULL, 10);
    return STATUS_OK;
}

/* A number, or the newest; 0 where there is none. */
static enum status find_run(const char *word, const char *path, int64_t *out, struct err *err)
{
    static const struct query newest = {.sql = "SELECT max(run) FROM v_run"};
    uint64_t number;
    if (!strcmp(word, newest_word))
        return query_run(path, &newest, take_id, out, err);
    if (!text_to_u64(word, &number) || number == 0 || number > INT64_MAX)
        return err_set(err, STATUS_USAGE,
                       "'%.80s' is no run; give a number of 'unshard history list', or last", word);
    *out = (int64_t)number;
    return STATUS_OK;
}

bool history_is_run(const char *word)
{
    return !strcmp(word, newest_word) || (*word && !word[strspn(word, "0123456789")]);
}

enum status history_read(const struct options *options, const char *word, struct arena *arena,
                         int64_t *id, struct run *run, struct err *err)
{
    struct store *store = NULL;
    const char *path;
    enum status status = history_path(options, arena, &path, err);
    if (status == STATUS_OK)
        status = find_run(word, path, id, err);
    if (status == STATUS_OK)
        status = store_open_read(path, &store, err);
    if (status == STATUS_OK)
        status = store_get(store, *id, arena, run, err);
    store_close(store);
    return status;
}
