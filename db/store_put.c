/*
 * One run into the tables, in one transaction.
 *
 * Order: what it refers to first. The long tables are filled by one statement each from the run's
 * own arrays (db/rows.h). Numbers past 2^63 - 1 are refused before anything is written.
 */
#include <time.h>

#include "db/number.h"
#include "db/store_inner.h"

static uint64_t any_bit(const uint64_t *values, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all |= values[i];
    return all;
}

static enum status check_numbers(const struct run *run, struct err *err)
{
    uint64_t all = run->world | run->gpus_per_node | run->parameters | run->group |
                   any_bit(run->peak_by_class, CLASS_N) | any_bit(run->comm_ranks, COMM_N);
    for (uint32_t i = 0; i < run->n_unit; i++)
        all |=
            run->units[i].elements | run->units[i].padded_elements | run->units[i].shard_elements;
    for (uint32_t i = 0; i < run->n_task; i++)
        all |= run->tasks[i].elements;
    for (uint32_t i = 0; i < run->n_sample; i++)
        all |= run->samples[i].allocated | run->samples[i].reserved |
               any_bit(run->samples[i].by_class, CLASS_N);
    for (uint32_t i = 0; i < run->n_collective; i++)
        all |= run->collectives[i].elements | run->collectives[i].bytes;
    all |= store_real_numbers(&run->real);
    if (all > INT64_MAX)
        return err_set(err, STATUS_DB, "cannot store the run: a number in it is past 2^63 - 1");
    return STATUS_OK;
}

static enum status find_places(struct put *put, struct err *err)
{
    const struct {
        const char *sql;
        int64_t *out;
    } places[] = {
        {"SELECT ifnull(max(id), 0) + 1 FROM run", &put->run_id},
        {"SELECT ifnull(max(id), 0) + 1 FROM task", &put->first_task},
        {"SELECT ifnull(max(id), 0) + 1 FROM memory_sample", &put->first_sample},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && status == STATUS_OK; i++)
        status = connection_int(put->connection, places[i].sql, places[i].out, err);
    return status;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void bind_run(const struct put *put, sqlite3_stmt *statement, const int64_t *document_ids,
                     char hashes[2][NUMBER_HEX_CHARS])
{
    const struct run *run = put->run;
    BIND_INTS(statement, 1, put->run_id, now_ns(), document_ids[0], document_ids[1],
              document_ids[2], (int64_t)run->world, (int64_t)run->gpus_per_node,
              (int64_t)run->parameters, (int64_t)run->group, run->peak_unit, put->first_task,
              run->n_task, put->first_sample, run->n_sample);
    statement_bind_text(statement, 15, run_kind_name(run->kind));
    statement_bind_text(statement, 16, run->tool_version);
    statement_bind_text(statement, 17, run->command);
    statement_bind_text(statement, 18, number_to_hex(run->program_hash, hashes[0]));
    statement_bind_text(statement, 19, number_to_hex(run->placement_hash, hashes[1]));
    statement_bind_text(statement, 20, phase_name(run->peak_phase));
    statement_bind_text(statement, 21, run->environment);
}

static enum status put_run_row(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    const struct run *run = put->run;
    int64_t ids[3];
    char hashes[2][NUMBER_HEX_CHARS];
    enum status status =
        shared_document(&put->store->shared, "model", run->model, run->model_json, &ids[0], err);
    if (status == STATUS_OK)
        status = shared_document(&put->store->shared, "plan", "", run->plan_json, &ids[1], err);
    if (status == STATUS_OK)
        status = shared_document(&put->store->shared, "cluster", run->cluster, run->cluster_json,
                                 &ids[2], err);
    if (status != STATUS_OK)
        return status;
    bind_run(put, statement, ids, hashes);
    return statement_run(put->connection, statement, err);
}

static enum status put_metrics(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < RUN_METRIC_N && status == STATUS_OK; i++) {
        if (put->run->metrics[i] == RUN_NO_METRIC)
            continue;
        BIND_INTS(statement, 1, put->run_id, put->run->metrics[i]);
        statement_bind_text(statement, 3, run_metric_name((enum run_metric)i));
        status = statement_run(put->connection, statement, err);
    }
    return status;
}

/* A text in JSON: what has to be escaped is rare, and what stands between goes in one piece. */
static void add_quoted(struct text *json, const char *at)
{
    text_add(json, "\"");
    while (*at) {
        int plain = 0;
        while ((unsigned char)at[plain] >= ' ' && at[plain] != '"' && at[plain] != '\\')
            plain++;
        text_add(json, "%.*s", plain, at);
        at += plain;
        if (*at)
            text_add(json, "\\u%04x", (unsigned char)*at++);
    }
    text_add(json, "\"");
}

/* The names as a JSON array: SQL can take it apart again. */
static const char *members_json(struct put *put, const struct run_unit *unit)
{
    put->json.length = 0;
    text_add(&put->json, "[");
    for (uint32_t i = 0; i < unit->n_param; i++) {
        if (i > 0)
            text_add(&put->json, ",");
        add_quoted(&put->json, unit->params[i]);
    }
    text_add(&put->json, "]");
    return put->json.at;
}

static enum status put_units(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    struct shared *shared = &put->store->shared;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < put->run->n_unit && status == STATUS_OK; i++) {
        const struct run_unit *unit = &put->run->units[i];
        int64_t name_id, members_id;
        status = shared_string(shared, unit->name, &name_id, err);
        if (status == STATUS_OK)
            status = shared_string(shared, members_json(put, unit), &members_id, err);
        if (status != STATUS_OK)
            break;
        BIND_INTS(statement, 1, put->run_id, i, name_id, members_id, (int64_t)unit->elements,
                  (int64_t)unit->padded_elements, (int64_t)unit->shard_elements,
                  unit->reshard_after_forward);
        status = statement_run(put->connection, statement, err);
    }
    return status;
}

static enum status put_peak(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < CLASS_N && status == STATUS_OK; i++) {
        if (put->run->peak_by_class[i] == 0)
            continue;
        BIND_INTS(statement, 1, put->run_id, (int64_t)put->run->peak_by_class[i]);
        statement_bind_text(statement, 3, memory_class_name((enum memory_class)i));
        status = statement_run(put->connection, statement, err);
    }
    return status;
}

static enum status put_communicators(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < COMM_N && status == STATUS_OK; i++) {
        if (put->run->comm_ranks[i] == 0)
            continue;
        BIND_INTS(statement, 1, put->run_id, (int64_t)put->run->comm_ranks[i]);
        statement_bind_text(statement, 3, comm_name((enum comm)i));
        status = statement_run(put->connection, statement, err);
    }
    return status;
}

static enum status put_collectives(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < put->run->n_collective && status == STATUS_OK; i++) {
        const struct run_collective *collective = &put->run->collectives[i];
        BIND_INTS(statement, 1, put->run_id, i, (int64_t)collective->elements,
                  (int64_t)collective->bytes, collective->count);
        statement_bind_text(statement, 6, task_kind_name(collective->kind));
        statement_bind_text(statement, 7, dtype_name(collective->dtype));
        statement_bind_text(statement, 8, comm_name(collective->comm));
        statement_bind_text(statement, 9, reduction_name(collective->reduction));
        status = statement_run(put->connection, statement, err);
    }
    return status;
}

static int64_t task_value(const struct rows *rows, uint32_t row, int column)
{
    const struct put *put = rows->data;
    const struct run_task *task = &put->run->tasks[row];
    switch (column) {
    case 0:
        return put->label_ids[row];
    case 1:
        return number_of_unit(task->microbatch);
    case 2:
        return task->launch_ns;
    case 3:
        return task->launched_ns;
    case 4:
        return task->start_ns;
    default:
        return task->end_ns;
    }
}

static enum status put_tasks(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    enum status status = STATUS_OK;
    put->label_ids = arena_take(&put->arena, sizeof(int64_t) * put->run->n_task);
    for (uint32_t i = 0; i < put->run->n_task && status == STATUS_OK; i++)
        status = shared_label(&put->store->shared, &put->run->tasks[i], &put->label_ids[i], err);
    if (status != STATUS_OK)
        return status;
    put->store->rows = (struct rows){.data = put, .n = put->run->n_task, .value = task_value};
    return statement_run(put->connection, statement, err);
}

static int64_t sample_value(const struct rows *rows, uint32_t row, int column)
{
    const struct put *put = rows->data;
    const struct run_sample *sample = &put->run->samples[row];
    switch (column) {
    case 0:
        return sample->at_ns;
    case 1:
        return (int64_t)sample->allocated;
    case 2:
        return (int64_t)sample->reserved;
    default:
        return (int64_t)sample->by_class[column - 3];
    }
}

static enum status put_samples(struct put *put, sqlite3_stmt *statement, struct err *err)
{
    put->store->rows = (struct rows){.data = put, .n = put->run->n_sample, .value = sample_value};
    return statement_run(put->connection, statement, err);
}

#define X(id, name) ", " name
#define CLASS_COLUMNS MEMORY_CLASSES(X)
#define LAST_COLUMNS STREAMS(X_LAST)
#define X_LAST(id, name) ", last_" name
static const struct {
    const char *sql;
    enum status (*put)(struct put *put, sqlite3_stmt *statement, struct err *err);
} parts[] = {
    {"INSERT INTO run (id, created_ns, model_id, plan_id, cluster_id, world, gpus_per_node,"
     " parameters, plan_group, peak_unit, first_task, n_task, first_sample, n_sample, kind,"
     " tool_version, command, program_hash, placement_hash, peak_phase, environment) VALUES (?1,"
     " ?2, ?3, ?4, ?5, ?6, ?7, ?8, nullif(?9, 0), nullif(?10, 65535), ?11, ?12, ?13, ?14, ?15,"
     " ?16, ?17, ?18, ?19, ?20, ?21)",
     put_run_row},
    {"INSERT INTO metric (run_id, value, name) VALUES (?1, ?2, ?3)", put_metrics},
    {"INSERT INTO unit (run_id, unit, name_id, members_id, elements, padded_elements,"
     " shard_elements, reshard) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
     put_units},
    {"INSERT INTO memory_peak (run_id, bytes, class) VALUES (?1, ?2, ?3)", put_peak},
    {"INSERT INTO communicator (run_id, ranks, comm) VALUES (?1, ?2, ?3)", put_communicators},
    {"INSERT INTO collective (run_id, position, elements, bytes, count, kind, dtype, comm,"
     " reduction) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
     put_collectives},
    {"INSERT INTO task (id, label_id, microbatch, launch_ns, launched_ns, start_ns, end_ns)"
     " SELECT NULL, c0, c1, c2, c3, c4, c5 FROM rows",
     put_tasks},
    {"INSERT INTO memory_sample (id, at_ns, allocated, reserved" CLASS_COLUMNS ")"
     " SELECT NULL, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13 FROM rows",
     put_samples},
    {"INSERT INTO real_run (run_id, seed, warmup, device, transport, error) VALUES (?1, ?2, ?3, ?4,"
     " ?5, ?6)",
     store_put_real_run},
    {"INSERT INTO real_step (run_id, step, step_ns, not_finite, skipped, loss) VALUES (?1, ?2, ?3,"
     " ?4, ?5, ?6)",
     store_put_real_steps},
    {"INSERT INTO real_rank (run_id, rank, step, error" LAST_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5,"
     " ?6, ?7, ?8, ?9)",
     store_put_real_ranks},
    {"INSERT INTO real_check (run_id, position, rank, step, reserved_bytes, mapped_bytes)"
     " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
     store_put_real_checks},
};
#undef X_LAST
#undef LAST_COLUMNS
#undef CLASS_COLUMNS
#undef X
_Static_assert(sizeof(parts) / sizeof(parts[0]) == STORE_PARTS, "a statement is kept for each");
_Static_assert(CLASS_N == 11 && STREAM_N == 5 && NO_UNIT == 65535,
               "the statements above spell these out");

/* Statements are kept for the next run. */
static enum status put_part(struct put *put, size_t part, struct err *err)
{
    sqlite3_stmt **statement = &put->store->statements[part];
    enum status status = STATUS_OK;
    if (!*statement)
        status = statement_prepare(put->connection, parts[part].sql, statement, err);
    if (status == STATUS_OK)
        status = parts[part].put(put, *statement, err);
    return status;
}

/* Within the transaction. */
static enum status put_all(struct put *put, struct err *err)
{
    enum status status = find_places(put, err);
    for (size_t i = 0; i < STORE_PARTS && status == STATUS_OK; i++)
        status = put_part(put, i, err);
    return status;
}

enum status store_put(struct store *store, const struct run *run, int64_t *id, struct err *err)
{
    struct put put = {.store = store, .connection = &store->connection, .run = run};
    enum status status = check_numbers(run, err);
    if (status == STATUS_OK)
        status = connection_exec(put.connection, "BEGIN IMMEDIATE", "store a run in", err);
    if (status != STATUS_OK)
        return status;

    arena_init(&put.arena);
    text_init(&put.json);
    status = put_all(&put, err);
    if (status == STATUS_OK)
        status = connection_exec(put.connection, "COMMIT", "store a run in", err);
    if (status == STATUS_OK) {
        *id = put.run_id;
    } else {
        sqlite3_exec(put.connection->db, "ROLLBACK", NULL, NULL, NULL);
        shared_forget(&store->shared);
    }
    store->rows = (struct rows){0};
    text_release(&put.json);
    arena_release(&put.arena);
    return status;
}
