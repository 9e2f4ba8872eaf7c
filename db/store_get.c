/*
 * One run back out of the tables, as it was put in.
 *
 * Names of kinds, phases and classes become numbers of this program again; a name that it does not
 * know means that another version stored the run, and is an error. Each part counts its rows, then
 * reads exactly as many.
 */
#include <stdlib.h>
#include <string.h>

#include "db/number.h"
#include "db/statement.h"
#include "db/store_inner.h"

struct get {
    struct connection *connection;
    struct arena *arena;
    struct run *run; /* what is filled */
    int64_t id, first_task, first_sample;
};

struct names {
    const char *what;
    const char *const *names;
    int n;
};
#define X(id, name) name,
#define X3(id, name, bytes) name,
static const char *const run_kinds[] = {RUN_KINDS(X)}, *const task_kinds[] = {TASK_KINDS(X)},
                         *const streams[] = {STREAMS(X)}, *const phases[] = {PHASES(X)},
                         *const dtypes[] = {DTYPES(X3)}, *const classes[] = {MEMORY_CLASSES(X)},
                         *const metrics[] = {RUN_METRICS(X)};
#undef X
#undef X3
static const struct names name_of_run_kind = {"kind", run_kinds, RUN_KIND_N},
                          name_of_task_kind = {"task kind", task_kinds, TASK_KIND_N},
                          name_of_stream = {"stream", streams, STREAM_N},
                          name_of_phase = {"phase", phases, PHASE_N},
                          name_of_dtype = {"dtype", dtypes, DTYPE_N},
                          name_of_class = {"memory class", classes, CLASS_N},
                          name_of_metric = {"metric", metrics, RUN_METRIC_N};

static const char *text_of(const struct get *get, sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return arena_strdup(get->arena, text ? (const char *)text : "");
}

static uint64_t u64_of(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

static uint64_t hash_of(sqlite3_stmt *statement, int column)
{
    return strtoull((const char *)sqlite3_column_text(statement, column), NULL, 16);
}

/* The number of the name in this column. */
static enum status find_name(const struct get *get, sqlite3_stmt *statement, int column,
                             const struct names *names, int *out, struct err *err)
{
    const char *name = (const char *)sqlite3_column_text(statement, column);
    for (int i = 0; i < names->n; i++) {
        if (name && !strcmp(names->names[i], name)) {
            *out = i;
            return STATUS_OK;
        }
    }
    return err_set(err, STATUS_DB,
                   "run %" PRId64 " in '%s' has a %s '%s' that this version does not know: use the"
                   " version that stored it",
                   get->id, get->connection->shown, names->what, name ? name : "");
}

/* Fills element i of what a section reads. */
typedef enum status (*read_row)(struct get *get, sqlite3_stmt *statement, uint32_t i,
                                struct err *err);

/* All rows of a query with parameters of the run; more than fit is another program's doing. */
static enum status read_rows(struct get *get, const char *sql, int n_bind, const int64_t *bind,
                             uint32_t n, read_row read, struct err *err)
{
    sqlite3_stmt *statement;
    bool row = true;
    uint32_t i = 0;
    enum status status = statement_prepare(get->connection, sql, &statement, err);
    if (status == STATUS_OK)
        statement_bind_ints(statement, 1, n_bind, bind);
    while (status == STATUS_OK && row) {
        status = statement_next(get->connection, statement, &row, err);
        if (status == STATUS_OK && row && i < n)
            status = read(get, statement, i, err);
        i += row;
    }
    sqlite3_finalize(statement);
    if (status == STATUS_OK && i != n)
        return err_set(err, STATUS_DB,
                       "run %" PRId64 " in '%s' is damaged: it has other numbers of rows than it"
                       " says: restore the file from a copy",
                       get->id, get->connection->shown);
    return status;
}

static enum status count_rows(struct get *get, const char *table, uint32_t *out, struct err *err)
{
    char sql[120];
    int64_t n = 0;
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE run_id = %" PRId64, table, get->id);
    const enum status status = connection_int(get->connection, sql, &n, err);
    *out = (uint32_t)n;
    return status;
}

static enum status read_run(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    struct run *run = get->run;
    int kind = 0, phase = 0;
    enum status status = find_name(get, statement, 0, &name_of_run_kind, &kind, err);
    (void)i;
    if (status == STATUS_OK)
        status = find_name(get, statement, 1, &name_of_phase, &phase, err);
    if (status != STATUS_OK)
        return status;
    *run = (struct run){
        .kind = (enum run_kind)kind,
        .peak_phase = (uint8_t)phase,
        .tool_version = text_of(get, statement, 2),
        .command = text_of(get, statement, 3),
        .program_hash = hash_of(statement, 4),
        .placement_hash = hash_of(statement, 5),
        .created_ns = sqlite3_column_int64(statement, 6),
        .world = u64_of(statement, 7),
        .gpus_per_node = u64_of(statement, 8),
        .parameters = u64_of(statement, 9),
        .group = u64_of(statement, 10),
        .peak_unit = number_to_unit(sqlite3_column_int64(statement, 11)),
        .n_task = (uint32_t)sqlite3_column_int64(statement, 13),
        .n_sample = (uint32_t)sqlite3_column_int64(statement, 15),
        .environment = text_of(get, statement, 21),
        .model = text_of(get, statement, 16),
        .model_json = text_of(get, statement, 17),
        .plan_json = text_of(get, statement, 18),
        .cluster = text_of(get, statement, 19),
        .cluster_json = text_of(get, statement, 20),
    };
    get->first_task = sqlite3_column_int64(statement, 12);
    get->first_sample = sqlite3_column_int64(statement, 14);
    return STATUS_OK;
}

static enum status read_metric(struct get *get, sqlite3_stmt *statement, uint32_t i,
                               struct err *err)
{
    int metric;
    const enum status status = find_name(get, statement, 0, &name_of_metric, &metric, err);
    (void)i;
    if (status == STATUS_OK)
        get->run->metrics[metric] = sqlite3_column_int64(statement, 1);
    return status;
}

static enum status read_peak(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    int c;
    const enum status status = find_name(get, statement, 0, &name_of_class, &c, err);
    (void)i;
    if (status == STATUS_OK)
        get->run->peak_by_class[c] = u64_of(statement, 1);
    return status;
}

static enum status read_unit(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    const uint32_t n_param = (uint32_t)sqlite3_column_int64(statement, 5);
    (void)err;
    get->run->units[i] = (struct run_unit){
        .name = text_of(get, statement, 0),
        .elements = u64_of(statement, 1),
        .padded_elements = u64_of(statement, 2),
        .shard_elements = u64_of(statement, 3),
        .reshard_after_forward = sqlite3_column_int(statement, 4),
        .params = arena_array(get->arena, const char *, n_param),
        .n_param = n_param,
    };
    return STATUS_OK;
}

static enum status read_param(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    const int64_t unit = sqlite3_column_int64(statement, 0);
    const int64_t member = sqlite3_column_int64(statement, 1);
    (void)i;
    if (unit >= get->run->n_unit || member >= get->run->units[unit].n_param)
        return err_set(err, STATUS_DB, "run %" PRId64 " in '%s' is damaged: restore it from a copy",
                       get->id, get->connection->shown);
    const char **params = (const char **)get->run->units[unit].params;
    params[member] = text_of(get, statement, 2);
    return STATUS_OK;
}

static enum status read_collective(struct get *get, sqlite3_stmt *statement, uint32_t i,
                                   struct err *err)
{
    int kind = 0, dtype = 0;
    enum status status = find_name(get, statement, 0, &name_of_task_kind, &kind, err);
    if (status == STATUS_OK)
        status = find_name(get, statement, 1, &name_of_dtype, &dtype, err);
    get->run->collectives[i] = (struct run_collective){
        .kind = (uint8_t)kind,
        .dtype = (uint8_t)dtype,
        .elements = u64_of(statement, 2),
        .bytes = u64_of(statement, 3),
        .count = (uint32_t)sqlite3_column_int64(statement, 4),
    };
    return status;
}

static enum status read_task(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    int kind = 0, stream = 0, phase = 0, dtype = 0;
    enum status status = find_name(get, statement, 1, &name_of_task_kind, &kind, err);
    if (status == STATUS_OK)
        status = find_name(get, statement, 2, &name_of_stream, &stream, err);
    if (status == STATUS_OK)
        status = find_name(get, statement, 3, &name_of_phase, &phase, err);
    if (status == STATUS_OK)
        status = find_name(get, statement, 4, &name_of_dtype, &dtype, err);
    get->run->tasks[i] = (struct run_task){
        .name = text_of(get, statement, 0),
        .kind = (uint8_t)kind,
        .stream = (uint8_t)stream,
        .dtype = (uint8_t)dtype,
        .phase = (uint8_t)phase,
        .unit = number_to_unit(sqlite3_column_int64(statement, 5)),
        .microbatch = number_to_unit(sqlite3_column_int64(statement, 6)),
        .kernels = (uint16_t)sqlite3_column_int64(statement, 7),
        .elements = u64_of(statement, 8),
        .launch_ns = sqlite3_column_int64(statement, 9),
        .launched_ns = sqlite3_column_int64(statement, 10),
        .start_ns = sqlite3_column_int64(statement, 11),
        .end_ns = sqlite3_column_int64(statement, 12),
    };
    return status;
}

static enum status read_sample(struct get *get, sqlite3_stmt *statement, uint32_t i,
                               struct err *err)
{
    struct run_sample *sample = &get->run->samples[i];
    (void)err;
    sample->at_ns = sqlite3_column_int64(statement, 0);
    sample->allocated = u64_of(statement, 1);
    sample->reserved = u64_of(statement, 2);
    for (int c = 0; c < CLASS_N; c++)
        sample->by_class[c] = u64_of(statement, 3 + c);
    return STATUS_OK;
}

static enum status get_head(struct get *get, struct err *err)
{
    static const char *const sql =
        "SELECT run.kind, peak_phase, tool_version, command, program_hash, placement_hash,"
        " created_ns, world, gpus_per_node, parameters, plan_group, ifnull(peak_unit, -1),"
        " first_task, n_task, first_sample, n_sample, model.name, model.json, plan.json,"
        " cluster.name, cluster.json, environment FROM run JOIN document AS model ON model.id = model_id"
        " JOIN document AS plan ON plan.id = plan_id"
        " JOIN document AS cluster ON cluster.id = cluster_id WHERE run.id = ?1";
    return read_rows(get, sql, 1, &get->id, 1, read_run, err);
}

static enum status get_numbers(struct get *get, struct err *err)
{
    uint32_t n_metric = 0, n_class = 0;
    for (int i = 0; i < RUN_METRIC_N; i++)
        get->run->metrics[i] = RUN_NO_METRIC;
    enum status status = count_rows(get, "metric", &n_metric, err);
    if (status == STATUS_OK)
        status = read_rows(get, "SELECT name, value FROM metric WHERE run_id = ?1", 1, &get->id,
                           n_metric, read_metric, err);
    if (status == STATUS_OK)
        status = count_rows(get, "memory_peak", &n_class, err);
    if (status == STATUS_OK)
        status = read_rows(get, "SELECT class, bytes FROM memory_peak WHERE run_id = ?1", 1,
                           &get->id, n_class, read_peak, err);
    return status;
}

static enum status get_units(struct get *get, struct err *err)
{
    static const char *const sql =
        "SELECT s.value, elements, padded_elements, shard_elements, reshard,"
        " json_array_length(m.value) FROM unit JOIN string AS s ON s.id = name_id"
        " JOIN string AS m ON m.id = members_id WHERE run_id = ?1 ORDER BY unit";
    static const char *const member_sql =
        "SELECT unit, e.key, e.value FROM unit JOIN string AS m ON m.id = members_id,"
        " json_each(m.value) AS e WHERE run_id = ?1";
    uint32_t n_param = 0;
    enum status status = count_rows(get, "unit", &get->run->n_unit, err);
    if (status != STATUS_OK)
        return status;
    get->run->units = arena_array(get->arena, struct run_unit, get->run->n_unit);
    status = read_rows(get, sql, 1, &get->id, get->run->n_unit, read_unit, err);
    for (uint32_t i = 0; i < get->run->n_unit && status == STATUS_OK; i++)
        n_param += get->run->units[i].n_param;
    if (status == STATUS_OK)
        status = read_rows(get, member_sql, 1, &get->id, n_param, read_param, err);
    return status;
}

static enum status get_collectives(struct get *get, struct err *err)
{
    const enum status status = count_rows(get, "collective", &get->run->n_collective, err);
    if (status != STATUS_OK)
        return status;
    get->run->collectives = arena_array(get->arena, struct run_collective, get->run->n_collective);
    return read_rows(get,
                     "SELECT kind, dtype, elements, bytes, count FROM collective"
                     " WHERE run_id = ?1 ORDER BY position",
                     1, &get->id, get->run->n_collective, read_collective, err);
}

static enum status get_tasks(struct get *get, struct err *err)
{
    static const char *const sql =
        "SELECT value, kind, stream, phase, dtype, unit, microbatch, kernels, elements, launch_ns,"
        " launched_ns, start_ns, end_ns FROM task JOIN task_label ON task_label.id = label_id"
        " JOIN string ON string.id = name_id WHERE task.id BETWEEN ?1 AND ?2 ORDER BY task.id";
    const uint32_t n = get->run->n_task;
    const int64_t range[] = {get->first_task, get->first_task + n - 1};
    get->run->tasks = arena_array(get->arena, struct run_task, n);
    return read_rows(get, sql, 2, range, n, read_task, err);
}

static enum status get_samples(struct get *get, struct err *err)
{
#define X(id, name) ", " name
    static const char *const sql = "SELECT at_ns, allocated, reserved" MEMORY_CLASSES(
        X) " FROM memory_sample"
           " WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
#undef X
    const uint32_t n = get->run->n_sample;
    const int64_t range[] = {get->first_sample, get->first_sample + n - 1};
    get->run->samples = arena_array(get->arena, struct run_sample, n);
    return read_rows(get, sql, 2, range, n, read_sample, err);
}

/* The id to read: the one asked for, or the newest. */
static enum status find_run(struct get *get, int64_t id, struct err *err)
{
    char sql[80];
    int64_t n = 0, last = 0, found = 0;
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM run WHERE id = %" PRId64, id);
    enum status status = connection_int(get->connection, "SELECT count(*) FROM run", &n, err);
    if (status == STATUS_OK)
        status = connection_int(get->connection, "SELECT max(id) FROM run", &last, err);
    if (status == STATUS_OK)
        status = connection_int(get->connection, sql, &found, err);
    if (status != STATUS_OK)
        return status;
    if (n == 0)
        return err_set(err, STATUS_USAGE, "there is no run in '%s' yet: store one first",
                       get->connection->shown);
    if (id != 0 && !found)
        return err_set(err, STATUS_USAGE,
                       "there is no run %" PRId64 " in '%s': the newest of its %" PRId64
                       " is run %" PRId64,
                       id, get->connection->shown, n, last);
    get->id = id ? id : last;
    return STATUS_OK;
}

static enum status get_all(struct get *get, int64_t id, struct err *err)
{
    enum status (*const parts[])(struct get * get, struct err * err) = {
        get_head, get_numbers, get_units, get_collectives, get_tasks, get_samples};
    enum status status = find_run(get, id, err);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == STATUS_OK; i++)
        status = parts[i](get, err);
    return status;
}

enum status store_get(struct store *store, int64_t id, struct arena *arena, struct run *out,
                      struct err *err)
{
    struct run run = {0};
    struct get get = {.connection = &store->connection, .arena = arena, .run = &run};
    const enum status status = get_all(&get, id, err);
    if (status == STATUS_OK)
        *out = run;
    return status;
}
