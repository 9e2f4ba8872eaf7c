#ifndef TESTS_TAP_H
#define TESTS_TAP_H
/*
 * Test Anything Protocol for C tests.
 *
 * A test calls the checks below and ends with "return tap_done();", which prints the plan. Each
 * check returns its outcome, so that a test can stop early where going on makes no sense. A check
 * says what behaviour it holds; a failed one says what it got, on stderr-like "#" lines.
 */
#include <stdbool.h>
#include <stdint.h>

#define ok(cond, ...) tap_ok(!!(cond), #cond, __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, want, ...) \
    tap_is_int((long long)(got), (long long)(want), #got, __FILE__, __LINE__, __VA_ARGS__)
#define is_str(got, want, ...) tap_is_str((got), (want), #got, __FILE__, __LINE__, __VA_ARGS__)
/* rel: allowed relative difference */
#define is_near(got, want, rel, ...) \
    tap_is_near((got), (want), (rel), #got, __FILE__, __LINE__, __VA_ARGS__)

/* The last arguments of each check are a format and its values: the behaviour that is held. */
bool tap_ok(bool good, const char *expr, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
bool tap_is_int(long long got, long long want, const char *expr, const char *file, int line,
                const char *fmt, ...) __attribute__((format(printf, 6, 7)));
bool tap_is_str(const char *got, const char *want, const char *expr, const char *file, int line,
                const char *fmt, ...) __attribute__((format(printf, 6, 7)));
bool tap_is_near(double got, double want, double rel, const char *expr, const char *file, int line,
                 const char *fmt, ...) __attribute__((format(printf, 7, 8)));

/*
 * Text against a file under tests/golden/. Comments in the file ("#" to the end of the line, with
 * the blanks before it) and empty lines are not compared, so that a golden file can explain itself.
 * UNSHARD_UPDATE_GOLDEN=1 writes the file where it is missing.
 */
bool is_golden(const char *got, const char *name);

void tap_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tap_skip(const char *why);
int tap_skip_all(const char *why); /* return its value from main */
_Noreturn void tap_bail(const char *why);
int tap_done(void);

/* A small generator for property tests: splitmix64, seeded from UNSHARD_SEED or a fixed number. */
uint64_t tap_seed(uint64_t fallback); /* prints the seed that is used */
uint64_t tap_random(uint64_t *state);
uint64_t tap_below(uint64_t *state, uint64_t n); /* uniform enough in [0, n) */

/* A whole file as a string on the heap, or NULL. */
char *tap_read_file(const char *path);
/* A path under the shared data folder, or NULL where there is none. Static buffer. */
const char *tap_shared(const char *path);

#endif
