/*
 * Measuring and telling, the same for all benchmarks; see bench.h. Knows nothing of what is
 * measured.
 */
#include "src/cli/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/json.h"

static const struct {
    int text_decimals, json_decimals;
    char goal; /* which side of it is good */
} units[] = {
    [BENCH_US] = {1, 3, '<'},
    [BENCH_MS] = {2, 6, '<'},
    [BENCH_PER_S] = {0, 0, '>'},
    [BENCH_PERCENT] = {1, 3, '>'},
    [BENCH_PERCENT_AT_MOST] = {1, 3, '<'},
    [BENCH_MB] = {0, 3, '<'},
};

static int64_t now_ns(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median_s(int64_t *times_ns, unsigned n)
{
    qsort(times_ns, n, sizeof *times_ns, compare_ns);
    return (double)times_ns[n / 2] * 1e-9;
}

enum status bench_measure_in_turn(const struct bench_stage *stages, unsigned n, void *self,
                                  struct bench_time *out, struct err *err)
{
    int64_t wall[BENCH_MAX_TURNS][BENCH_MAX_RUNS], cpu[BENCH_MAX_TURNS][BENCH_MAX_RUNS];
    const unsigned warm_up = stages->warm_up, runs = stages->runs;

    for (unsigned i = 0; i < (warm_up + runs) * n; i++) {
        const struct bench_stage *stage = &stages[i % n];
        const unsigned run = i / n;
        if (stage->before)
            stage->before(self);
        const int64_t cpu_start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        const int64_t wall_start = now_ns(CLOCK_MONOTONIC);
        enum status status = stage->run(self, err);
        if (status != STATUS_OK)
            return status;
        if (run < warm_up)
            continue;
        wall[i % n][run - warm_up] = now_ns(CLOCK_MONOTONIC) - wall_start;
        cpu[i % n][run - warm_up] = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    }
    for (unsigned i = 0; i < n; i++)
        out[i] = (struct bench_time){median_s(wall[i], runs), median_s(cpu[i], runs)};
    return STATUS_OK;
}

enum status bench_measure(const struct bench_stage *stage, void *self, struct bench_time *out,
                          struct err *err)
{
    return bench_measure_in_turn(stage, 1, self, out, err);
}

/* With commas where it is a large whole number. */
static void print_value(double value, int decimals, char buffer[32])
{
    if (decimals == 0)
        text_count((uint64_t)value, buffer);
    else
        snprintf(buffer, 32, "%.*f", decimals, value);
}

static void print_text(const struct bench_report *report, const struct term *term, struct text *out)
{
    const struct prepared *prepared = report->prepared;
    char value[32], goal[32], limit[36];
    text_add(out, "%s%s%s on %llu GPUs: %u units", term->strong, prepared->model.name, term->plain,
             (unsigned long long)prepared->plan.world, prepared->plan.n_unit);
    for (unsigned i = 0; i < report->n_fact; i++)
        text_add(out, ", %s %s", text_count(report->facts[i].n, value), report->facts[i].words);
    text_add(out, "\n\n%-24s%12s%14s  %s\n", "", "median", "goal", "what it covers");
    for (unsigned i = 0; i < report->n_line; i++) {
        const struct bench_line *line = &report->lines[i];
        if (!isfinite(line->value))
            continue;
        *limit = '\0';
        if (line->goal > 0) {
            print_value(line->goal, 0, goal);
            snprintf(limit, sizeof limit, "%c %s", units[line->unit].goal, goal);
        }
        print_value(line->value, units[line->unit].text_decimals, value);
        text_add(out, "%-24s%12s%14s  %s\n", line->key, value, limit, line->covers);
    }
}

static void print_json(const struct bench_report *report, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.bench/1");
    json_add_string(root, "benchmark", report->benchmark);
    json_add_string(root, "model", report->prepared->model.name);
    json_add_u64(root, "gpus", report->prepared->plan.world);
    json_add_u64(root, "units", report->prepared->plan.n_unit);
    for (unsigned i = 0; i < report->n_fact; i++)
        json_add_u64(root, report->facts[i].key, report->facts[i].n);
    for (unsigned i = 0; i < report->n_line; i++) {
        const struct bench_line *line = &report->lines[i];
        if (isfinite(line->value))
            json_add_decimal(root, line->key, line->value, units[line->unit].json_decimals);
    }
    json_print(root, out);
    json_free(root);
}

void bench_print(const struct bench_report *report, const struct options *options,
                 struct output *out)
{
    if (option_given(options, OPTION_JSON))
        print_json(report, &out->result);
    else
        print_text(report, &out->term, &out->result);
}
