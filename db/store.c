/*
 * Where the run history is, and opening it; storing and reading a run have files of their own.
 */
#include "db/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "db/store_inner.h"

enum status store_default_path(struct arena *arena, const char **out, struct err *err)
{
    static const char *const name = "unshard/runs.db";
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    /* The XDG rules: a relative path counts as none. */
    if (data && *data == '/')
        *out = arena_printf(arena, "%s/%s", data, name);
    else if (home && *home)
        *out = arena_printf(arena, "%s/.local/share/%s", home, name);
    else
        return err_set(err, STATUS_USAGE,
                       "no place for the run history: neither XDG_DATA_HOME nor HOME is set: set"
                       " one, or give --db FILE or --no-db");
    return STATUS_OK;
}

/* The folders of a path that are missing, for this user alone. */
static enum status make_folders(const char *path, struct err *err)
{
    struct arena arena;
    enum status status = STATUS_OK;
    arena_init(&arena);
    char *folder = arena_strdup(&arena, path);
    for (char *at = strchr(folder + (*folder == '/'), '/'); at && status == STATUS_OK;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(folder, 0700) && errno != EEXIST)
            status = err_set(err, STATUS_DB,
                             "cannot make folder '%.*s': %s: give another file with --db",
                             DB_SHOWN_CHARS, folder, strerror(errno));
        *at = '/';
    }
    arena_release(&arena);
    return status;
}

static enum status open_store(const char *path, enum connection_mode mode, struct store **out,
                              struct err *err)
{
    struct store *store = calloc(1, sizeof(*store));
    if (!store)
        err_out_of_memory(sizeof(*store));
    enum status status = connection_open(&store->connection, path, mode, err);
    if (status == STATUS_OK && mode == CONNECTION_WRITE)
        status = rows_register(&store->connection, &store->rows, err);
    if (status == STATUS_OK && mode == CONNECTION_WRITE)
        status = shared_open(&store->shared, &store->connection, err);
    if (status == STATUS_OK)
        *out = store;
    else
        store_close(store);
    return status;
}

enum status store_open(const char *path, struct store **out, struct err *err)
{
    const enum status status = make_folders(path, err);
    return status == STATUS_OK ? open_store(path, CONNECTION_WRITE, out, err) : status;
}

enum status store_open_read(const char *path, struct store **out, struct err *err)
{
    return open_store(path, CONNECTION_READ, out, err);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < STORE_PARTS; i++)
        sqlite3_finalize(store->statements[i]);
    shared_release(&store->shared);
    connection_close(&store->connection);
    free(store);
}
