/*
 * A buffer over zlib's reader that holds one value at a time, and a machine of four states over it.
 *
 * Every call moves on: an item is cut off or at least one byte is passed over, so that no input
 * loops. A value ends where its brackets do; one that closes the wrong bracket ends there, for the
 * strict reader to complain about.
 */
#include "traces/trace_slicer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "traces/trace_json.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define END_OF_TEXT (-1)

static void grow(struct trace_slicer *slicer)
{
    char *larger = realloc(slicer->buffer, slicer->cap * 2 + 1);
    if (!larger)
        err_out_of_memory(slicer->cap * 2);
    slicer->buffer = larger;
    slicer->cap *= 2;
}

static void drop_used(struct trace_slicer *slicer)
{
    memmove(slicer->buffer, slicer->buffer + slicer->begin, slicer->end - slicer->begin);
    slicer->base += slicer->begin;
    slicer->end -= slicer->begin;
    slicer->begin = 0;
}

/* More text behind what is there; false at the end of the text, or where a value is too long. */
static bool fill(struct trace_slicer *slicer)
{
    drop_used(slicer);
    slicer->too_long = slicer->end >= SLICE_BYTES_MAX;
    if (slicer->at_end || slicer->too_long)
        return false;
    if (slicer->end == slicer->cap)
        grow(slicer);
    const int got =
        gzread(slicer->stream, slicer->buffer + slicer->end, (unsigned)(slicer->cap - slicer->end));
    int reason;
    gzerror(slicer->stream, &reason);
    slicer->broken = reason != Z_OK && reason != Z_STREAM_END;
    slicer->at_end = got <= 0;
    slicer->end += got > 0 ? (size_t)got : 0;
    slicer->buffer[slicer->end] = '\0';
    return got > 0;
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The next byte that is no blank, not used up; END_OF_TEXT behind the last. */
static int peek(struct trace_slicer *slicer)
{
    do {
        while (slicer->begin < slicer->end) {
            if (!is_blank(slicer->buffer[slicer->begin]))
                return (unsigned char)slicer->buffer[slicer->begin];
            slicer->begin++;
        }
    } while (fill(slicer));
    return END_OF_TEXT;
}

/* The byte so far behind the beginning of the value. */
static int byte_at(struct trace_slicer *slicer, size_t at)
{
    while (slicer->begin + at >= slicer->end) {
        if (!fill(slicer))
            return END_OF_TEXT;
    }
    return (unsigned char)slicer->buffer[slicer->begin + at];
}

/* From the quote at *at to behind the one that ends the string. */
static bool skip_string(struct trace_slicer *slicer, size_t *at)
{
    int c;
    for (++*at; (c = byte_at(slicer, *at)) != '"'; *at += c == '\\' ? 2 : 1) {
        if (c == END_OF_TEXT)
            return false;
    }
    ++*at;
    return true;
}

static bool ends_scalar(int c)
{
    return c == END_OF_TEXT || is_blank(c) || c == ',' || c == ']' || c == '}' || c == ':' ||
           c == '{' || c == '[' || c == '"';
}

struct brackets {
    char open[SLICE_DEPTH_MAX];
    unsigned depth;
};

/* True where the value ends with this byte. */
static bool step_bracket(struct brackets *brackets, int c)
{
    if (c == '{' || c == '[') {
        if (brackets->depth == SLICE_DEPTH_MAX)
            return true;
        brackets->open[brackets->depth++] = (char)c;
        return false;
    }
    if (c != '}' && c != ']')
        return false;
    const char wanted = c == '}' ? '{' : '[';
    return brackets->open[--brackets->depth] != wanted || brackets->depth == 0;
}

/* Length of the value that begins here, at least one byte; 0 where it does not end. */
static size_t value_length(struct trace_slicer *slicer)
{
    struct brackets brackets = {.depth = 0};
    size_t at = 0;
    int c = byte_at(slicer, 0);
    if (c != '{' && c != '[' && c != '"') {
        while (!ends_scalar(byte_at(slicer, at)))
            at++;
        return at > 0 ? at : 1;
    }
    for (; c != END_OF_TEXT; c = byte_at(slicer, at)) {
        const bool string = c == '"';
        if (string && !skip_string(slicer, &at))
            return 0;
        at += !string;
        if (string ? brackets.depth == 0 : step_bracket(&brackets, c))
            return at;
    }
    return 0;
}

static enum status give(struct trace_slicer *slicer, enum slice_kind kind, const char *text,
                        size_t length, struct trace_slice *out)
{
    *out = (struct trace_slice){
        .kind = kind, .text = text, .length = length, .offset = slicer->base + slicer->begin};
    return STATUS_OK;
}

static enum status give_fault(struct trace_slicer *slicer, const char *text,
                              struct trace_slice *out)
{
    return give(slicer, SLICE_FAULT, text, strlen(text), out);
}

static const char *broken_text(const struct trace_slicer *slicer)
{
    return slicer->compressed ? "the compressed data is damaged or cut off"
                              : "the file cannot be read any further";
}

/* The text is over before the document is. */
static enum status give_cut(struct trace_slicer *slicer, const char *what, struct trace_slice *out,
                            struct err *err)
{
    if (slicer->too_long)
        return err_set(err, STATUS_INPUT,
                       "value at byte %" PRIu64 " is longer than %zu MiB: not a Chrome trace",
                       slicer->base + slicer->begin, SLICE_BYTES_MAX >> 20);
    slicer->state = SLICER_END;
    return give_fault(slicer, slicer->broken ? broken_text(slicer) : what, out);
}

/* Give the value that begins here, and have it used up. */
static enum status cut_value(struct trace_slicer *slicer, enum slice_kind kind,
                             struct trace_slice *out, struct err *err)
{
    const size_t length = value_length(slicer);
    if (length == 0)
        return give_cut(slicer, "the text ends within a value", out, err);
    give(slicer, kind, slicer->buffer + slicer->begin, length, out);
    slicer->begin += length;
    slicer->after_value = true;
    slicer->comma = false;
    return STATUS_OK;
}

/* The closing bracket; a fault is given where a comma comes before it. */
static bool close_list(struct trace_slicer *slicer, struct trace_slice *out)
{
    const bool trailing = slicer->comma;
    const bool in_events = slicer->state == SLICER_EVENTS;
    if (trailing)
        give_fault(slicer, "comma without a value after it", out);
    slicer->begin++;
    slicer->comma = false;
    slicer->after_value = in_events && slicer->in_object;
    slicer->state = slicer->after_value ? SLICER_MEMBERS : SLICER_TAIL;
    return trailing;
}

/* One comma; a fault is given where there is no value before it. */
static bool pass_comma(struct trace_slicer *slicer, struct trace_slice *out)
{
    const bool good = slicer->after_value;
    if (!good)
        give_fault(slicer, "comma without a value before it", out);
    slicer->begin++;
    slicer->after_value = false;
    slicer->comma = true;
    return !good;
}

/* A fault is given, and what is there is passed over. */
static enum status pass_value(struct trace_slicer *slicer, const char *what,
                              struct trace_slice *out, struct err *err)
{
    struct trace_slice passed;
    give_fault(slicer, what, out);
    const enum status status = cut_value(slicer, SLICE_FAULT, &passed, err);
    if (slicer->state == SLICER_END)
        *out = passed;
    return status;
}

static void note_key(struct trace_slicer *slicer, const char *text, size_t length)
{
    const struct json_span key = {SPAN_STRING, text, length};
    const uint64_t hash = json_span_hash(&key, 0);
    for (size_t i = 0; i < slicer->n_key; i++) {
        if (slicer->keys[i] != hash)
            continue;
        if (slicer->n_again++ == 0)
            slicer->again_at = slicer->base + slicer->begin;
        return;
    }
    if (slicer->n_key < SLICE_KEYS_MAX)
        slicer->keys[slicer->n_key++] = hash;
}

/* Key and value; the value of traceEvents is entered, and nothing given. */
static enum status next_member(struct trace_slicer *slicer, bool *given, struct trace_slice *out,
                               struct err *err)
{
    *given = true;
    if (peek(slicer) != '"')
        return pass_value(slicer, "a key in quotes is needed", out, err);
    size_t length = 0;
    if (!skip_string(slicer, &length))
        return give_cut(slicer, "the text ends within a key", out, err);
    const size_t kept = length - 2 < SLICE_KEY_CHARS ? length - 2 : SLICE_KEY_CHARS - 1;
    memcpy(slicer->key, slicer->buffer + slicer->begin + 1, kept);
    slicer->key[kept] = '\0';
    note_key(slicer, slicer->buffer + slicer->begin + 1, length - 2);
    slicer->begin += length;

    if (peek(slicer) != ':')
        return give_fault(slicer, "':' is missing after a key", out);
    slicer->begin++;
    const int c = peek(slicer);
    if (c == END_OF_TEXT || c == ',' || c == '}' || c == ']')
        return give_fault(slicer, "a value is missing after a key", out);
    if (c != '[' || strcmp(slicer->key, "traceEvents") != 0)
        return cut_value(slicer, SLICE_MEMBER, out, err);
    slicer->begin++;
    slicer->state = SLICER_EVENTS;
    slicer->found_events = true;
    slicer->after_value = slicer->comma = *given = false;
    return STATUS_OK;
}

/* One step in a list of members or events; *given: there is an item in *out. */
static enum status step_list(struct trace_slicer *slicer, bool *given, struct trace_slice *out,
                             struct err *err)
{
    const bool in_events = slicer->state == SLICER_EVENTS;
    const int c = peek(slicer);
    *given = true;
    if (c == END_OF_TEXT)
        return give_cut(slicer, "the text ends before its brackets are closed", out, err);
    if (c == (in_events ? ']' : '}')) {
        *given = close_list(slicer, out);
        return STATUS_OK;
    }
    if (c == ',') {
        *given = pass_comma(slicer, out);
        return STATUS_OK;
    }
    if (slicer->after_value) {
        slicer->after_value = false;
        return give_fault(slicer, "comma or closing bracket is missing", out);
    }
    if (c == '}' || c == ']' || c == ':')
        return pass_value(slicer, "a value is needed here", out, err);
    return in_events ? cut_value(slicer, SLICE_EVENT, out, err)
                     : next_member(slicer, given, out, err);
}

/* The first characters that are not blanks: by them readers guess the format. */
static void sniff(struct trace_slicer *slicer)
{
    size_t n = 0;
    int c;
    for (size_t at = 0; n + 1 < sizeof(slicer->start) && (c = byte_at(slicer, at)) != END_OF_TEXT;
         at++) {
        if (!is_blank(c))
            slicer->start[n++] = (char)c;
    }
}

static enum status start(struct trace_slicer *slicer, struct err *err)
{
    const int c = peek(slicer);
    if (c != '{' && c != '[')
        return err_set(err, STATUS_INPUT, "%s",
                       slicer->broken     ? broken_text(slicer)
                       : c == END_OF_TEXT ? "the file is empty"
                                          : "a trace begins with '{' or '['");
    slicer->in_object = c == '{';
    slicer->found_events = c == '[';
    slicer->state = c == '{' ? SLICER_MEMBERS : SLICER_EVENTS;
    sniff(slicer);
    slicer->begin++;
    return STATUS_OK;
}

static enum status step_tail(struct trace_slicer *slicer, struct trace_slice *out)
{
    const int c = peek(slicer);
    slicer->state = SLICER_END;
    if (slicer->broken)
        return give_fault(slicer, broken_text(slicer), out);
    if (c != END_OF_TEXT)
        return give_fault(slicer, "there is text after the end", out);
    return give(slicer, SLICE_END, NULL, 0, out);
}

enum status trace_slicer_next(struct trace_slicer *slicer, struct trace_slice *out, struct err *err)
{
    enum status status = STATUS_OK;
    bool given = false;
    if (slicer->state == SLICER_START)
        status = start(slicer, err);
    while (!status && !given) {
        given = true;
        if (slicer->state == SLICER_END)
            give(slicer, SLICE_END, NULL, 0, out);
        else if (slicer->state == SLICER_TAIL)
            step_tail(slicer, out);
        else
            status = step_list(slicer, &given, out, err);
    }
    return status;
}

static bool begins_as_gzip(int fd)
{
    unsigned char magic[2];
    return pread(fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

enum status trace_slicer_open(const char *path, struct trace_slicer *out, struct err *err)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    int reason = errno;
    if (fd >= 0 && !fstat(fd, &about) && S_ISDIR(about.st_mode)) {
        close(fd);
        reason = EISDIR;
    } else if (fd >= 0) {
        struct trace_slicer made = {.compressed = begins_as_gzip(fd), .cap = BUFFER_BYTES};
        made.stream = gzdopen(fd, "rb");
        made.buffer = malloc(made.cap + 1);
        if (!made.stream || !made.buffer)
            err_out_of_memory(made.cap + 1);
        gzbuffer(made.stream, (unsigned)BUFFER_BYTES);
        *out = made;
        return STATUS_OK;
    }
    return err_set(err, STATUS_INPUT, "cannot read '%s': %s", path, strerror(reason));
}

void trace_slicer_close(struct trace_slicer *slicer)
{
    if (slicer->stream)
        gzclose_r(slicer->stream);
    free(slicer->buffer);
    *slicer = (struct trace_slicer){0};
}
