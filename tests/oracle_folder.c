/*
 * The folder tests/oracle/; see oracle_folder.h.
 */
#include "tests/oracle_folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

/* FSDP1's have a schema and a test of their own (fsdp1_oracle.c). */
static int is_fully_shard(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && strcmp(end, ".json") == 0 && strncmp(entry->d_name, "fsdp1-", 6) != 0;
}

static void visit_file(const char *folder, const char *name, oracle_visit *visit, void *context)
{
    struct oracle_file file;
    struct err err = {0};
    struct text path;

    text_init(&path);
    text_add(&path, "%s/%s", folder, name);
    if (!ok(oracle_read(path.at, &file, &err) == STATUS_OK, "%s is well-formed", name))
        tap_bail(err.text);
    visit(&file, context);
    oracle_release(&file);
    text_release(&path);
}

void oracle_folder_walk(oracle_visit *visit, void *context)
{
    const char *top = getenv("top_srcdir");
    struct dirent **entries;
    struct text folder;

    text_init(&folder);
    text_add(&folder, "%s/tests/oracle", top ? top : ".");
    const int n = scandir(folder.at, &entries, is_fully_shard, alphasort);
    if (n <= 0)
        tap_bail("there are no recorded expectations");
    for (int i = 0; i < n; i++) {
        visit_file(folder.at, entries[i]->d_name, visit, context);
        free(entries[i]);
    }
    free(entries);
    text_release(&folder);
}
