/*
 * Cuts a Chrome trace, plain or gzip, into its events, one at a time in bounded memory.
 *
 * Tolerant: it knows brackets, strings and commas, and yields what is wrong between events as items
 * of their own, so that a file with a flaw is read to its end. What is inside an event it does not
 * look at (traces/trace_json.h does). Both forms are read: {"traceEvents": [...], ...} and [...].
 */
#ifndef TRACES_TRACE_SLICER_H
#define TRACES_TRACE_SLICER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/err.h"

/* Traces have a dozen keys outside of events; of more only the first are held against the others. */
enum { SLICE_DEPTH_MAX = 64, SLICE_KEY_CHARS = 64, SLICE_KEYS_MAX = 256 };
#define SLICE_BYTES_MAX ((size_t)64 << 20) /* of one event or one top-level value */

enum slice_kind {
    SLICE_EVENT,  /* text: an element of traceEvents */
    SLICE_MEMBER, /* text: the value of another top-level key */
    SLICE_FAULT,  /* text: what is wrong, in words; offset: where */
    SLICE_END,
};

struct trace_slice {
    enum slice_kind kind;
    const char *text; /* valid until the next call; a NUL follows the last byte of the buffer */
    size_t length;
    uint64_t offset; /* in the uncompressed text */
};

enum slicer_state { SLICER_START, SLICER_MEMBERS, SLICER_EVENTS, SLICER_TAIL, SLICER_END };

struct trace_slicer {
    void *stream; /* zlib's gzFile */
    char *buffer; /* [begin, end) is not used up */
    size_t begin, end, cap;
    uint64_t base; /* offset of buffer[0] */
    enum slicer_state state;
    bool in_object;   /* events are a member, not the whole file */
    bool after_value; /* a comma or a closing bracket comes next */
    bool comma;       /* a comma was the last thing */
    bool at_end;      /* nothing more can be read */
    bool found_events, broken, compressed, too_long;
    uint64_t keys[SLICE_KEYS_MAX]; /* hashes of those of the outermost object */
    size_t n_key;
    uint64_t n_again, again_at; /* keys that stand there twice, and where the first does */
    char key[SLICE_KEY_CHARS];  /* of the last SLICE_MEMBER, as it is spelled; cut */
    char start[4];              /* the first characters that are not blanks */
};

enum status trace_slicer_open(const char *path, struct trace_slicer *out, struct err *err);
/* STATUS_INPUT: what follows cannot be cut at all. */
enum status trace_slicer_next(struct trace_slicer *slicer, struct trace_slice *out,
                              struct err *err);
void trace_slicer_close(struct trace_slicer *slicer);

#endif
