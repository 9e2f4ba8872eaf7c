/*
 * SQL of a person: rows as they are, one statement, nothing written, nothing that never ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/run_make.h"
#include "tests/store_rig.h"
#include "tests/tap.h"

static const char *path;

static void kinds_of_values(void)
{
    static const struct {
        const char *sql, *want;
    } cases[] = {
        {"SELECT 1 AS a, 'x|y' AS b", "a|b\n1|x|y\n"},
        {"SELECT 9223372036854775807, -9223372036854775807 - 1",
         "9223372036854775807|-9223372036854775807 - "
         "1\n9223372036854775807|-9223372036854775808\n"},
        {"SELECT 0.5, 1e300, NULL", "0.5|1e300|NULL\n0.5|1.0e+300|NULL\n"},
        {"SELECT 9e999, -9e999", "9e999|-9e999\nInf|-Inf\n"},
        {"SELECT typeof(1.0 / 3), 1.0 / 3", "typeof(1.0 / 3)|1.0 / 3\nreal|0.3333333333333333\n"},
        {"SELECT '', x''", "''|x''\n|\n"},
        {"SELECT 1 WHERE 0", "1\n"},
        {"  SELECT 2; /* a comment */ ;", "2\n2\n"},
        {"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3)"
         " SELECT sum(i) FROM n",
         "sum(i)\n6\n"},
        {"VALUES (1), (2)", "column1\n1\n2\n"},
        {"SELECT e.value FROM v_run, json_each(options) AS e", "value\nblock\n"},
        {"PRAGMA user_version", "user_version\n7\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *got = rig_query(path, cases[i].sql);
        is_str(got, cases[i].want, "%s", cases[i].sql);
        free(got);
    }
}

static enum status keep_kinds(void *self, int n, const char *const *names,
                              const struct query_value *values, struct err *err)
{
    char *kinds = self;
    (void)names;
    (void)err;
    for (int i = 0; i < n && values; i++) {
        kinds[2 * i] = "nirtb"[values[i].kind];
        kinds[2 * i + 1] = (char)('0' + values[i].length);
    }
    return STATUS_OK;
}

/* Of one value. */
static enum status keep_text(void *self, int n, const char *const *names,
                             const struct query_value *values, struct err *err)
{
    char **text = self;
    (void)n;
    (void)names;
    (void)err;
    if (values)
        *text = strdup(values[0].text);
    return STATUS_OK;
}

static void reals(void)
{
    static const double numbers[] = {
        0.1, 1.0 / 3, 0.1 + 0.2, 1e23, 5e-324, 1.7976931348623157e308, -123456789.123456789};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char sql[80], *got = NULL;
        struct err err = {0};
        snprintf(sql, sizeof(sql), "SELECT %.17g", numbers[i]);
        const struct query query = {.sql = sql};
        is_int(query_run(path, &query, keep_text, &got, &err), STATUS_OK, "%s", sql);
        ok(got && strtod(got, NULL) == numbers[i], "is read again as the same number: %s", got);
        free(got);
    }
}

static void parameters(void)
{
    static const char *const values[] = {"12", "-0.5", "12 apples", "", "nan", "0x10", "-"};
    char got[32] = "";
    struct err err = {0};
    struct query query = {
        .sql = "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, x'0102'", .params = values, .n_param = 7};
    is_int(query_run(path, &query, keep_kinds, got, &err), STATUS_OK, "values are bound");
    is_str(got, "i2r4t9t0t3t4t1n0b2", "as integer, real or text, as they look");

    memset(got, 0, sizeof(got));
    query = (struct query){.sql = "SELECT 'a' || char(0) || 'b'"};
    is_int(query_run(path, &query, keep_kinds, got, &err), STATUS_OK, "a text with a zero byte");
    is_str(got, "b3", "comes whole, as a blob");

    static const char *const spelled[] = {
        "0012345678901234", "+7", "-0", "9223372036854775808", "7.50", "1e3", "0.12345678901234567",
    };
    query = (struct query){.sql = "SELECT ?1 = '0012345678901234' AND ?2 = '+7' AND ?3 = '-0' AND"
                                  " ?4 = '9223372036854775808' AND ?5 = '7.50' AND ?6 = '1e3' AND"
                                  " ?7 = '0.12345678901234567'",
                           .params = spelled,
                           .n_param = 7};
    char *answer = NULL;
    is_int(query_run(path, &query, keep_text, &answer, &err), STATUS_OK, "other spellings");
    is_str(answer, "1", "are bound as the texts that they are");
    free(answer);

    query = (struct query){.sql = "SELECT ?1, ?2", .params = values, .n_param = 1};
    is_int(query_run(path, &query, keep_kinds, got, &err), STATUS_USAGE, "one too few is an error");
    is_str(err.text, "the SQL has 2 parameters, values given: 1", "with both numbers");
}

static void mistakes(void)
{
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {"", "no statement"},
        {" -- nothing", "no statement"},
        {"SELECT 1; SELECT 2", "more than one statement"},
        {"SELECT 1; nonsense", "more than one statement"},
        {"selec 1", "character 1: near \"selec\": syntax error"},
        {"SELECT * FROM v_tusk", "no such table: v_tusk"},
        {"SELECT stp_ns FROM v_run", "character 8: no such column: stp_ns"},
        {"SELECT abs(-9223372036854775808)", "integer overflow"},
        {"SELECT zeroblob(1000000000)", "too big"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct query query = {.sql = cases[i].sql};
        struct err err = {0};
        char kinds[16];
        is_int(query_run(path, &query, keep_kinds, kinds, &err), STATUS_USAGE, "'%s' is refused",
               cases[i].sql);
        ok(strstr(err.text, cases[i].words), "and the message says why: %s", err.text);
    }
}

static void writing(void)
{
    static const char *const writes[] = {
        "DELETE FROM run",
        "UPDATE run SET command = ''",
        "INSERT INTO string (value) VALUES ('x')",
        "REPLACE INTO string (value) VALUES ('x')",
        "DROP VIEW v_run",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "CREATE VIRTUAL TABLE t USING json_each",
        "ALTER TABLE run ADD COLUMN x",
        "ATTACH 'other.db' AS other",
        "DETACH main",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "SAVEPOINT s",
        "PRAGMA user_version = 9",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = 0",
        "PRAGMA writable_schema = 1",
        "PRAGMA wal_checkpoint",
        "PRAGMA optimize",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT fts3_tokenizer('x', x'0000000000000000')",
    };
    char *before = tap_read_file(path);
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        char *got = rig_query(path, writes[i]);
        ok(strstr(got, "error: not allowed: a query only reads"), "%s is not allowed", writes[i]);
        free(got);
    }
    char *got = rig_query(path, "UPDATE sqlite_master SET sql = ''");
    ok(strstr(got, "may not be modified"), "nor is writing the schema: %s", got);
    free(got);
    char *after = tap_read_file(path);
    ok(!memcmp(before, after, 4096), "the file's first page is as it was");
    ok(access("other.db", F_OK) && access("copy.db", F_OK), "and no other file was made");
    free(before);
    free(after);
}

/* Its rows would never end, and the second gives no row at all. */
static void endless(void)
{
    static const char *const sql[] = {
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n",
    };
    for (size_t i = 0; i < 2; i++) {
        struct err err = {0};
        char kinds[16];
        const struct query query = {.sql = sql[i], .timeout_ms = 100};
        is_int(query_run(path, &query, keep_kinds, kinds, &err), STATUS_DB,
               "a statement without an end is stopped");
        ok(strstr(err.text, "stopped after 100 ms"), "and the message says when: %s", err.text);
    }
}

static enum status stop_at_third(void *self, int n, const char *const *names,
                                 const struct query_value *values, struct err *err)
{
    int *calls = self;
    (void)n;
    (void)names;
    (void)values;
    return ++*calls == 3 ? err_set(err, STATUS_NO, "enough") : STATUS_OK;
}

static void early_end(void)
{
    struct err err = {0};
    int calls = 0;
    const struct query query = {.sql = "VALUES (1), (2), (3), (4)"};
    is_int(query_run(path, &query, stop_at_third, &calls, &err), STATUS_NO,
           "a receiver that has enough ends the query with its own status");
    is_int(calls, 3, "and gets no further row");
}

int main(void)
{
    struct run run;
    path = rig_path("runs.db");
    struct store *store = rig_open(path);
    run_by_hand(&run);
    rig_put(store, &run);
    store_close(store);

    kinds_of_values();
    reals();
    parameters();
    mistakes();
    writing();
    endless();
    early_end();
    return tap_done();
}
