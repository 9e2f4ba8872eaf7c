/*
 * Two runs side by side: what is said of runs made by hand, options key by key, and on random runs
 * what must hold of any two.
 */
#include "src/cli/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/json.h"
#include "tests/run_make.h"
#include "tests/tap.h"

enum { N_RANDOM = 200 };

/* Both shapes of a comparison, which must not fail. */
static void both_shapes(const struct stored_run *runs, char **text, char **json)
{
    const struct term term = term_open(COLOR_NEVER);
    struct comparison comparison;
    struct arena arena;
    struct err err = {0};
    struct text out[2];
    arena_init(&arena);
    text_init(&out[0]);
    text_init(&out[1]);
    if (compare_runs(runs, &arena, &comparison, &err) != STATUS_OK)
        tap_bail(err.text);
    compare_text(&comparison, &arena, &term, &out[0]);
    compare_json(&comparison, &out[1]);
    *text = out[0].at;
    *json = out[1].at;
    arena_release(&arena);
}

static void golden(const struct stored_run *runs, const char *name)
{
    char *text, *json, file[80];
    both_shapes(runs, &text, &json);
    snprintf(file, sizeof file, "compare-%s.txt", name);
    is_golden(text, file);
    snprintf(file, sizeof file, "compare-%s.json", name);
    is_golden(json, file);
    free(text);
    free(json);
}

static void by_hand(void)
{
    struct stored_run runs[3] = {{.id = 1}, {.id = 2}, {.id = 3}};
    run_by_hand(&runs[0].run);
    run_by_hand_real(&runs[1].run);
    run_by_hand_failed(&runs[2].run);
    golden(&runs[0], "real");
    golden(&runs[1], "failed");
    struct stored_run other[2] = {runs[0], runs[0]};
    other[1].id = 4;
    other[1].run.program_hash++;
    other[1].run.placement_hash++;
    other[1].run.model = "large";
    other[1].run.cluster_json = "{\"name\":\"toy\",\"more\":1}";
    other[1].run.metrics[RUN_METRIC_PEAK_RESERVED] += 5000;
    other[1].run.metrics[RUN_METRIC_FITS] = 0;
    golden(other, "other");
}

/* "name: first|second" a line, NULL for what is not there. */
static void list_options(const struct comparison *comparison, struct text *out)
{
    text_add(out, "%s", "");
    for (uint32_t i = 0; i < comparison->n_option; i++) {
        const struct compare_option *option = &comparison->options[i];
        text_add(out, "%s: %s|%s\n", option->name, option->values[0] ? option->values[0] : "NULL",
                 option->values[1] ? option->values[1] : "NULL");
    }
}

static void options(void)
{
    static const struct {
        const char *first, *second, *want;
    } cases[] = {
        {"{}", "{}", ""},
        {"{\"a\":1,\"b\":\"x\"}", "{\"b\":\"x\",\"a\":1}", ""},
        {"{\"a\":1}", "{\"a\":2}", "a: 1|2\n"},
        {"{\"a\":\"1\"}", "{}", "a: 1|NULL\n"},
        {"{}", "{\"a\":\"\"}", "a: NULL|\n"},
        {"{\"c\":1,\"a\":1}", "{\"b\":1,\"a\":0}", "c: 1|NULL\na: 1|0\nb: NULL|1\n"},
        {"{\"a\":[1,\"x\"]}", "{\"a\":[1,\"y\"]}", "a: [1,\"x\"]|[1,\"y\"]\n"},
        {"{\"a\":9007199254740991}", "{\"a\":true}", "a: 9007199254740991|true\n"},
        {"{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stored_run runs[2] = {{.id = 1}, {.id = 2}};
        struct comparison comparison;
        struct arena arena;
        struct err err = {0};
        struct text got;
        arena_init(&arena);
        text_init(&got);
        run_by_hand(&runs[0].run);
        run_by_hand(&runs[1].run);
        runs[0].run.plan_json = cases[i].first;
        runs[1].run.plan_json = cases[i].second;
        is_int(compare_runs(runs, &arena, &comparison, &err), STATUS_OK, "options %s and %s",
               cases[i].first, cases[i].second);
        list_options(&comparison, &got);
        is_str(got.at, cases[i].want, "differ where they differ");
        text_release(&got);
        arena_release(&arena);
    }
}

static void no_options(void)
{
    struct stored_run runs[2] = {{.id = 6}, {.id = 7}};
    struct comparison comparison;
    struct arena arena;
    struct err err = {0};
    arena_init(&arena);
    run_by_hand(&runs[0].run);
    run_by_hand(&runs[1].run);
    runs[1].run.plan_json = "{\"a\":";
    is_int(compare_runs(runs, &arena, &comparison, &err), STATUS_INPUT, "options that are no JSON");
    ok(strstr(err.text, "options of run 7"), "are those of a run: %s", err.text);
    arena_release(&arena);
}

static void errors(void)
{
    static const struct {
        int64_t values[2], difference;
        double pct;
    } cases[] = {
        {{90, 100}, -10, -10},
        {{100, 80}, 20, 25},
        {{0, 0}, 0, NAN},
        {{7, 0}, 7, NAN},
        {{-50, -100}, 50, 50},
        {{INT64_MAX, -1}, INT64_MAX, 100 * 0x1p63},
        {{INT64_MIN + 1, 2}, INT64_MIN, -50 * 0x1p63},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *values = cases[i].values;
        const struct comparison real = {.emulated = false}, emulated = {.emulated = true};
        const double got = compare_error_pct(&real, values), want = cases[i].pct;
        is_int(compare_difference(values), cases[i].difference, "%" PRId64 " less %" PRId64,
               values[0], values[1]);
        ok(isnan(want) ? isnan(got) : fabs(got - want) <= 1e-9 * fabs(want),
           "is %g %% of the second", got);
        ok(isnan(compare_error_pct(&emulated, values)), "and no error of an emulated run");
    }
}

/* Sums over kinds by a walk over all tasks for each; a count of what is wrong. */
static uint32_t wrong_kinds(const struct comparison *comparison)
{
    uint32_t n_wrong = 0;
    for (int kind = 0; kind < TASK_KIND_N; kind++) {
        for (int i = 0; i < COMPARE_RUNS; i++) {
            const struct run *run = &comparison->runs[i].run;
            uint32_t n = 0;
            int64_t ns = 0;
            for (uint32_t t = 0; t < run->n_task; t++) {
                if (run->tasks[t].kind != kind)
                    continue;
                n++;
                ns += run->tasks[t].end_ns - run->tasks[t].start_ns;
            }
            n_wrong += comparison->kinds[kind].n[i] != n || comparison->kinds[kind].ns[i] != ns;
        }
    }
    return n_wrong;
}

static uint32_t wrong_tasks(const struct comparison *comparison)
{
    uint64_t before = UINT64_MAX;
    uint32_t n_wrong = 0;
    int64_t left_ns = 0;
    for (uint32_t i = 0; i < comparison->n_task; i++) {
        const struct compare_task *task = &comparison->tasks[i];
        const uint64_t size = (uint64_t)llabs(task->ns[0] - task->ns[1]);
        n_wrong += size > before;
        before = size;
        left_ns += task->ns[0] - task->ns[1];
    }
    for (int kind = 0; kind < TASK_KIND_N && comparison->n_task > 0; kind++)
        left_ns -= comparison->kinds[kind].ns[0] - comparison->kinds[kind].ns[1];
    return n_wrong + (left_ns != 0);
}

/* The times of a program that is the same are others. */
static void measure_again(struct run *run, struct arena *arena, uint64_t *random)
{
    struct run_task *tasks = arena_array(arena, struct run_task, run->n_task);
    for (uint32_t i = 0; i < run->n_task; i++) {
        tasks[i] = run->tasks[i];
        tasks[i].end_ns += (int64_t)tap_below(random, 50);
    }
    run->tasks = tasks;
}

static void random_runs(void)
{
    uint64_t random = tap_seed(5);
    uint32_t n_kinds = 0, n_tasks = 0, n_matched = 0, n_self = 0;
    for (int i = 0; i < N_RANDOM; i++) {
        struct stored_run runs[2] = {{.id = 1}, {.id = 2}};
        struct comparison comparison, self;
        struct arena arena;
        struct err err = {0};
        char *text, *json;
        arena_init(&arena);
        run_make(&runs[0].run, &arena, &random, 80, 4);
        run_make(&runs[1].run, &arena, &random, 80, 4);
        if (i % 2) {
            runs[1].run = runs[0].run;
            measure_again(&runs[1].run, &arena, &random);
        }
        if (compare_runs(runs, &arena, &comparison, &err) != STATUS_OK)
            tap_bail(err.text);
        n_kinds += wrong_kinds(&comparison);
        n_tasks += wrong_tasks(&comparison);
        n_matched += comparison.n_task > 0;
        const struct stored_run twice[] = {runs[0], runs[0]};
        if (compare_runs(twice, &arena, &self, &err) != STATUS_OK)
            tap_bail(err.text);
        n_self += !self.same_program || !self.same_placement || !self.same_model ||
                  !self.same_cluster || self.n_option > 0 ||
                  (self.n_task > 0 && compare_difference(self.tasks[0].ns) != 0);
        both_shapes(runs, &text, &json);
        free(text);
        free(json);
        arena_release(&arena);
    }
    is_int(n_kinds, 0, "kinds of %d random pairs sum to what their tasks take", N_RANDOM);
    is_int(n_tasks, 0, "tasks are in order of their difference, and sum to that of the kinds");
    ok(n_matched > N_RANDOM / 4, "tasks of the same program are matched");
    is_int(n_self, 0, "a run does not differ from itself");
}

/* What must be seen as no match although the hashes are equal. */
static void no_match(void)
{
    static const struct {
        uint32_t n_task;
        uint8_t first_kind;
        const char *want;
    } cases[] = {
        {6, TASK_ALL_GATHER, NULL},
        {0, TASK_ALL_GATHER, "run 2 has none"},
        {5, TASK_ALL_GATHER, "one has more than the other"},
        {6, TASK_FORWARD, "their order differs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stored_run runs[2] = {{.id = 1}, {.id = 2}};
        struct comparison comparison;
        struct arena arena;
        struct err err = {0};
        arena_init(&arena);
        run_by_hand(&runs[0].run);
        run_by_hand_real(&runs[1].run);
        runs[1].run.n_task = cases[i].n_task;
        runs[1].run.tasks[0].kind = cases[i].first_kind;
        is_int(compare_runs(runs, &arena, &comparison, &err), STATUS_OK, "equal hashes, %s",
               cases[i].want ? cases[i].want : "equal tasks");
        is_str(comparison.not_matched, cases[i].want, "is what is said");
        is_int(comparison.n_task, cases[i].want ? 0 : 6, "tasks are matched all or none");
        arena_release(&arena);
    }
}

int main(void)
{
    by_hand();
    options();
    no_options();
    errors();
    no_match();
    random_runs();
    return tap_done();
}
