/*
 * `unshard history list`: the newest runs, one a line.
 *
 * A query like any other; here are the columns and the units in which people read them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/command.h"
#include "src/cli/grid.h"
#include "src/cli/history.h"
#include "src/json.h"

enum { TIMEOUT_MS = 60000 };

/* What a column is to people; the JSON of a NUMBER or a TEXT is the same. */
enum measure { MEASURE_NUMBER, MEASURE_TEXT, MEASURE_NS, MEASURE_BYTES, MEASURE_BOOL };

/* The table has the columns with a title, JSON those with a key. */
/* clang-format off */
static const struct {
    const char *title, *key;
    enum measure measure;
} columns[] = {
    {"id", "run_id", MEASURE_NUMBER},
    {"when (UTC)", "created", MEASURE_TEXT},
    {NULL, "created_ns", MEASURE_NUMBER},
    {"kind", NULL, MEASURE_TEXT}, /* that a run failed is seen here */
    {NULL, "kind", MEASURE_TEXT},
    {"model", "model", MEASURE_TEXT},
    {NULL, "cluster", MEASURE_TEXT},
    {"units", "units", MEASURE_NUMBER},
    {"gpus", "gpus", MEASURE_NUMBER},
    {"step", "step_ns", MEASURE_NS},
    {"reserved", "reserved_bytes", MEASURE_BYTES},
    {"fits", "fits", MEASURE_BOOL},
    {NULL, "plan_group", MEASURE_NUMBER},
    {NULL, "command", MEASURE_TEXT},
    {NULL, "device", MEASURE_TEXT},
    {NULL, "error", MEASURE_TEXT},
};
/* clang-format on */
enum { COLUMN_N = sizeof columns / sizeof *columns };

/* In that order. reserved: the highest of the measured step, the first one and initialisation. */
static const char list_sql[] =
    "SELECT v.run, v.created, run.created_ns, v.kind || iif(real.failed, ' failed', ''), v.kind,"
    " v.model, v.cluster, v.units, v.world, v.step_ns,"
    " max(v.peak_reserved_bytes, v.first_peak_reserved_bytes, v.init_peak_bytes),"
    " v.fits, v.plan_group, v.command, real.device, real.error"
    " FROM v_run AS v JOIN run ON run.id = v.run LEFT JOIN v_real AS real ON real.run = v.run"
    " ORDER BY v.run DESC LIMIT ?1";

struct listing {
    struct arena arena;
    struct grid grid;
    struct cJSON *runs;
};

static const char *for_people(enum measure measure, const struct query_value *value,
                              char buffer[32])
{
    const int64_t number = strtoll(value->text, NULL, 10);
    switch (measure) {
    case MEASURE_NS:
        return text_ns(number, buffer);
    case MEASURE_BYTES:
        return text_bytes((uint64_t)number, buffer);
    case MEASURE_BOOL:
        return number ? "yes" : "no";
    default:
        return value->text;
    }
}

static void add_line(struct listing *listing, const struct query_value *values)
{
    struct query_value line[COLUMN_N];
    char buffers[COLUMN_N][32];
    uint32_t n = 0;
    for (unsigned i = 0; i < COLUMN_N; i++) {
        if (!columns[i].title)
            continue;
        line[n] = values[i];
        if (values[i].kind == QUERY_NULL)
            line[n] = (struct query_value){.kind = QUERY_TEXT, .text = "-", .length = 1};
        else
            line[n].text = for_people(columns[i].measure, &values[i], buffers[i]);
        n++;
    }
    grid_add(&listing->grid, line);
}

static void add_object(struct listing *listing, const struct query_value *values)
{
    struct cJSON *object = json_add_object(listing->runs, NULL);
    for (unsigned i = 0; i < COLUMN_N; i++) {
        const char *key = columns[i].key;
        if (!key)
            continue;
        if (values[i].kind == QUERY_NULL)
            json_add_real(object, key, NAN); /* what is not finite is null */
        else if (columns[i].measure == MEASURE_TEXT)
            json_add_string(object, key, values[i].text);
        else if (columns[i].measure == MEASURE_BOOL)
            json_add_bool(object, key, *values[i].text != '0');
        else
            json_add_int(object, key, strtoll(values[i].text, NULL, 10));
    }
}

static enum status take_row(void *self, int n, const char *const *names,
                            const struct query_value *values, struct err *err)
{
    (void)n;
    (void)names;
    (void)err;
    if (values) {
        add_line(self, values);
        add_object(self, values);
    }
    return STATUS_OK;
}

static void begin(struct listing *listing)
{
    const char *titles[COLUMN_N];
    uint32_t n = 0;
    arena_init(&listing->arena);
    for (unsigned i = 0; i < COLUMN_N; i++) {
        if (columns[i].title)
            titles[n++] = columns[i].title;
    }
    grid_begin(&listing->grid, &listing->arena, n, titles);
    listing->runs = json_new_array();
}

/* Takes the runs. */
static void print_json(struct listing *listing, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.history_list/1");
    json_add_root(root, "runs", listing->runs);
    json_print(root, out);
    json_free(root);
    listing->runs = NULL;
}

enum status cmd_history(struct options *options, struct output *out, struct err *err)
{
    struct listing listing;
    const char *path, *limit = option_text(options, OPTION_LIMIT);
    const struct query query = {
        .sql = list_sql, .params = &limit, .n_param = 1, .timeout_ms = TIMEOUT_MS};

    begin(&listing);
    enum status status = history_path(options, &listing.arena, &path, err);
    if (status == STATUS_OK)
        status = query_run(path, &query, take_row, &listing, err);
    if (status == STATUS_OK) {
        if (option_given(options, OPTION_JSON))
            print_json(&listing, &out->result);
        else
            grid_text(&listing.grid, &out->term, &out->result);
    }
    json_free(listing.runs);
    arena_release(&listing.arena);
    return status;
}
