/*
 * A part of the device check (spec GPU 6) as it came out: what was looked at, what it should be, what it
 * is. The record that is printed as TAP, written as JSON and stored.
 *
 * Plain data in one arena; knows no device and no database. A verdict is only what was decided: a speed
 * on a device that nobody judges is told. Names of keys stay, so that checks of two days compare.
 */
#ifndef SRC_DEVICE_CHECK_H
#define SRC_DEVICE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "src/arena.h"
#include "src/err.h"
#include "src/json.h"

/* X(ENUM, name) */
#define CHECK_VERDICTS(X) \
    X(TOLD, "told")       \
    X(PASSED, "passed")   \
    X(FAILED, "failed")
#define CHECK_BOUNDS(X)   \
    X(NONE, "none")       \
    X(AT_MOST, "at most") \
    X(AT_LEAST, "at least")
/* X(ENUM, name, decimals) */
#define CHECK_UNITS(X)     \
    X(COUNT, "", 0)        \
    X(BYTES, "B", 0)       \
    X(PERCENT, "%", 1)     \
    X(GB_PER_S, "GB/s", 1) \
    X(US, "us", 2)         \
    X(MS, "ms", 3)         \
    X(TIMES, "times", 3)

enum check_verdict {
#define X(id, name) CHECK_##id,
    CHECK_VERDICTS(X)
#undef X
        CHECK_VERDICT_N
};
enum check_bound {
#define X(id, name) CHECK_BOUND_##id,
    CHECK_BOUNDS(X)
#undef X
        CHECK_BOUND_N
};
enum check_unit {
#define X(id, name, decimals) CHECK_##id,
    CHECK_UNITS(X)
#undef X
        CHECK_UNIT_N
};

struct check_line {
    const char *key, *words; /* words: what a person reads */
    double value, limit;     /* limit: of the bound */
    uint8_t unit, bound, verdict;
};

struct device_check {
    const char *part, *device; /* "packing"; "cuda" */
    const char *name, *software;
    const char *tool_version;
    const struct check_line *lines;
    uint32_t n_line;
};

/* Whether nothing failed. */
bool device_check_passed(const struct device_check *check);

/* Schema "unshard.device_check/1". The root belongs to the caller. */
struct cJSON *device_check_to_json(const struct device_check *check);
/* Texts to arena. STATUS_INPUT names the place. */
enum status device_check_from_json(const struct json_doc *doc, struct arena *arena,
                                   struct device_check *out, struct err *err);

/* Without numbers, since parts follow one another: "ok - words: value", and a comment for what is
   told. */
void device_check_tap(const struct device_check *check, struct text *out);

const char *check_verdict_name(enum check_verdict verdict);
const char *check_bound_name(enum check_bound bound);
const char *check_unit_name(enum check_unit unit);

#endif
