/*
 * The tables of a cluster file: rows of collectives, and fixed prices; see cluster_reader.h.
 *
 * A row holds the constants of one formula for one kind and rank count; there is at most one for
 * each. Prices stand in place of all rates: a cluster has one or the other.
 */
#include <string.h>

#include "src/cluster_reader.h"

static const uint64_t MAX_POINT_BYTES = UINT64_C(1) << 50;

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static enum status read_point(const struct cluster_reader *r, const struct json_at *at,
                              double past_bytes, struct collective_point *out)
{
    static const char *const keys[] = {"bytes", "us"};
    uint64_t bytes;
    double us;
    enum status status;

    if ((status = cluster_check_object(at, keys, LENGTH(keys), r->err)) ||
        (status = json_get_count(at, "bytes", MAX_POINT_BYTES, &bytes, r->err)) ||
        (status = cluster_read_number(r, at, "us", 1e-3, 1e9, &us)))
        return status;
    if ((double)bytes <= past_bytes)
        return json_fail(at, r->err, "'bytes' is %llu, points are in the order of their bytes",
                         (unsigned long long)bytes);
    *out = (struct collective_point){.bytes = (double)bytes, .seconds = us * 1e-6};
    return STATUS_OK;
}

static enum status read_points(const struct cluster_reader *r, const struct json_at *row_at,
                               const char *key, const struct collective_point **out,
                               uint32_t *n_out)
{
    struct json_at at;
    uint32_t n = 0;
    enum status status;

    if (!json_has(row_at, key))
        return STATUS_OK;
    if ((status = json_get(row_at, key, &at, r->err)))
        return status;
    if (!json_is_array(&at))
        return json_fail(&at, r->err, "not an array");
    struct collective_point *points =
        arena_array(r->arena, struct collective_point, CLUSTER_MAX_POINTS);
    for (struct json_at it = json_first(&at); it.node; it = json_next(&it), n++) {
        if (n == CLUSTER_MAX_POINTS)
            return json_fail(&at, r->err, "more than %d points", CLUSTER_MAX_POINTS);
        if ((status = read_point(r, &it, n > 0 ? points[n - 1].bytes : 0, &points[n])))
            return status;
    }
    if (n < 2)
        return json_fail(&at, r->err, "%u points, it takes 2 to lie between", n);
    *out = points;
    *n_out = n;
    return STATUS_OK;
}

static enum status read_row(const struct cluster_reader *r, const struct json_at *at,
                            struct collective_row *out)
{
    static const char *const keys[] = {"kind",
                                       "ranks",
                                       "nodes",
                                       "points",
                                       "shape",
                                       "source",
#define X(member, key, unit, least, most) key,
                                       CLUSTER_ROW_NUMBERS(X)
#undef X
#define X(member, key, most) key,
                                           CLUSTER_ROW_SHARES(X)
#undef X
    };
    static const uint8_t kinds[] = {TASK_ALL_GATHER, TASK_REDUCE_SCATTER, TASK_ALL_REDUCE};
    const char *const names[] = {task_kind_name(kinds[0]), task_kind_name(kinds[1]),
                                 task_kind_name(kinds[2])};
    struct collective_row row = {0};
    const char *kind;
    uint64_t ranks, nodes = 1;
    enum status status;

    if ((status = cluster_check_object(at, keys, LENGTH(keys), r->err)) ||
        (status = json_get_string(at, "kind", &kind, r->err)) ||
        (status = json_get_u64(at, "ranks", PLAN_MAX_RANKS, &ranks, r->err)) ||
        (json_has(at, "nodes") &&
         (status = json_get_count(at, "nodes", PLAN_MAX_RANKS, &nodes, r->err))) ||
        (status = cluster_read_string(r, at, "source", &row.source)))
        return status;
#define X(member, key, unit, least, most)                                     \
    if ((status = cluster_read_number(r, at, key, least, most, &row.member))) \
        return status;                                                        \
    row.member *= unit;
    CLUSTER_ROW_NUMBERS(X)
#undef X
#define X(member, key, most)                                                                   \
    if (json_has(at, key) && (status = cluster_read_number(r, at, key, 0, most, &row.member))) \
        return status;
    CLUSTER_ROW_SHARES(X)
#undef X
    if ((status = read_points(r, at, "points", &row.points, &row.n_point)) ||
        (status = read_points(r, at, "shape", &row.shape, &row.n_shape)))
        return status;
    const int index = cluster_index_of(kind, names, LENGTH(names));
    if (index < 0)
        return cluster_fail_unknown(at, "kind", kind, names, LENGTH(names), r->err);
    if (ranks < 2)
        return json_fail(at, r->err, "'ranks' is %u, a collective has at least 2", (unsigned)ranks);
    if (ranks % nodes != 0)
        return json_fail(at, r->err, "%u ranks cannot be equally many on each of %u nodes",
                         (unsigned)ranks, (unsigned)nodes);
    row.kind = kinds[index];
    row.ranks = (uint32_t)ranks;
    row.nodes = (uint32_t)nodes;
    *out = row;
    return STATUS_OK;
}

static enum status check_rows(const struct json_at *at, const struct collective_row *rows,
                              uint32_t n, struct err *err)
{
    bool has[TASK_KIND_N] = {false};

    for (uint32_t i = 0; i < n; i++) {
        has[rows[i].kind] |= rows[i].nodes == 1;
        for (uint32_t j = 0; j < i; j++)
            if (rows[i].kind == rows[j].kind && rows[i].ranks == rows[j].ranks &&
                rows[i].nodes == rows[j].nodes)
                return json_fail(at, err, "two rows for %s of %u ranks",
                                 task_kind_name(rows[i].kind), rows[i].ranks);
    }
    /* An all-reduce without rows is priced as one of each of these. */
    for (int kind = TASK_ALL_GATHER; kind <= TASK_REDUCE_SCATTER; kind++)
        if (task_kind_is_collective(kind) && !has[kind])
            return json_fail(at, err, "no row for %s in one node", task_kind_name(kind));
    return STATUS_OK;
}

/* The table is taken whole: no rows of a base beside it. */
enum status cluster_read_collectives(const struct cluster_reader *r, const struct json_at *root)
{
    struct json_at at;
    uint32_t n = 0;
    enum status status;

    if (r->has_base && !json_has(root, "collectives"))
        return STATUS_OK;
    if ((status = json_get(root, "collectives", &at, r->err)))
        return status;
    if (!json_is_array(&at))
        return json_fail(&at, r->err, "not an array");
    struct collective_row *rows = arena_array(r->arena, struct collective_row, CLUSTER_MAX_ROWS);
    for (struct json_at it = json_first(&at); it.node; it = json_next(&it)) {
        if (n == CLUSTER_MAX_ROWS)
            return json_fail(&at, r->err, "more than %d rows", CLUSTER_MAX_ROWS);
        if ((status = read_row(r, &it, &rows[n++])))
            return status;
    }
    if ((status = check_rows(&at, rows, n, r->err)))
        return status;
    r->out->collectives = rows;
    r->out->n_collective = n;
    return STATUS_OK;
}

static enum status read_price(const struct cluster_reader *r, const struct json_at *at,
                              const char *key, uint64_t most, int64_t *out)
{
    uint64_t price;
    enum status status;

    if (r->has_base && !json_has(at, key))
        return STATUS_OK;
    if (!(status = json_get_u64(at, key, most, &price, r->err)))
        *out = (int64_t)price;
    return status;
}

/* An object with one price for each name. */
static enum status read_price_list(const struct cluster_reader *r, const struct json_at *prices,
                                   const char *list, const char *const *names, size_t n,
                                   int64_t *out)
{
    struct json_at at;
    enum status status;

    if (r->has_base && !json_has(prices, list))
        return STATUS_OK;
    if ((status = json_get(prices, list, &at, r->err)) ||
        (status = cluster_check_object(&at, names, n, r->err)))
        return status;
    for (size_t i = 0; i < n && !status; i++)
        status = read_price(r, &at, names[i], CLUSTER_MAX_PRICE_NS, &out[i]);
    return status;
}

/* Forward and backward have no price of their own: they cost the sum of their operators. */
static enum status read_task_prices(const struct cluster_reader *r, const struct json_at *prices)
{
    const char *names[TASK_KIND_N];
    int64_t listed[TASK_KIND_N];
    int kinds[TASK_KIND_N];
    size_t n = 0;

    for (int kind = 0; kind < TASK_KIND_N; kind++) {
        if (kind == TASK_FORWARD || kind == TASK_BACKWARD)
            continue;
        names[n] = task_kind_name(kind);
        listed[n] = r->out->task_price_ns[kind];
        kinds[n++] = kind;
    }
    const enum status status = read_price_list(r, prices, "task_ns", names, n, listed);
    for (size_t i = 0; i < n && !status; i++)
        r->out->task_price_ns[kinds[i]] = listed[i];
    return status;
}

static enum status read_op_prices(const struct cluster_reader *r, const struct json_at *prices)
{
    const char *names[OP_KIND_N];

    for (int kind = 0; kind < OP_KIND_N; kind++)
        names[kind] = op_kind_name(kind);
    return read_price_list(r, prices, "op_ns", names, OP_KIND_N, r->out->op_price_ns);
}

enum status cluster_read_prices(const struct cluster_reader *r, const struct json_at *root)
{
    static const char *const keys[] = {
#define X(member, key, most) key,
        CLUSTER_PRICES(X)
#undef X
            "task_ns",
        "op_ns",
    };
    struct json_at at;
    enum status status;

    if (r->has_base && !json_has(root, "prices"))
        return STATUS_OK;
    if ((status = json_get(root, "prices", &at, r->err)) ||
        (status = cluster_check_object(&at, keys, LENGTH(keys), r->err)) ||
        (status = read_task_prices(r, &at)) || (status = read_op_prices(r, &at)))
        return status;
#define X(member, key, most)                                       \
    if ((status = read_price(r, &at, key, most, &r->out->member))) \
        return status;
    CLUSTER_PRICES(X)
#undef X
    return STATUS_OK;
}
