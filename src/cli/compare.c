/*
 * What two runs have in common; see compare.h.
 *
 * Tasks are matched by their order: equal programs issue the same tasks in the same order.
 */
#include "src/cli/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/json.h"

int64_t compare_difference(const int64_t values[COMPARE_RUNS])
{
    int64_t difference;
    if (!__builtin_sub_overflow(values[0], values[1], &difference))
        return difference;
    return values[0] < values[1] ? INT64_MIN : INT64_MAX;
}

double compare_error_pct(const struct comparison *comparison, const int64_t values[COMPARE_RUNS])
{
    if (values[1] == 0 || comparison->emulated)
        return NAN;
    return 100 * ((double)values[0] - (double)values[1]) / fabs((double)values[1]);
}

static int64_t task_ns(const struct run_task *task)
{
    return compare_difference((const int64_t[]){task->end_ns, task->start_ns});
}

/* A string as it is, a whole number exactly, everything else as JSON. */
static const char *text_of(const struct json_at *at, struct arena *arena)
{
    const char *string;
    struct err err = {0};
    struct text text;
    uint64_t number;
    if (json_is_string(at) && json_string(at, &string, &err) == STATUS_OK)
        return arena_strdup(arena, string);
    if (json_is_number(at) && json_u64(at, UINT64_MAX, &number, &err) == STATUS_OK)
        return arena_printf(arena, "%" PRIu64, number);
    text_init(&text);
    json_print_line(at->node, &text);
    const char *printed = arena_strdup(arena, text.at);
    text_release(&text);
    return printed;
}

/* NULL where there is no such key. */
static const char *value_of(const struct json_at *object, const char *key, struct arena *arena)
{
    struct json_at at;
    struct err err = {0};
    if (!json_has(object, key) || json_get(object, key, &at, &err) != STATUS_OK)
        return NULL;
    return text_of(&at, arena);
}

/* Keys of one of the objects; of the second only those that the first has not. */
static void add_options(const struct json_at objects[COMPARE_RUNS], int which, struct arena *arena,
                        uint32_t *cap, struct comparison *out)
{
    for (struct json_at it = json_first(&objects[which]); it.node; it = json_next(&it)) {
        const char *key = json_key(&it);
        if (which > 0 && json_has(&objects[0], key))
            continue;
        struct compare_option option = {.name = arena_strdup(arena, key)};
        for (int i = 0; i < COMPARE_RUNS; i++)
            option.values[i] = value_of(&objects[i], key, arena);
        const char *a = option.values[0], *b = option.values[1];
        if (a && b ? !strcmp(a, b) : a == b)
            continue;
        out->options =
            arena_grow(arena, out->options, cap, out->n_option + 1, sizeof *out->options);
        out->options[out->n_option++] = option;
    }
}

static enum status compare_options(struct arena *arena, struct comparison *out, struct err *err)
{
    struct json_doc docs[COMPARE_RUNS] = {0};
    struct json_at objects[COMPARE_RUNS];
    enum status status = STATUS_OK;
    uint32_t cap = 0;
    for (int i = 0; i < COMPARE_RUNS && status == STATUS_OK; i++) {
        const struct stored_run *run = &out->runs[i];
        status = json_parse(run->run.plan_json,
                            arena_printf(arena, "options of run %" PRId64, run->id), &docs[i], err);
    }
    if (status != STATUS_OK)
        goto out;
    for (int i = 0; i < COMPARE_RUNS; i++)
        objects[i] = json_root(&docs[i]);
    for (int i = 0; i < COMPARE_RUNS; i++)
        add_options(objects, i, arena, &cap, out);
out:
    for (int i = 0; i < COMPARE_RUNS; i++)
        json_release(&docs[i]);
    return status;
}

static void sum_kinds(struct comparison *out)
{
    for (int i = 0; i < COMPARE_RUNS; i++) {
        const struct run *run = &out->runs[i].run;
        for (uint32_t t = 0; t < run->n_task; t++) {
            struct compare_kind *kind = &out->kinds[run->tasks[t].kind];
            kind->n[i]++;
            if (__builtin_add_overflow(kind->ns[i], task_ns(&run->tasks[t]), &kind->ns[i]))
                kind->ns[i] = INT64_MAX;
        }
    }
}

static const char *why_not_matched(const struct comparison *comparison, struct arena *arena)
{
    const struct stored_run *runs = comparison->runs;
    if (!comparison->same_program)
        return "their programs differ";
    for (int i = 0; i < COMPARE_RUNS; i++) {
        if (runs[i].run.n_task == 0)
            return arena_printf(arena, "run %" PRId64 " has none", runs[i].id);
    }
    if (runs[0].run.n_task != runs[1].run.n_task)
        return "one has more than the other";
    for (uint32_t t = 0; t < runs[0].run.n_task; t++) {
        if (runs[0].run.tasks[t].kind != runs[1].run.tasks[t].kind)
            return "their order differs";
    }
    return NULL;
}

/* Equal ones stay in the order of issue. */
static int by_difference(const void *a, const void *b)
{
    const struct compare_task *x = a, *y = b;
    const int64_t dx = compare_difference(x->ns), dy = compare_difference(y->ns);
    const uint64_t size_x = dx < 0 ? -(uint64_t)dx : (uint64_t)dx;
    const uint64_t size_y = dy < 0 ? -(uint64_t)dy : (uint64_t)dy;
    if (size_x != size_y)
        return size_x > size_y ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static void match_tasks(struct arena *arena, struct comparison *out)
{
    out->not_matched = why_not_matched(out, arena);
    if (out->not_matched)
        return;
    out->n_task = out->runs[0].run.n_task;
    out->tasks = arena_array(arena, struct compare_task, out->n_task);
    for (uint32_t t = 0; t < out->n_task; t++) {
        out->tasks[t].task = t;
        for (int i = 0; i < COMPARE_RUNS; i++)
            out->tasks[t].ns[i] = task_ns(&out->runs[i].run.tasks[t]);
    }
    qsort(out->tasks, out->n_task, sizeof *out->tasks, by_difference);
}

enum status compare_runs(const struct stored_run runs[COMPARE_RUNS], struct arena *arena,
                         struct comparison *out, struct err *err)
{
    const struct run *a = &runs[0].run, *b = &runs[1].run;
    struct comparison comparison = {
        .runs = runs,
        .same_program = a->program_hash == b->program_hash,
        .same_placement = a->placement_hash == b->placement_hash,
        .same_model = !strcmp(a->model, b->model) && !strcmp(a->model_json, b->model_json),
        .same_cluster =
            !strcmp(a->cluster, b->cluster) && !strcmp(a->cluster_json, b->cluster_json),
        .emulated = a->kind == RUN_EMULATED || b->kind == RUN_EMULATED,
    };
    const enum status status = compare_options(arena, &comparison, err);
    if (status != STATUS_OK)
        return status;
    sum_kinds(&comparison);
    match_tasks(arena, &comparison);
    *out = comparison;
    return STATUS_OK;
}
