/*
 * A file that appears whole or not at all.
 *
 * Written under another name beside its place and renamed once everything is on it; compressed where
 * the path ends in ".gz". What is not a regular file (a pipe, /dev/stdout) is written in place, and
 * so is stdout, whatever it is. A signal that ends the process removes the other name; only one such
 * file can be open at a time.
 */
#ifndef TRACES_OUT_FILE_H
#define TRACES_OUT_FILE_H

#include <stddef.h>

#include "src/err.h"

#define OUT_STDOUT "-" /* the path that stands for it */

struct out_file {
    void *stream;      /* zlib's gzFile */
    char *path, *temp; /* temp: NULL where the path itself is written */
};

enum status out_open(const char *path, struct out_file *out, struct err *err);
enum status out_write(struct out_file *out, const char *text, size_t length, struct err *err);

/* Exactly one of these ends it; after a failed out_commit() nothing is left behind either. */
enum status out_commit(struct out_file *out, struct err *err);
void out_discard(struct out_file *out);

/* All of it for a text that is there. */
enum status out_write_file(const char *path, const char *text, size_t length, struct err *err);

#endif
