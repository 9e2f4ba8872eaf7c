/*
 * Find, or else add: each kind has two statements that take the same parameters.
 *
 * The write lock is held, so that nobody adds the same in between.
 */
#include "db/shared.h"

#include <string.h>

#include "db/number.h"
#include "src/hash.h"

/* All that makes a label, without holes, so that its bytes are its identity. */
struct label_key {
    int64_t name_id;
    uint64_t elements;
    uint32_t unit, kernels;
    uint8_t kind, stream, phase, dtype;
    uint16_t comm, reduction;
};
_Static_assert(sizeof(struct label_key) == 32, "a hole in a key is not zero");

enum status shared_open(struct shared *shared, struct connection *connection, struct err *err)
{
    static const char *const sql[SHARED_N][2] = {
        [SHARED_STRING] = {"SELECT id FROM string WHERE value = ?1",
                           "INSERT INTO string (value) VALUES (?1)"},
        [SHARED_DOCUMENT] = {"SELECT id FROM document WHERE hash = ?3 AND kind = ?1 AND name = ?2"
                             " AND json = ?4",
                             "INSERT INTO document (kind, name, hash, json)"
                             " VALUES (?1, ?2, ?3, ?4)"},
        [SHARED_LABEL] = {"SELECT id FROM task_label WHERE name_id = ?1 AND elements = ?2"
                          " AND unit = ?3 AND kernels = ?4 AND kind = ?6 AND stream = ?7"
                          " AND phase = ?8 AND dtype = ?9 AND reduction = ?10 AND comm IS ?11",
                          "INSERT INTO task_label (name_id, elements, unit, kernels, collective,"
                          " kind, stream, phase, dtype, reduction, comm)"
                          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"},
    };
    enum status status = STATUS_OK;
    *shared = (struct shared){.connection = connection};
    arena_init(&shared->arena);
    for (int i = 0; i < SHARED_N && status == STATUS_OK; i++) {
        status = statement_prepare(connection, sql[i][0], &shared->find[i], err);
        if (status == STATUS_OK)
            status = statement_prepare(connection, sql[i][1], &shared->add[i], err);
    }
    return status;
}

void shared_forget(struct shared *shared)
{
    arena_reset(&shared->arena);
    shared->strings = shared->labels = (struct intern){0};
}

void shared_release(struct shared *shared)
{
    arena_release(&shared->arena);
    for (int i = 0; i < SHARED_N; i++) {
        sqlite3_finalize(shared->find[i]);
        sqlite3_finalize(shared->add[i]);
    }
}

static enum status add(struct shared *shared, enum shared_kind kind, int64_t *id, struct err *err)
{
    const enum status status = statement_run(shared->connection, shared->add[kind], err);
    if (status == STATUS_OK)
        *id = sqlite3_last_insert_rowid(shared->connection->db);
    return status;
}

/* Both statements have their parameters; *added is set where it was not there. */
static enum status find_or_add(struct shared *shared, enum shared_kind kind, int64_t *id,
                               bool *added, struct err *err)
{
    bool found;
    sqlite3_stmt *find = shared->find[kind];
    const enum status status = statement_next(shared->connection, find, &found, err);
    if (status != STATUS_OK)
        return status;
    *added = !found;
    if (!found)
        return add(shared, kind, id, err);
    *id = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return STATUS_OK;
}

static void bind_texts(struct shared *shared, enum shared_kind kind, int first, int n,
                       const char *const *texts)
{
    for (int i = 0; i < n; i++) {
        statement_bind_text(shared->find[kind], first + i, texts[i]);
        statement_bind_text(shared->add[kind], first + i, texts[i]);
    }
}

static enum status string_id(struct shared *shared, const char *text, int64_t *id, bool *added,
                             struct err *err)
{
    int64_t *known = intern_find(&shared->strings, &shared->arena, text, strlen(text));
    enum status status = STATUS_OK;
    *added = false;
    if (!*known) {
        bind_texts(shared, SHARED_STRING, 1, 1, &text);
        status = find_or_add(shared, SHARED_STRING, known, added, err);
    }
    *id = *known;
    return status;
}

enum status shared_string(struct shared *shared, const char *text, int64_t *id, struct err *err)
{
    bool added;
    return string_id(shared, text, id, &added, err);
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0;
    for (; *text; text++)
        hash = hash_add(hash, (unsigned char)*text);
    return hash;
}

enum status shared_document(struct shared *shared, const char *kind, const char *name,
                            const char *json, int64_t *id, struct err *err)
{
    char hash[NUMBER_HEX_CHARS];
    const char *const texts[] = {kind, name, number_to_hex(hash_text(json), hash), json};
    bool added;
    bind_texts(shared, SHARED_DOCUMENT, 1, 4, texts);
    return find_or_add(shared, SHARED_DOCUMENT, id, &added, err);
}

/* A name that was new a moment ago has no label yet: that need not be asked. */
static enum status find_or_add_label(struct shared *shared, const struct run_task *task,
                                     const struct label_key *key, bool name_is_new, int64_t *id,
                                     struct err *err)
{
    const char *const texts[] = {
        task_kind_name(task->kind),      stream_name(task->stream),
        phase_name(task->phase),         dtype_name(task->dtype),
        reduction_name(task->reduction), task->comm == COMM_NONE ? NULL : comm_name(task->comm)};
    sqlite3_stmt *const both[] = {shared->find[SHARED_LABEL], shared->add[SHARED_LABEL]};
    bool added;
    for (int i = 0; i < 2; i++)
        BIND_INTS(both[i], 1, key->name_id, (int64_t)key->elements, number_of_unit(task->unit),
                  key->kernels, task_kind_is_collective(task->kind));
    bind_texts(shared, SHARED_LABEL, 6, 6, texts);
    return name_is_new ? add(shared, SHARED_LABEL, id, err)
                       : find_or_add(shared, SHARED_LABEL, id, &added, err);
}

enum status shared_label(struct shared *shared, const struct run_task *task, int64_t *id,
                         struct err *err)
{
    struct label_key key = {.elements = task->elements,
                            .unit = task->unit,
                            .kernels = task->kernels,
                            .kind = task->kind,
                            .stream = task->stream,
                            .phase = task->phase,
                            .dtype = task->dtype,
                            .comm = task->comm,
                            .reduction = task->reduction};
    bool name_is_new;
    enum status status = string_id(shared, task->name, &key.name_id, &name_is_new, err);
    if (status != STATUS_OK)
        return status;
    int64_t *known = intern_find(&shared->labels, &shared->arena, &key, sizeof(key));
    if (!*known)
        status = find_or_add_label(shared, task, &key, name_is_new, known, err);
    *id = *known;
    return status;
}
