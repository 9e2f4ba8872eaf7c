/*
 * Cases from their JSON; see oracle_read.h. Layout, divisions and peaks are in oracle_rows.c.
 */
#include "tests/oracle_read.h"

#include <string.h>

#include "tests/oracle_rows.h"

static enum status take_name(const struct json_at *at, struct oracle_file *file,
                             struct oracle_case *out, struct err *err)
{
    (void)file;
    return json_string(at, &out->name, err);
}

static enum status take_needs(const struct json_at *at, struct oracle_file *file,
                              struct oracle_case *out, struct err *err)
{
    (void)file;
    return json_string(at, &out->needs, err);
}

static enum status take_model(const struct json_at *at, struct oracle_file *file,
                              struct oracle_case *out, struct err *err)
{
    (void)file, (void)err;
    out->model = *at;
    out->has_model = true;
    return STATUS_OK;
}

static enum status take_units_file(const struct json_at *at, struct oracle_file *file,
                                   struct oracle_case *out, struct err *err)
{
    (void)file, (void)err;
    out->units_file = *at;
    out->has_units_file = true;
    return STATUS_OK;
}

static enum status take_numbers(const struct json_at *at, struct oracle_file *file,
                                struct oracle_case *out, struct err *err)
{
    (void)file, (void)err;
    out->numbers = *at;
    out->has_numbers = true;
    return STATUS_OK;
}

static enum status take_args(const struct json_at *at, struct oracle_file *file,
                             struct oracle_case *out, struct err *err)
{
    enum status status = STATUS_OK;
    uint32_t cap = 0;

    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it)) {
        out->args = arena_grow(&file->arena, out->args, &cap, out->n_arg + 1, sizeof *out->args);
        status = json_string(&it, &out->args[out->n_arg++], err);
    }
    return status;
}

static enum status take_kinds(const struct json_at *at, struct oracle_file *file,
                              struct oracle_case *out, struct err *err)
{
    (void)file;
    for (struct json_at it = json_first(at); it.node; it = json_next(&it)) {
        const char *word;
        enum status status = json_string(&it, &word, err);
        if (status)
            return status;
        const enum oracle_event_kind kind = oracle_event_kind_of(word);
        if (kind == ORACLE_EVENT_N)
            return json_fail(&it, err, "'%s' is no kind of event", word);
        out->kinds |= 1u << kind;
    }
    return STATUS_OK;
}

static enum status read_events(const struct json_at *at, struct oracle_file *file,
                               struct oracle_events *out, struct err *err)
{
    enum status status = STATUS_OK;
    uint32_t cap = 0;

    out->stated = true;
    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it)) {
        out->at = arena_grow(&file->arena, out->at, &cap, out->n + 1, sizeof *out->at);
        status = oracle_event_parse(&it, &file->arena, &out->at[out->n++], err);
    }
    return status;
}

static enum status take_events(const struct json_at *at, struct oracle_file *file,
                               struct oracle_case *out, struct err *err)
{
    return read_events(at, file, &out->events, err);
}

static enum status take_first(const struct json_at *at, struct oracle_file *file,
                              struct oracle_case *out, struct err *err)
{
    return read_events(at, file, &out->first, err);
}

static enum status take_forward(const struct json_at *at, struct oracle_file *file,
                                struct oracle_case *out, struct err *err)
{
    return read_events(at, file, &out->spans[ORACLE_FORWARD], err);
}

static enum status take_backward(const struct json_at *at, struct oracle_file *file,
                                 struct oracle_case *out, struct err *err)
{
    return read_events(at, file, &out->spans[ORACLE_BACKWARD], err);
}

static enum status take_count(const struct json_at *at, struct oracle_counts *counts,
                              struct err *err)
{
    const enum oracle_event_kind kind = oracle_event_kind_of(json_key(at));

    if (kind == ORACLE_EVENT_N)
        return json_fail(at, err, "nothing of this name is counted");
    return json_u64(at, UINT32_MAX, &counts->of[kind], err);
}

static enum status read_counts(const struct json_at *at, struct oracle_counts *out, struct err *err)
{
    enum status status = STATUS_OK;

    out->stated = true;
    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it))
        if (!json_is_object(&it))
            status = take_count(&it, out, err);
    return status;
}

static enum status take_counts(const struct json_at *at, struct oracle_file *file,
                               struct oracle_case *out, struct err *err)
{
    static const char *const spans[] = {"forward", "backward"};
    enum status status = read_counts(at, &out->counts, err);

    (void)file;
    for (int span = 0; span < ORACLE_SPANS && !status; span++) {
        struct json_at counts;
        if (json_has(at, spans[span]) && !(status = json_get(at, spans[span], &counts, err)))
            status = read_counts(&counts, &out->span_counts[span], err);
    }
    return status;
}

/* "bf16+fp32" */
static enum status read_dtypes(const struct json_at *at, struct oracle_file *file, unsigned *out,
                               struct err *err)
{
    const char *text;
    enum status status = json_string(at, &text, err);
    char *rest = status ? NULL : arena_strdup(&file->arena, text);

    for (char *word; !status && (word = strsep(&rest, "+"));) {
        const enum dtype dtype = oracle_dtype_of(word);
        if (dtype == DTYPE_N)
            return json_fail(at, err, "'%s' is no dtype", word);
        *out |= 1u << dtype;
    }
    return status;
}

static struct oracle_reads *add_reads(struct oracle_file *file, struct oracle_case *out,
                                      uint32_t *cap)
{
    out->reads = arena_grow(&file->arena, out->reads, cap, out->n_read + 1, sizeof *out->reads);
    return &out->reads[out->n_read++];
}

static enum status read_packs(const struct json_at *at, struct oracle_file *file,
                              struct oracle_reads *out, struct err *err)
{
    enum status status = STATUS_OK;
    uint32_t cap = 0;

    out->unit = json_key(at);
    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it)) {
        out->packs = arena_grow(&file->arena, out->packs, &cap, out->n + 1, sizeof *out->packs);
        status = read_dtypes(&it, file, &out->packs[out->n++], err);
    }
    return status;
}

static enum status take_gradient_dtypes(const struct json_at *at, struct oracle_file *file,
                                        struct oracle_case *out, struct err *err)
{
    enum status status = STATUS_OK;
    uint32_t cap = 0;

    if (json_is_string(at)) {
        struct oracle_reads *reads = add_reads(file, out, &cap);
        reads->packs = arena_array(&file->arena, unsigned, 1);
        return read_dtypes(at, file, reads->packs, err);
    }
    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it))
        status = read_packs(&it, file, add_reads(file, out, &cap), err);
    return status;
}

/* What a case may hold. No function: it explains the case, waits for a comparison that is not there yet, or is
   read by oracle_read_peaks(). */
static const struct {
    const char *key;
    enum status (*take)(const struct json_at *at, struct oracle_file *file, struct oracle_case *out,
                        struct err *err);
} keys[] = {
    {"name", take_name},
    {"needs", take_needs},
    {"model", take_model},
    {"units_file", take_units_file},
    {"args", take_args},
    {"kinds", take_kinds},
    {"events", take_events},
    {"first", take_first},
    {"events_forward", take_forward},
    {"events_backward", take_backward},
    {"counts", take_counts},
    {"gradient_dtypes", take_gradient_dtypes},
    {"params", oracle_take_params},
    {"divide", oracle_take_divide},
    {"divide_stated", oracle_take_divide},
    {"numbers", take_numbers},
    {"memory", NULL},
    {"kernels", NULL},
    {"peaks", NULL},
    {"sizes", NULL},
    {"test", NULL},
    {"commit", NULL},
    {"flags", NULL},
    {"formula", NULL},
    {"checkpoint", NULL},
    {"units", NULL},
    {"prefetch_lists", NULL},
    {"unchecked", NULL},
    {"no_op", NULL},
    {"events_backward_2", NULL},
};

static enum status take_key(const struct json_at *at, struct oracle_file *file,
                            struct oracle_case *out, struct err *err)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].key, json_key(at)) == 0)
            return keys[i].take ? keys[i].take(at, file, out, err) : STATUS_OK;
    return json_fail(at, err, "a case has no such key");
}

static enum status read_case(const struct json_at *at, struct oracle_file *file,
                             struct oracle_case *out, struct err *err)
{
    enum status status = STATUS_OK;

    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it))
        status = take_key(&it, file, out, err);
    if (out->kinds == 0)
        out->kinds = ~0u;
    if (!status && !out->name)
        status = json_fail(at, err, "missing key 'name'");
    return status ? status : oracle_read_peaks(at, file, out, err);
}

static enum status read_cases(const struct json_at *root, struct oracle_file *out, struct err *err)
{
    struct json_at cases, stand_in;
    enum status status = json_get(root, "cases", &cases, err);
    const bool has_stand_in = json_has(root, "stand_in");
    uint32_t cap = 0;

    if (!status && has_stand_in)
        status = json_get(root, "stand_in", &stand_in, err);
    if (status)
        return status;
    for (struct json_at it = json_first(&cases); it.node && !status; it = json_next(&it)) {
        out->cases = arena_grow(&out->arena, out->cases, &cap, out->n_case + 1, sizeof *out->cases);
        if (has_stand_in)
            take_model(&stand_in, out, &out->cases[out->n_case], err);
        status = read_case(&it, out, &out->cases[out->n_case++], err);
    }
    return status;
}

static enum status read_source(const struct json_at *root, struct oracle_file *out, struct err *err)
{
    struct json_at source;
    const char *schema, *kind = NULL;
    enum status status = json_get_string(root, "schema", &schema, err);

    if (!status && strcmp(schema, "unshard.oracle/1") != 0)
        return json_fail(root, err, "schema '%s' is not unshard.oracle/1", schema);
    if (!status)
        status = json_get(root, "source", &source, err);
    if (!status)
        status = json_get_string(&source, "kind", &kind, err);
    out->recorded = !status && strcmp(kind, "recorded") == 0;
    if (out->recorded)
        status = json_get_string(&source, "torch", &out->torch, err);
    return status;
}

enum status oracle_read(const char *path, struct oracle_file *out, struct err *err)
{
    *out = (struct oracle_file){0};
    arena_init(&out->arena);
    enum status status = json_read_file(path, &out->doc, err);
    if (status)
        return status;
    const struct json_at root = json_root(&out->doc);
    status = read_source(&root, out, err);
    return status ? status : read_cases(&root, out, err);
}

void oracle_release(struct oracle_file *file)
{
    json_release(&file->doc);
    arena_release(&file->arena);
}
