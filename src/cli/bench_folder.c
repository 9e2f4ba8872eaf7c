/*
 * A place for the files of a benchmark, gone afterwards; see bench.h. The files lie flat in it.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/bench.h"

enum status bench_folder_make(struct arena *arena, const char **path, struct err *err)
{
    const char *temp = getenv("TMPDIR");
    char *folder = arena_printf(arena, "%s/unshard-bench-XXXXXX", temp && *temp ? temp : "/tmp");
    if (!mkdtemp(folder)) {
        char name[TERM_NAME_BYTES];
        return err_set(err, STATUS_INPUT,
                       "cannot make folder '%s': %s; set TMPDIR to a folder with room for 1 GB",
                       term_name(folder, name), strerror(errno));
    }
    *path = folder;
    return STATUS_OK;
}

void bench_folder_remove(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0); /* not "." and "..", which are folders */
    closedir(folder);
    rmdir(path);
}
