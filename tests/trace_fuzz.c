/*
 * Traces with random damage, checked and read as profiles: always an answer, never a crash, whatever
 * bytes there are.
 *
 * The damage is to a sound trace, so that it reaches past the first bracket. What does not hold is
 * printed with the seed of its round; run under the sanitizers this also holds memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"
#include "traces/kineto.h"
#include "traces/trace_check.h"

enum { ROUNDS = 1500, DAMAGES = 4 };

static const char *const pieces[] = {
    "{", "}", "[", "]", "\"", ",", ":", "\\", "\\u", "\xff", "-", "1e9", "NaN", "null", "{}", "[[",
};

/* Replace up to eight bytes by a piece, or by nothing. */
static void damage(char *text, size_t *length, uint64_t *state)
{
    const size_t at = tap_below(state, *length), left = *length - at;
    size_t gone = tap_below(state, 9);
    const char *piece = pieces[tap_below(state, sizeof(pieces) / sizeof(pieces[0]))];
    const size_t added = tap_below(state, 3) ? strlen(piece) : 0;
    gone = gone < left ? gone : left;
    memmove(text + at + added, text + at + gone, left - gone);
    memcpy(text + at, piece, added);
    *length += added - gone;
}

static bool is_answer(enum status status, const struct trace_report *report, const struct err *err)
{
    if (status == STATUS_INPUT)
        return strlen(err->text) > 0;
    return (status == STATUS_OK || status == STATUS_NO) &&
           (report->n_finding > 0) == (status == STATUS_NO);
}

static bool is_strict(const struct trace_report *report)
{
    for (uint32_t i = 0; i < report->n_finding; i++) {
        if (!strcmp(report->findings[i].rule, "strict-json"))
            return false;
    }
    return true;
}

/* No stream is busy for longer than it lasts, nor has more than the whole. */
static bool is_profile(const struct kineto *trace)
{
    uint64_t n = 0;
    bool good = true;
    for (uint32_t i = 0; i < trace->n_stream; i++) {
        const struct kineto_stream *stream = &trace->streams[i];
        n += stream->n_kernel + stream->n_copy + stream->n_set;
        good = good && stream->busy_ns >= 0 &&
               (uint64_t)stream->busy_ns <= (uint64_t)stream->end_ns - (uint64_t)stream->begin_ns;
    }
    return good && n == trace->n_gpu;
}

/* A profile is read of what is strict JSON, or it is refused with a reason. */
static bool is_read(const char *path, const struct trace_report *report, struct arena *arena)
{
    struct kineto trace;
    struct err err = {.text = ""};
    const enum status status = kineto_read(path, arena, &trace, &err);
    return status == STATUS_OK ? is_strict(report) && is_profile(&trace)
                               : status == STATUS_INPUT && strlen(err.text) > 0;
}

int main(void)
{
    uint64_t state = tap_seed(20261129);
    char path[] = "/tmp/unshard-trace-fuzz-XXXXXX.json";
    const char *top = getenv("top_srcdir");
    char example[512];
    int wrong = 0, found = 0;
    snprintf(example, sizeof(example), "%s/traces/toy.json", top ? top : ".");
    char *sound = tap_read_file(example);
    const int fd = mkstemps(path, 5);
    if (!sound || fd < 0)
        tap_bail("no example trace, or no temporary file");

    const size_t sound_length = strlen(sound);
    char *text = malloc(sound_length + 8 * DAMAGES);
    for (int round = 0; text && round < ROUNDS; round++) {
        const uint64_t seed = state;
        size_t length = sound_length;
        struct arena arena;
        struct trace_report report = {0};
        struct err err = {.text = ""};
        memcpy(text, sound, length);
        for (uint64_t i = 1 + tap_below(&state, DAMAGES); i > 0; i--)
            damage(text, &length, &state);
        if (pwrite(fd, text, length, 0) != (ssize_t)length || ftruncate(fd, (off_t)length))
            tap_bail("the file cannot be written");

        arena_init(&arena);
        const enum status status = trace_check(path, &arena, &report, &err);
        found += status != STATUS_OK;
        if (!is_answer(status, &report, &err) || !is_read(path, &report, &arena)) {
            tap_note("round %d, seed %llu: status %d", round, (unsigned long long)seed, status);
            wrong++;
        }
        arena_release(&arena);
    }
    free(text);
    free(sound);
    close(fd);
    unlink(path);
    is_int(wrong, 0, "each of %d damaged traces gets an answer", ROUNDS);
    ok(found > ROUNDS / 2, "most damage is found");
    return tap_done();
}
