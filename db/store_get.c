/*
 * One run back out of the tables, as it was put in. Each part counts its rows, then reads exactly
 * as many.
 */
#include "db/get_rows.h"
#include "db/number.h"
#include "db/store_inner.h"

static enum status read_run(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    struct run *run = get->run;
    int kind = 0, phase = 0;
    enum status status = get_name(get, statement, 0, NAMES_RUN_KIND, &kind, err);
    (void)i;
    if (status == STATUS_OK)
        status = get_name(get, statement, 1, NAMES_PHASE, &phase, err);
    if (status != STATUS_OK)
        return status;
    *run = (struct run){
        .kind = (enum run_kind)kind,
        .peak_phase = (uint8_t)phase,
        .tool_version = get_text(get, statement, 2),
        .command = get_text(get, statement, 3),
        .program_hash = get_hash(statement, 4),
        .placement_hash = get_hash(statement, 5),
        .created_ns = sqlite3_column_int64(statement, 6),
        .world = get_u64(statement, 7),
        .gpus_per_node = get_u64(statement, 8),
        .parameters = get_u64(statement, 9),
        .group = get_u64(statement, 10),
        .peak_unit = number_to_unit(sqlite3_column_int64(statement, 11)),
        .n_task = (uint32_t)sqlite3_column_int64(statement, 13),
        .n_sample = (uint32_t)sqlite3_column_int64(statement, 15),
        .environment = get_text(get, statement, 21),
        .model = get_text(get, statement, 16),
        .model_json = get_text(get, statement, 17),
        .plan_json = get_text(get, statement, 18),
        .cluster = get_text(get, statement, 19),
        .cluster_json = get_text(get, statement, 20),
    };
    get->first_task = sqlite3_column_int64(statement, 12);
    get->first_sample = sqlite3_column_int64(statement, 14);
    return STATUS_OK;
}

static enum status read_metric(struct get *get, sqlite3_stmt *statement, uint32_t i,
                               struct err *err)
{
    int metric;
    const enum status status = get_name(get, statement, 0, NAMES_METRIC, &metric, err);
    (void)i;
    if (status == STATUS_OK)
        get->run->metrics[metric] = sqlite3_column_int64(statement, 1);
    return status;
}

static enum status read_peak(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    int c;
    const enum status status = get_name(get, statement, 0, NAMES_CLASS, &c, err);
    (void)i;
    if (status == STATUS_OK)
        get->run->peak_by_class[c] = get_u64(statement, 1);
    return status;
}

static enum status read_communicator(struct get *get, sqlite3_stmt *statement, uint32_t i,
                                     struct err *err)
{
    int comm;
    const enum status status = get_name(get, statement, 0, NAMES_COMM, &comm, err);
    (void)i;
    if (status == STATUS_OK)
        get->run->comm_ranks[comm] = get_u64(statement, 1);
    return status;
}

static enum status read_unit(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    const uint32_t n_param = (uint32_t)sqlite3_column_int64(statement, 5);
    (void)err;
    get->run->units[i] = (struct run_unit){
        .name = get_text(get, statement, 0),
        .elements = get_u64(statement, 1),
        .padded_elements = get_u64(statement, 2),
        .shard_elements = get_u64(statement, 3),
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
    params[member] = get_text(get, statement, 2);
    return STATUS_OK;
}

static enum status read_collective(struct get *get, sqlite3_stmt *statement, uint32_t i,
                                   struct err *err)
{
    enum { KIND, COMM, DTYPE, REDUCTION, N };
    static const enum name_set sets[N] = {NAMES_TASK_KIND, NAMES_COMM, NAMES_DTYPE,
                                          NAMES_REDUCTION};
    int found[N] = {0};
    const enum status status = get_names(get, statement, 0, N, sets, found, err);
    get->run->collectives[i] = (struct run_collective){
        .kind = (uint8_t)found[KIND],
        .comm = (uint8_t)found[COMM],
        .dtype = (uint8_t)found[DTYPE],
        .reduction = (uint8_t)found[REDUCTION],
        .elements = get_u64(statement, N),
        .bytes = get_u64(statement, N + 1),
        .count = (uint32_t)sqlite3_column_int64(statement, N + 2),
    };
    return status;
}

static enum status read_task(struct get *get, sqlite3_stmt *statement, uint32_t i, struct err *err)
{
    enum { KIND, STREAM, PHASE, DTYPE, REDUCTION, N, COMM = 13 };
    static const enum name_set sets[N] = {NAMES_TASK_KIND, NAMES_STREAM, NAMES_PHASE, NAMES_DTYPE,
                                          NAMES_REDUCTION};
    int found[N] = {0}, comm = COMM_NONE;
    enum status status = get_names(get, statement, 0, N, sets, found, err);
    if (status == STATUS_OK && sqlite3_column_type(statement, COMM) != SQLITE_NULL)
        status = get_name(get, statement, COMM, NAMES_COMM, &comm, err);
    get->run->tasks[i] = (struct run_task){
        .kind = (uint8_t)found[KIND],
        .stream = (uint8_t)found[STREAM],
        .dtype = (uint8_t)found[DTYPE],
        .phase = (uint8_t)found[PHASE],
        .comm = (uint8_t)comm,
        .reduction = (uint8_t)found[REDUCTION],
        .unit = number_to_unit(sqlite3_column_int64(statement, 5)),
        .microbatch = number_to_unit(sqlite3_column_int64(statement, 6)),
        .kernels = (uint32_t)sqlite3_column_int64(statement, 7),
        .elements = get_u64(statement, 8),
        .launch_ns = sqlite3_column_int64(statement, 9),
        .launched_ns = sqlite3_column_int64(statement, 10),
        .start_ns = sqlite3_column_int64(statement, 11),
        .end_ns = sqlite3_column_int64(statement, 12),
        .name = get_text(get, statement, 14),
    };
    return status;
}

static enum status read_sample(struct get *get, sqlite3_stmt *statement, uint32_t i,
                               struct err *err)
{
    struct run_sample *sample = &get->run->samples[i];
    (void)err;
    sample->at_ns = sqlite3_column_int64(statement, 0);
    sample->allocated = get_u64(statement, 1);
    sample->reserved = get_u64(statement, 2);
    for (int c = 0; c < CLASS_N; c++)
        sample->by_class[c] = get_u64(statement, 3 + c);
    return STATUS_OK;
}

static enum status get_head(struct get *get, struct err *err)
{
    static const char *const sql =
        "SELECT run.kind, peak_phase, tool_version, command, program_hash, placement_hash,"
        " created_ns, world, gpus_per_node, parameters, plan_group, ifnull(peak_unit, -1),"
        " first_task, n_task, first_sample, n_sample, model.name, model.json, plan.json,"
        " cluster.name, cluster.json, environment FROM run JOIN document AS model ON model.id = "
        "model_id"
        " JOIN document AS plan ON plan.id = plan_id"
        " JOIN document AS cluster ON cluster.id = cluster_id WHERE run.id = ?1";
    return get_rows(get, sql, 1, &get->id, 1, read_run, err);
}

static enum status get_numbers(struct get *get, struct err *err)
{
    static const struct {
        const char *table, *sql;
        read_row read;
    } lists[] = {
        {"metric", "SELECT name, value FROM metric WHERE run_id = ?1", read_metric},
        {"memory_peak", "SELECT class, bytes FROM memory_peak WHERE run_id = ?1", read_peak},
        {"communicator", "SELECT comm, ranks FROM communicator WHERE run_id = ?1",
         read_communicator},
    };
    enum status status = STATUS_OK;
    for (int i = 0; i < RUN_METRIC_N; i++)
        get->run->metrics[i] = RUN_NO_METRIC;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && status == STATUS_OK; i++) {
        uint32_t n = 0;
        status = get_count(get, lists[i].table, &n, err);
        if (status == STATUS_OK)
            status = get_rows(get, lists[i].sql, 1, &get->id, n, lists[i].read, err);
    }
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
    enum status status = get_count(get, "unit", &get->run->n_unit, err);
    if (status != STATUS_OK)
        return status;
    get->run->units = arena_array(get->arena, struct run_unit, get->run->n_unit);
    status = get_rows(get, sql, 1, &get->id, get->run->n_unit, read_unit, err);
    for (uint32_t i = 0; i < get->run->n_unit && status == STATUS_OK; i++)
        n_param += get->run->units[i].n_param;
    if (status == STATUS_OK)
        status = get_rows(get, member_sql, 1, &get->id, n_param, read_param, err);
    return status;
}

static enum status get_collectives(struct get *get, struct err *err)
{
    const enum status status = get_count(get, "collective", &get->run->n_collective, err);
    if (status != STATUS_OK)
        return status;
    get->run->collectives = arena_array(get->arena, struct run_collective, get->run->n_collective);
    return get_rows(get,
                    "SELECT kind, comm, dtype, reduction, elements, bytes, count FROM collective"
                    " WHERE run_id = ?1 ORDER BY position",
                    1, &get->id, get->run->n_collective, read_collective, err);
}

static enum status get_tasks(struct get *get, struct err *err)
{
    static const char *const sql =
        "SELECT kind, stream, phase, dtype, reduction, unit, microbatch, kernels, elements,"
        " launch_ns, launched_ns, start_ns, end_ns, comm, value FROM task JOIN task_label ON "
        "task_label.id = label_id"
        " JOIN string ON string.id = name_id WHERE task.id BETWEEN ?1 AND ?2 ORDER BY task.id";
    const uint32_t n = get->run->n_task;
    const int64_t range[] = {get->first_task, get->first_task + n - 1};
    get->run->tasks = arena_array(get->arena, struct run_task, n);
    return get_rows(get, sql, 2, range, n, read_task, err);
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
    return get_rows(get, sql, 2, range, n, read_sample, err);
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
        get_head, get_numbers, get_units, get_collectives, get_tasks, get_samples, store_get_real};
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
