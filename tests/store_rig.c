/*
 * Helpers over the public functions of db/ alone; see store_rig.h.
 */
#include "tests/store_rig.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

static struct arena rig_arena;
static char folder[4096];
static pid_t owner;

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

/* Children inherit this; the folder is its maker's. */
static void remove_folder(void)
{
    if (getpid() == owner)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_release(&rig_arena);
}

const char *rig_path(const char *name)
{
    if (!owner) {
        const char *temp = getenv("TMPDIR");
        snprintf(folder, sizeof(folder), "%s/unshard-store-XXXXXX", temp ? temp : "/tmp");
        if (!mkdtemp(folder))
            tap_bail("cannot make a folder for the test");
        owner = getpid();
        atexit(remove_folder);
    }
    return arena_printf(&rig_arena, "%s/%s", folder, name);
}

static enum status add_row(void *self, int n, const char *const *names,
                           const struct query_value *values, struct err *err)
{
    struct text *text = self;
    (void)err;
    for (int i = 0; i < n; i++) {
        const char *value = !values ? names[i] : values[i].text ? values[i].text : "NULL";
        text_add(text, "%s%s", i ? "|" : "", value);
    }
    text_add(text, "\n");
    return STATUS_OK;
}

char *rig_query(const char *path, const char *sql)
{
    const struct query query = {.sql = sql};
    struct err err = {0};
    struct text text;
    text_init(&text);
    if (query_run(path, &query, add_row, &text, &err) != STATUS_OK) {
        text_release(&text);
        text_add(&text, "error: %s", err.text);
    }
    return text.at;
}

int64_t rig_number(const char *path, const char *sql)
{
    char *text = rig_query(path, sql);
    const char *line = strchr(text, '\n');
    int64_t number = INT64_MIN;
    if (!line || !line[1])
        tap_note("%s: %s", sql, text);
    else
        number = strtoll(line + 1, NULL, 10);
    free(text);
    return number;
}

struct store *rig_open(const char *path)
{
    struct store *store = NULL;
    struct err err = {0};
    if (store_open(path, &store, &err) != STATUS_OK)
        tap_bail(err.text);
    return store;
}

int64_t rig_put(struct store *store, const struct run *run)
{
    struct err err = {0};
    int64_t id = 0;
    if (store_put(store, run, &id, &err) != STATUS_OK)
        tap_bail(err.text);
    return id;
}

void rig_patch(const char *path, long offset, uint32_t number)
{
    const unsigned char bytes[] = {(unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                   (unsigned char)(number >> 8), (unsigned char)number};
    FILE *file = fopen(path, "r+b");
    if (!file || fseek(file, offset, SEEK_SET) || fwrite(bytes, sizeof(bytes), 1, file) != 1 ||
        fclose(file))
        tap_bail("cannot change a file of the test");
}

bool rig_is_clean(const char *path)
{
    char *integrity = rig_query(path, "PRAGMA integrity_check");
    char *keys = rig_query(path, "PRAGMA foreign_key_check");
    const bool clean =
        !strcmp(integrity, "integrity_check\nok\n") && strchr(keys, '\n') && !strchr(keys, '\n')[1];
    if (!clean)
        tap_note("integrity_check %s, foreign_key_check %s", integrity, keys);
    free(integrity);
    free(keys);
    return clean;
}
