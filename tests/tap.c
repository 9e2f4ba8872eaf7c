/*
 * Counts checks and prints them; see tap.h for what each one means.
 *
 * Every line is flushed, so that what was printed before a crash can be read. Text of more than one
 * line stays inside "# " lines: no value that is printed can be taken for a result.
 */
#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int n_checks, n_failed;

static void flush_line(void)
{
    putchar('\n');
    fflush(stdout);
}

__attribute__((format(printf, 2, 0))) static bool report(bool good, const char *fmt, va_list args)
{
    n_checks++;
    n_failed += !good;
    printf("%sok %d - ", good ? "" : "not ", n_checks);
    vprintf(fmt, args);
    flush_line();
    return good;
}

static void print_value(const char *label, const char *value)
{
    printf("# %-5s ", label);
    for (const char *at = value ? value : "(null)"; *at; at++) {
        putchar(*at);
        if (*at == '\n' && at[1])
            printf("#       ");
    }
    if (!value || !*value || value[strlen(value) - 1] != '\n')
        putchar('\n');
    fflush(stdout);
}

static void print_place(const char *expr, const char *file, int line)
{
    printf("# at    %s:%d: %s", file, line, expr);
    flush_line();
}

bool tap_ok(bool good, const char *expr, const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(good, fmt, args);
    va_end(args);
    if (!good)
        print_place(expr, file, line);
    return good;
}

bool tap_is_int(long long got, long long want, const char *expr, const char *file, int line,
                const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    bool good = report(got == want, fmt, args);
    va_end(args);
    if (!good) {
        print_place(expr, file, line);
        tap_note("got   %lld", got);
        tap_note("want  %lld", want);
    }
    return good;
}

bool tap_is_str(const char *got, const char *want, const char *expr, const char *file, int line,
                const char *fmt, ...)
{
    bool same = got && want ? !strcmp(got, want) : got == want;
    va_list args;
    va_start(args, fmt);
    report(same, fmt, args);
    va_end(args);
    if (!same) {
        print_place(expr, file, line);
        print_value("got", got);
        print_value("want", want);
    }
    return same;
}

bool tap_is_near(double got, double want, double rel, const char *expr, const char *file, int line,
                 const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    bool good = report(fabs(got - want) <= rel * fabs(want), fmt, args);
    va_end(args);
    if (!good) {
        print_place(expr, file, line);
        tap_note("got   %.17g", got);
        tap_note("want  %.17g, at most %g of it away", want, rel);
    }
    return good;
}

/* What is left of a line once a comment (where there can be one) and blanks at its end are gone. */
static size_t content_length(const char *line, bool comments)
{
    size_t length = strcspn(line, comments ? "#\n" : "\n");
    while (length > 0 && strchr(" \t\r", line[length - 1]))
        length--;
    return length;
}

/* Walks the lines that have content. */
struct lines {
    const char *next, *at; /* at: NULL past the last line */
    size_t length;
    int number;
    bool comments;
};

static bool next_line(struct lines *lines)
{
    while (*lines->next) {
        lines->at = lines->next;
        lines->length = content_length(lines->at, lines->comments);
        lines->number++;
        lines->next += strcspn(lines->next, "\n");
        lines->next += *lines->next == '\n';
        if (lines->length > 0)
            return true;
    }
    lines->at = NULL;
    return false;
}

static void print_line(const char *label, const char *source, const struct lines *lines)
{
    if (lines->at)
        tap_note("%s  line %d of %s: %.*s", label, lines->number, source, (int)lines->length,
                 lines->at);
    else
        tap_note("%s  nothing more in %s", label, source);
}

static bool compare_golden(const char *got, const char *want, const char *name)
{
    struct lines a = {.next = got}, b = {.next = want, .comments = true};
    bool more, same;
    do {
        more = next_line(&a);
        same = more == next_line(&b);
        if (same && more)
            same = a.length == b.length && !memcmp(a.at, b.at, a.length);
    } while (same && more);

    tap_ok(same, "is_golden", name, b.number, "output is as in golden file %s", name);
    if (!same) {
        print_line("got ", "the output", &a);
        print_line("want", name, &b);
    }
    return same;
}

static bool write_golden(const char *got, const char *path, const char *name)
{
    FILE *file = fopen(path, "wx");
    bool written = file && fputs(got, file) >= 0;
    if (file)
        written = !fclose(file) && written;
    tap_note("%s %s", written ? "wrote" : "cannot write", path);
    return tap_ok(written, "UNSHARD_UPDATE_GOLDEN", path, 0, "golden file %s is new", name);
}

bool is_golden(const char *got, const char *name)
{
    const char *top = getenv("top_srcdir");
    const char *update = getenv("UNSHARD_UPDATE_GOLDEN");
    char path[4096];
    snprintf(path, sizeof(path), "%s/tests/golden/%s", top ? top : ".", name);

    if (access(path, F_OK) && update && !strcmp(update, "1"))
        return write_golden(got, path, name);
    char *want = tap_read_file(path);
    if (!want)
        return tap_ok(false, "is_golden", path, 0,
                      "golden file %s can be read (UNSHARD_UPDATE_GOLDEN=1 writes it)", name);
    bool same = compare_golden(got, want, name);
    free(want);
    return same;
}

void tap_note(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("# ");
    vprintf(fmt, args);
    va_end(args);
    flush_line();
}

void tap_skip(const char *why)
{
    printf("ok %d # SKIP %s", ++n_checks, why);
    flush_line();
}

int tap_skip_all(const char *why)
{
    if (n_checks > 0)
        tap_bail("everything is skipped after checks were made");
    printf("1..0 # SKIP %s", why);
    flush_line();
    return 0;
}

_Noreturn void tap_bail(const char *why)
{
    printf("Bail out! %s", why);
    flush_line();
    exit(EXIT_FAILURE);
}

int tap_done(void)
{
    if (n_checks == 0)
        tap_bail("no check was made");
    printf("1..%d", n_checks);
    flush_line();
    return n_failed > 0;
}

uint64_t tap_seed(uint64_t fallback)
{
    const char *text = getenv("UNSHARD_SEED");
    char *end;
    uint64_t seed = text ? strtoull(text, &end, 0) : fallback;
    if (text && (end == text || *end))
        tap_bail("UNSHARD_SEED is not a number");
    tap_note("seed %" PRIu64 " (UNSHARD_SEED sets it)", seed);
    return seed;
}

/* splitmix64: https://prng.di.unimi.it/splitmix64.c */
uint64_t tap_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t tap_below(uint64_t *state, uint64_t n)
{
    return tap_random(state) % n;
}

char *tap_read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    size_t length = 0, cap = 1 << 16, got = 0;
    char *text = malloc(cap);
    while (text && (got = fread(text + length, 1, cap - 1 - length, file)) > 0) {
        length += got;
        if (length == cap - 1) {
            char *larger = realloc(text, cap *= 2);
            if (!larger)
                free(text);
            text = larger;
        }
    }
    if (text && ferror(file)) {
        free(text);
        text = NULL;
    }
    if (text)
        text[length] = '\0';
    fclose(file);
    return text;
}

const char *tap_shared(const char *path)
{
    static char full[4096];
    const char *folder = getenv("UNSHARD_SHARED");
    if (!folder)
        return NULL;
    snprintf(full, sizeof(full), "%s/%s", folder, path);
    return access(full, F_OK) ? NULL : full;
}
