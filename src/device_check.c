/*
 * The record of the device check as TAP and as JSON; see device_check.h.
 */
#include "src/device_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char schema[] = "unshard.device_check/1";

#define X(id, name) [CHECK_##id] = name,
static const char *const verdicts[CHECK_VERDICT_N] = {CHECK_VERDICTS(X)};
#undef X
#define X(id, name) [CHECK_BOUND_##id] = name,
static const char *const bounds[CHECK_BOUND_N] = {CHECK_BOUNDS(X)};
#undef X
#define X(id, name, decimals) [CHECK_##id] = {name, decimals},
static const struct {
    const char *name;
    int decimals;
} units[CHECK_UNIT_N] = {CHECK_UNITS(X)};
#undef X

const char *check_verdict_name(enum check_verdict verdict)
{
    return verdicts[verdict];
}

const char *check_bound_name(enum check_bound bound)
{
    return bounds[bound];
}

const char *check_unit_name(enum check_unit unit)
{
    return units[unit].name;
}

bool device_check_passed(const struct device_check *check)
{
    bool passed = true;

    for (uint32_t i = 0; i < check->n_line; i++)
        passed &= check->lines[i].verdict != CHECK_FAILED;
    return passed;
}

/* ---- TAP ------------------------------------------------------------------------------------------ */

static void add_value(const struct check_line *line, double value, struct text *out)
{
    const char *unit = units[line->unit].name;
    text_add(out, "%.*f%s%s", units[line->unit].decimals, value, *unit ? " " : "", unit);
}

void device_check_tap(const struct device_check *check, struct text *out)
{
    static const char *const begins[CHECK_VERDICT_N] = {
        [CHECK_TOLD] = "#", [CHECK_PASSED] = "ok -", [CHECK_FAILED] = "not ok -"};

    for (uint32_t i = 0; i < check->n_line; i++) {
        const struct check_line *line = &check->lines[i];
        text_add(out, "%s %s, %s: ", begins[line->verdict], check->part, line->words);
        add_value(line, line->value, out);
        if (line->bound != CHECK_BOUND_NONE) {
            text_add(out, ", %s ", bounds[line->bound]);
            add_value(line, line->limit, out);
        }
        text_add(out, "\n");
    }
}

/* ---- JSON ----------------------------------------------------------------------------------------- */

struct cJSON *device_check_to_json(const struct device_check *check)
{
    struct cJSON *root = json_new_object(), *lines;

    json_add_string(root, "schema", schema);
    json_add_string(root, "part", check->part);
    json_add_string(root, "device", check->device);
    json_add_string(root, "name", check->name);
    json_add_string(root, "software", check->software);
    json_add_string(root, "tool_version", check->tool_version);
    lines = json_add_array(root, "lines");
    for (uint32_t i = 0; i < check->n_line; i++) {
        const struct check_line *line = &check->lines[i];
        struct cJSON *object = json_add_object(lines, NULL);
        json_add_string(object, "key", line->key);
        json_add_string(object, "words", line->words);
        json_add_exact(object, "value", line->value);
        json_add_string(object, "unit", units[line->unit].name);
        json_add_string(object, "bound", bounds[line->bound]);
        json_add_exact(object, "limit", line->limit);
        json_add_string(object, "verdict", verdicts[line->verdict]);
    }
    return root;
}

static enum status read_text(const struct json_at *at, const char *key, struct arena *arena,
                             const char **out, struct err *err)
{
    const char *text = NULL;
    const enum status status = json_get_string(at, key, &text, err);

    if (status == STATUS_OK)
        *out = arena_strdup(arena, text);
    return status;
}

/* Which of the names it is. */
static enum status read_word(const struct json_at *at, const char *key, uint8_t n,
                             const char *(*name)(uint8_t), uint8_t *out, struct err *err)
{
    const char *text = NULL;
    const enum status status = json_get_string(at, key, &text, err);

    if (status != STATUS_OK)
        return status;
    for (uint8_t i = 0; i < n; i++)
        if (!strcmp(text, name(i))) {
            *out = i;
            return STATUS_OK;
        }
    return json_fail(at, err, "'%s' cannot be '%.40s'", key, text);
}

static const char *unit_at(uint8_t i)
{
    return units[i].name;
}

static const char *bound_at(uint8_t i)
{
    return bounds[i];
}

static const char *verdict_at(uint8_t i)
{
    return verdicts[i];
}

/* What is not finite was written as null. */
static enum status read_number(const struct json_at *at, const char *key, double *out,
                               struct err *err)
{
    *out = NAN;
    return json_has(at, key) ? json_get_double(at, key, out, err) : STATUS_OK;
}

static enum status read_line(const struct json_at *at, struct arena *arena, struct check_line *out,
                             struct err *err)
{
    enum status status = read_text(at, "key", arena, &out->key, err);

    if (status == STATUS_OK)
        status = read_text(at, "words", arena, &out->words, err);
    if (status == STATUS_OK)
        status = read_number(at, "value", &out->value, err);
    if (status == STATUS_OK)
        status = read_number(at, "limit", &out->limit, err);
    if (status == STATUS_OK)
        status = read_word(at, "unit", CHECK_UNIT_N, unit_at, &out->unit, err);
    if (status == STATUS_OK)
        status = read_word(at, "bound", CHECK_BOUND_N, bound_at, &out->bound, err);
    if (status == STATUS_OK)
        status = read_word(at, "verdict", CHECK_VERDICT_N, verdict_at, &out->verdict, err);
    return status;
}

static enum status read_lines(const struct json_at *root, struct arena *arena,
                              struct device_check *out, struct err *err)
{
    struct json_at array, at;
    struct check_line *lines;
    uint32_t n = 0;
    enum status status = json_get(root, "lines", &array, err);

    if (status != STATUS_OK)
        return status;
    if (!json_is_array(&array))
        return json_fail(&array, err, "has to be a list");
    for (at = json_first(&array); at.node; at = json_next(&at))
        n++;
    lines = arena_array(arena, struct check_line, n + 1);
    for (at = json_first(&array); at.node && status == STATUS_OK; at = json_next(&at))
        status = read_line(&at, arena, &lines[out->n_line++], err);
    out->lines = lines;
    return status;
}

enum status device_check_from_json(const struct json_doc *doc, struct arena *arena,
                                   struct device_check *out, struct err *err)
{
    const struct json_at root = json_root(doc);
    struct device_check check = {0};
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"part", &check.part},
                 {"device", &check.device},
                 {"name", &check.name},
                 {"software", &check.software},
                 {"tool_version", &check.tool_version}};
    const char *text = NULL;
    enum status status = json_get_string(&root, "schema", &text, err);

    if (status == STATUS_OK && strcmp(text, schema) != 0)
        status = json_fail(&root, err, "is '%.40s', not %s", text, schema);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == STATUS_OK; i++)
        status = read_text(&root, texts[i].key, arena, texts[i].to, err);
    if (status == STATUS_OK)
        status = read_lines(&root, arena, &check, err);
    if (status == STATUS_OK)
        *out = check;
    return status;
}
