/*
 * A comparison as a page for people: sentences, then tables.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/compare.h"
#include "src/cli/grid.h"
#include "src/cli/page.h"

enum { MAX_COLUMN = 6 };

/* What a number of a run is to people. */
enum measure { MEASURE_NS, MEASURE_MILLI, MEASURE_PCT, MEASURE_BYTES, MEASURE_COUNT, MEASURE_BOOL };

/* Times and rates differ in percent, everything else exactly. */
static bool is_inexact(enum measure measure)
{
    return measure == MEASURE_NS || measure == MEASURE_MILLI || measure == MEASURE_PCT;
}

/* clang-format off */
static const struct {
    const char *title;
    enum measure measure;
} metrics[RUN_METRIC_N] = {
    [RUN_METRIC_STEP_LOW] = {"step, low", MEASURE_NS},
    [RUN_METRIC_STEP] = {"step", MEASURE_NS},
    [RUN_METRIC_STEP_HIGH] = {"step, high", MEASURE_NS},
    [RUN_METRIC_COMPUTE] = {"compute", MEASURE_NS},
    [RUN_METRIC_COMM] = {"communication", MEASURE_NS},
    [RUN_METRIC_EXPOSED_COMM] = {"exposed", MEASURE_NS},
    [RUN_METRIC_CONTENTION] = {"contention", MEASURE_NS},
    [RUN_METRIC_RETRY] = {"retries", MEASURE_NS},
    [RUN_METRIC_TOKENS_PER_S_PER_GPU] = {"tokens/s per GPU", MEASURE_MILLI},
    [RUN_METRIC_MFU] = {"MFU", MEASURE_PCT},
    [RUN_METRIC_HFU] = {"HFU", MEASURE_PCT},
    [RUN_METRIC_PEAK_ALLOCATED] = {"peak allocated", MEASURE_BYTES},
    [RUN_METRIC_PEAK_ACTIVE] = {"peak active", MEASURE_BYTES},
    [RUN_METRIC_PEAK_RESERVED] = {"peak reserved", MEASURE_BYTES},
    [RUN_METRIC_FIRST_PEAK_ALLOCATED] = {"first step allocated", MEASURE_BYTES},
    [RUN_METRIC_FIRST_PEAK_RESERVED] = {"first step reserved", MEASURE_BYTES},
    [RUN_METRIC_INIT_PEAK] = {"init reserved", MEASURE_BYTES},
    [RUN_METRIC_OUTSIDE] = {"outside torch", MEASURE_BYTES},
    [RUN_METRIC_MEMORY_LIMIT] = {"memory of a GPU", MEASURE_BYTES},
    [RUN_METRIC_FITS] = {"fits", MEASURE_BOOL},
    [RUN_METRIC_RETRIES] = {"allocator retries", MEASURE_COUNT},
    [RUN_METRIC_WITHHELD] = {"withheld", MEASURE_BYTES},
};
/* clang-format on */

static const char *plus(int64_t n)
{
    return n > 0 ? "+" : "";
}

/* "-1,024" */
static const char *signed_count(int64_t n, struct arena *arena)
{
    char digits[32];
    return arena_printf(arena, "%s%s", n < 0 ? "-" : "",
                        text_count(n < 0 ? -(uint64_t)n : (uint64_t)n, digits));
}

static const char *value_text(enum measure measure, int64_t value, struct arena *arena)
{
    char time[32];
    if (value == RUN_NO_METRIC)
        return "-";
    switch (measure) {
    case MEASURE_NS:
        return arena_strdup(arena, text_ns(value, time));
    case MEASURE_MILLI:
        return arena_printf(arena, "%.1f", (double)value / 1e3);
    case MEASURE_PCT:
        return arena_printf(arena, "%.2f %%", (double)value / 1e4);
    case MEASURE_BYTES:
        return arena_printf(arena, "%s B", signed_count(value, arena));
    case MEASURE_COUNT:
        return signed_count(value, arena);
    default:
        return value ? "yes" : "no";
    }
}

static const char *error_text(const struct comparison *comparison,
                              const int64_t values[COMPARE_RUNS], struct arena *arena)
{
    const double error_pct = compare_error_pct(comparison, values);
    if (values[0] == values[1])
        return "same";
    return isnan(error_pct) ? "-" : arena_printf(arena, "%+.1f %%", error_pct);
}

static const char *difference_text(const struct comparison *comparison, enum measure measure,
                                   const int64_t values[COMPARE_RUNS], struct arena *arena)
{
    const int64_t difference = compare_difference(values);
    if (values[0] == RUN_NO_METRIC || values[1] == RUN_NO_METRIC)
        return "-";
    if (difference == 0)
        return "same";
    if (is_inexact(measure))
        return error_text(comparison, values, arena);
    if (measure == MEASURE_BOOL)
        return "differs";
    return arena_printf(arena, "%s%s%s", plus(difference), signed_count(difference, arena),
                        measure == MEASURE_BYTES ? " B" : "");
}

/* A table whose columns from first on lean to the right. */
struct table {
    struct grid grid;
    uint32_t first;
};

static void begin_table(struct table *table, struct arena *arena, uint32_t n, uint32_t first,
                        const char *const *titles)
{
    table->first = first;
    grid_begin(&table->grid, arena, n, titles);
}

static void add_row(struct table *table, const char *const *texts)
{
    struct query_value cells[MAX_COLUMN];
    for (uint32_t i = 0; i < table->grid.n_column; i++)
        cells[i] = (struct query_value){.kind = i < table->first ? QUERY_TEXT : QUERY_INTEGER,
                                        .text = texts[i],
                                        .length = strlen(texts[i])};
    grid_add(&table->grid, cells);
}

static void end_table(const struct table *table, const struct term *term, struct text *out)
{
    if (table->grid.n_row == 0)
        return;
    text_add(out, "\n");
    grid_text(&table->grid, term, out);
}

/* "run 7" */
static const char *run_title(const struct comparison *comparison, int i, struct arena *arena)
{
    return arena_printf(arena, "run %" PRId64, comparison->runs[i].id);
}

static void add_run(const struct stored_run *stored, const struct term *term, struct text *out)
{
    const struct run *run = &stored->run;
    char model[TERM_NAME_BYTES], cluster[TERM_NAME_BYTES], head[40];
    struct text words;
    text_init(&words);
    text_add(&words, "%s of %s in %" PRIu32 " unit%s, on %" PRIu64 " GPU%s of %s",
             run_kind_name(run->kind), term_name(run->model, model), run->n_unit,
             run->n_unit == 1 ? "" : "s", run->world, run->world == 1 ? "" : "s",
             term_name(run->cluster, cluster));
    if (run_kind_has_run(run->kind))
        text_add(&words, "; device %s, transport %s", run->real.device, run->real.transport);
    if (run->real.error)
        text_add(&words, "; it failed: %s", run->real.error);
    const int length = snprintf(head, sizeof head, "run %" PRId64 ": ", stored->id);
    text_add(out, "%s%s%s", term->strong, head, term->plain);
    page_wrap(words.at, (unsigned)length, 2, out);
    text_release(&words);
}

/* "the same NOUN, X", or "different NOUNs, X and Y". */
static void add_same(const char *noun, bool same, const char *first, const char *second,
                     struct text *out)
{
    char names[COMPARE_RUNS][TERM_NAME_BYTES];
    term_name(first, names[0]);
    term_name(second, names[1]);
    if (same)
        text_add(out, "the same %s, %s\n", noun, names[0]);
    else if (!strcmp(first, second))
        text_add(out, "different %ss, both called %s\n", noun, names[0]);
    else
        text_add(out, "different %ss, %s and %s\n", noun, names[0], names[1]);
}

static void add_hashes(const char *noun, uint64_t first, uint64_t second, struct text *out)
{
    char names[COMPARE_RUNS][20];
    snprintf(names[0], sizeof names[0], "%016" PRIx64, first);
    snprintf(names[1], sizeof names[1], "%016" PRIx64, second);
    add_same(noun, first == second, names[0], names[1], out);
}

static void add_common(const struct comparison *comparison, struct text *out)
{
    const struct run *a = &comparison->runs[0].run, *b = &comparison->runs[1].run;
    text_add(out, "\n");
    add_hashes("program", a->program_hash, b->program_hash, out);
    add_hashes("placement", a->placement_hash, b->placement_hash, out);
    add_same("model", comparison->same_model, a->model, b->model, out);
    add_same("cluster", comparison->same_cluster, a->cluster, b->cluster, out);
    if (comparison->n_option == 0)
        text_add(out, "the same options\n");
    if (comparison->emulated)
        text_add(out, "emulated collectives last as long as they were told to: no difference is an "
                      "error\n");
}

static void add_options(const struct comparison *comparison, struct arena *arena,
                        const struct term *term, struct text *out)
{
    struct table table;
    begin_table(&table, arena, 3, 3,
                (const char *const[]){"option that differs", run_title(comparison, 0, arena),
                                      run_title(comparison, 1, arena)});
    for (uint32_t i = 0; i < comparison->n_option; i++) {
        const struct compare_option *option = &comparison->options[i];
        add_row(&table,
                (const char *const[]){option->name, option->values[0] ? option->values[0] : "-",
                                      option->values[1] ? option->values[1] : "-"});
    }
    end_table(&table, term, out);
}

static void add_metrics(const struct comparison *comparison, struct arena *arena,
                        const struct term *term, struct text *out)
{
    struct table table;
    begin_table(&table, arena, 4, 1,
                (const char *const[]){"number of the run", run_title(comparison, 0, arena),
                                      run_title(comparison, 1, arena), "difference"});
    for (int i = 0; i < RUN_METRIC_N; i++) {
        const enum measure measure = metrics[i].measure;
        const int64_t values[] = {comparison->runs[0].run.metrics[i],
                                  comparison->runs[1].run.metrics[i]};
        if (values[0] == RUN_NO_METRIC && values[1] == RUN_NO_METRIC)
            continue;
        add_row(&table,
                (const char *const[]){metrics[i].title, value_text(measure, values[0], arena),
                                      value_text(measure, values[1], arena),
                                      difference_text(comparison, measure, values, arena)});
    }
    end_table(&table, term, out);
}

/* A constant that is wrong for both runs makes neither faster. */
static void add_paired(const struct comparison *comparison, struct text *out)
{
    const struct compare_paired *paired = comparison->paired;
    const char *who = "neither run";
    char apart[32], uncertain[32];
    struct text words;
    if (!paired)
        return;
    text_init(&words);
    if (paired->unknown) {
        text_add(&words, "which is faster for sure is not known: %s", paired->unknown);
    } else {
        if (!paired->tie)
            who = paired->apart_ns < 0 ? "the first run" : "the second run";
        text_add(&words,
                 "%s is faster for sure: %s apart, uncertain by %s where constants that both share "
                 "cancel",
                 who, text_ns(paired->apart_ns < 0 ? -paired->apart_ns : paired->apart_ns, apart),
                 text_ns(paired->uncertainty_ns, uncertain));
    }
    text_add(out, "\n");
    page_wrap(words.at, 0, 2, out);
    text_release(&words);
}

static void add_kinds(const struct comparison *comparison, struct arena *arena,
                      const struct term *term, struct text *out)
{
    struct table table;
    begin_table(&table, arena, 6, 1,
                (const char *const[]){"tasks by kind", "n", run_title(comparison, 0, arena), "n",
                                      run_title(comparison, 1, arena), "error"});
    for (int i = 0; i < TASK_KIND_N; i++) {
        const struct compare_kind *kind = &comparison->kinds[i];
        if (kind->n[0] == 0 && kind->n[1] == 0)
            continue;
        add_row(&table, (const char *const[]){task_kind_name((enum task_kind)i),
                                              signed_count(kind->n[0], arena),
                                              value_text(MEASURE_NS, kind->ns[0], arena),
                                              signed_count(kind->n[1], arena),
                                              value_text(MEASURE_NS, kind->ns[1], arena),
                                              error_text(comparison, kind->ns, arena)});
    }
    end_table(&table, term, out);
}

static void add_task(const struct comparison *comparison, const struct compare_task *task,
                     struct table *table)
{
    struct arena *arena = table->grid.arena;
    const int64_t difference_ns = compare_difference(task->ns);
    char time[32];
    add_row(table,
            (const char *const[]){
                comparison->runs[0].run.tasks[task->task].name,
                signed_count(task->task, arena),
                value_text(MEASURE_NS, task->ns[0], arena),
                value_text(MEASURE_NS, task->ns[1], arena),
                arena_printf(arena, "%s%s", plus(difference_ns), text_ns(difference_ns, time)),
                error_text(comparison, task->ns, arena),
            });
}

static void add_tasks(const struct comparison *comparison, struct arena *arena,
                      const struct term *term, struct text *out)
{
    struct table table;
    if (comparison->not_matched) {
        text_add(out, "\ntasks are not compared one by one: %s\n", comparison->not_matched);
        return;
    }
    begin_table(&table, arena, 6, 1,
                (const char *const[]){"tasks that differ most", "task",
                                      run_title(comparison, 0, arena),
                                      run_title(comparison, 1, arena), "difference", "error"});
    for (uint32_t i = 0; i < comparison->n_task && i < COMPARE_SHOWN_TASKS; i++) {
        if (compare_difference(comparison->tasks[i].ns) != 0)
            add_task(comparison, &comparison->tasks[i], &table);
    }
    if (table.grid.n_row == 0)
        text_add(out, "\nall %" PRIu32 " tasks take the same time\n", comparison->n_task);
    end_table(&table, term, out);
}

void compare_text(const struct comparison *comparison, struct arena *arena, const struct term *term,
                  struct text *out)
{
    for (int i = 0; i < COMPARE_RUNS; i++)
        add_run(&comparison->runs[i], term, out);
    add_common(comparison, out);
    add_options(comparison, arena, term, out);
    add_metrics(comparison, arena, term, out);
    add_paired(comparison, out);
    add_kinds(comparison, arena, term, out);
    add_tasks(comparison, arena, term, out);
}
