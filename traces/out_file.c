/*
 * Temporary name, then rename; zlib writes both plain and compressed files.
 *
 * The temporary file is made with O_EXCL, so that two writers of one path do not meet: the last to
 * finish wins, whole. What becomes of it when a signal ends the process is temp_guard.c's.
 */
#include "traces/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "traces/temp_guard.h"

#define BUFFER_BYTES (256u << 10)
#define TEMP_TRIES 100 /* left-over files of killed processes that had our id */
#define TEMP_CHARS 40

static enum status fail(const char *path, int reason, struct err *err)
{
    return err_set(err, STATUS_INPUT, "cannot write '%s': %s", path, strerror(reason));
}

static char *copy_of(const char *text, size_t room)
{
    char *copy = malloc(strlen(text) + room + 1);
    if (!copy)
        err_out_of_memory(strlen(text) + room + 1);
    return strcpy(copy, text);
}

static int open_temp(struct out_file *out)
{
    const size_t length = strlen(out->path);
    int fd = -1;
    out->temp = copy_of(out->path, TEMP_CHARS);
    for (int i = 0; fd < 0 && i < TEMP_TRIES; i++) {
        snprintf(out->temp + length, TEMP_CHARS, ".%ld-%d.tmp", (long)getpid(), i);
        fd = temp_guard_open(out->temp);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* A symbolic link keeps pointing where it does: the file behind it is the one replaced. */
static int open_place(struct out_file *out, const char *path)
{
    struct stat about;
    if (!strcmp(path, OUT_STDOUT)) {
        out->path = copy_of(path, 0);
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    }
    const bool exists = !stat(path, &about);
    char *behind = exists && S_ISREG(about.st_mode) ? realpath(path, NULL) : NULL;
    out->path = behind ? behind : copy_of(path, 0);
    if (exists && S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (exists && !S_ISREG(about.st_mode))
        return open(path, O_WRONLY | O_CLOEXEC);
    return open_temp(out);
}

static void forget(struct out_file *out)
{
    free(out->temp);
    free(out->path);
    *out = (struct out_file){0};
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && !strcmp(text + length - end_length, end);
}

enum status out_open(const char *path, struct out_file *out, struct err *err)
{
    struct out_file made = {0};
    const int fd = open_place(&made, path);
    if (fd < 0) {
        const enum status status = fail(path, errno, err);
        forget(&made);
        return status;
    }
    made.stream = gzdopen(fd, ends_with(path, ".gz") ? "wb6" : "wbT");
    if (!made.stream)
        err_out_of_memory(BUFFER_BYTES);
    gzbuffer(made.stream, BUFFER_BYTES);
    *out = made;
    return STATUS_OK;
}

enum status out_write(struct out_file *out, const char *text, size_t length, struct err *err)
{
    while (length > 0) {
        const unsigned piece = length < INT_MAX ? (unsigned)length : INT_MAX;
        errno = 0;
        if (gzwrite(out->stream, text, piece) != (int)piece)
            return fail(out->path, errno ? errno : EIO, err);
        text += piece;
        length -= piece;
    }
    return STATUS_OK;
}

enum status out_commit(struct out_file *out, struct err *err)
{
    errno = 0;
    const bool written = gzclose_w(out->stream) == Z_OK;
    const int reason = errno;
    if (out->temp && !written)
        temp_guard_remove();
    errno = reason;
    const bool kept = written && (!out->temp || !temp_guard_rename(out->path));
    const enum status status = kept ? STATUS_OK : fail(out->path, errno ? errno : EIO, err);
    forget(out);
    return status;
}

void out_discard(struct out_file *out)
{
    if (!out->stream)
        return;
    gzclose_w(out->stream);
    if (out->temp)
        temp_guard_remove();
    forget(out);
}

enum status out_write_file(const char *path, const char *text, size_t length, struct err *err)
{
    struct out_file out;
    enum status status = out_open(path, &out, err);

    if (status != STATUS_OK)
        return status;
    status = out_write(&out, text, length, err);
    if (status == STATUS_OK)
        return out_commit(&out, err);
    out_discard(&out);
    return status;
}
