/*
 * `unshard cluster`: what is built in, and every number of one cluster with its spread and source.
 *
 * Numbers are shown in the unit of the file, which each key names.
 */
#include <string.h>

#include "src/cli/command.h"
#include "src/cluster_json.h"

enum { KEY_COLUMNS = 40 };

static const struct size_field {
    const char *key;
    double unit;
    size_t value, source; /* offsets in struct cluster */
} size_fields[] = {
#define X(member, key, unit, least) \
    {key, unit, offsetof(struct cluster, member), offsetof(struct cluster, member##_source)},
    CLUSTER_SIZES(X)
#undef X
};
enum { SIZE_N = sizeof size_fields / sizeof *size_fields };

static double size_value(const struct cluster *cluster, const struct size_field *field)
{
    uint64_t value;
    memcpy(&value, (const char *)cluster + field->value, sizeof value);
    return (double)value / field->unit;
}

static const char *size_source(const struct cluster *cluster, const struct size_field *field)
{
    const char *source;
    memcpy(&source, (const char *)cluster + field->source, sizeof source);
    return source;
}

static void add_source(const struct term *term, const char *source, struct text *out)
{
    const struct term_margins margins = {.columns = TERM_PAGE_COLUMNS, .at = 6, .hanging = 6};
    text_add(out, "      %s", term->quiet);
    term_wrap(source, margins, out);
    text_add(out, "%s", term->plain);
}

static void add_sizes(const struct cluster *cluster, const struct term *term, struct text *out)
{
    text_add(out, "\n%sgpu%s\n", term->strong, term->plain);
    for (unsigned i = 0; i < SIZE_N; i++) {
        text_add(out, "  %-*s%12.9g\n", KEY_COLUMNS, size_fields[i].key,
                 size_value(cluster, &size_fields[i]));
        add_source(term, size_source(cluster, &size_fields[i]), out);
    }
}

static void add_valid(const struct rate *rate, struct text *out)
{
    for (uint32_t i = 0; i < rate->n_valid; i++) {
        const struct valid_range *range = &rate->valid[i];
        text_add(out, "      valid for %s from %llu", quantity_name((enum quantity)range->quantity),
                 (unsigned long long)range->min);
        if (range->max != UINT64_MAX)
            text_add(out, " to %llu", (unsigned long long)range->max);
        text_add(out, "\n");
    }
}

static void add_rate(const struct cluster *cluster, const struct rate_field *field,
                     const struct term *term, struct text *out)
{
    const struct rate *rate = cluster_rate(cluster, field);
    text_add(out, "  %s.%s", field->section, field->key);
    text_pad(out, KEY_COLUMNS + 2);
    for (unsigned spread = 0; spread < SPREAD_N; spread++)
        text_add(out, "%12.6g", rate->at[spread] / field->unit);
    text_add(out, "\n");
    add_source(term, rate->source, out);
    add_valid(rate, out);
}

static void add_rates(const struct cluster *cluster, const struct term *term, struct text *out)
{
    text_add(out, "\n%s%-*s%12s%12s%12s%s\n", term->strong, KEY_COLUMNS + 2, "rates", "low", "mid",
             "high", term->plain);
    for (uint32_t i = 0; i < n_cluster_rate_fields; i++)
        add_rate(cluster, &cluster_rate_fields[i], term, out);
}

/* Where a profile differs from the cluster's own host. */
static void add_hosts(const struct cluster *cluster, const struct term *term, struct text *out)
{
    for (uint32_t p = 0; p < cluster->n_host_profile; p++) {
        const struct cluster as = cluster_with_host(cluster, &cluster->host_profiles[p]);
        text_add(out, "\n%s--host %s%s\n", term->strong, cluster->host_profiles[p].name,
                 term->plain);
        for (uint32_t i = 0; i < n_cluster_rate_fields; i++) {
            const struct rate_field *field = &cluster_rate_fields[i];
            if (cluster_rate(&as, field)->source != cluster_rate(cluster, field)->source)
                add_rate(&as, field, term, out);
        }
    }
}

static void add_points(const struct collective_point *points, uint32_t n, const char *what,
                       struct text *out)
{
    char first[32], last[32];

    if (n > 0)
        text_add(out, "      %s%u points, %s to %s\n", what, n,
                 text_bytes((uint64_t)points[0].bytes, first),
                 text_bytes((uint64_t)points[n - 1].bytes, last));
}

static void add_row_points(const struct collective_row *row, struct text *out)
{
    if (collective_row_nodes(row) > 1)
        text_add(out, "      on %u nodes\n", row->nodes);
    if (row->faster > 0 || row->slower > 0)
        text_add(out, "      spread: %.1f %% faster to %.1f %% slower\n", 100 * row->faster,
                 100 * row->slower);
    add_points(row->points, row->n_point, "", out);
    add_points(row->shape, row->n_shape, "shape, by which calibrate fills gaps: ", out);
}

static void add_collectives(const struct cluster *cluster, const struct term *term,
                            struct text *out)
{
    text_add(out, "\n%s%-20s%6s%12s%16s%12s%s\n", term->strong, "collectives", "ranks", "start us",
             "us per sqrt MB", "GB/s", term->plain);
    for (uint32_t i = 0; i < cluster->n_collective; i++) {
        const struct collective_row *row = &cluster->collectives[i];
        text_add(out, "  %-18s%6u%12.6g%16.6g%12.6g\n", task_kind_name((enum task_kind)row->kind),
                 row->ranks, row->a_s * 1e6, row->b_s_per_sqrt_mb * 1e6, row->bytes_per_s * 1e-9);
        add_row_points(row, out);
        add_source(term, row->source, out);
    }
}

static void add_price(const char *group, const char *name, uint64_t price, struct text *out)
{
    text_add(out, "  %s%s", group, name);
    text_pad(out, KEY_COLUMNS + 2);
    text_add(out, "%12llu\n", (unsigned long long)price);
}

static void add_prices(const struct cluster *cluster, const struct term *term, struct text *out)
{
    text_add(out, "\n%sprices%s\n", term->strong, term->plain);
    for (unsigned kind = 0; kind < TASK_KIND_N; kind++) {
        if (kind != TASK_FORWARD && kind != TASK_BACKWARD)
            add_price("task_ns.", task_kind_name((enum task_kind)kind),
                      (uint64_t)cluster->task_price_ns[kind], out);
    }
    for (unsigned kind = 0; kind < OP_KIND_N; kind++)
        add_price("op_ns.", op_kind_name((enum op_kind)kind), (uint64_t)cluster->op_price_ns[kind],
                  out);
#define X(member, key, most) add_price("", key, (uint64_t)cluster->member, out);
    CLUSTER_PRICES(X)
#undef X
}

static void show_text(const struct cluster *cluster, const struct term *term, struct text *out)
{
    char name[TERM_NAME_BYTES];
    term_name(cluster->name, name);
    const struct term_margins margins = {
        .columns = TERM_PAGE_COLUMNS, .at = term_columns(name) + 2, .hanging = 2};
    text_add(out, "%s%s%s: ", term->strong, name, term->plain);
    term_wrap(cluster->description, margins, out);
    add_sizes(cluster, term, out);
    if (cluster->has_prices) {
        add_prices(cluster, term, out);
    } else {
        add_rates(cluster, term, out);
        add_collectives(cluster, term, out);
        add_hosts(cluster, term, out);
    }
}

static void show_json(const struct cluster *cluster, struct text *out)
{
    struct cJSON *root = cluster_to_json(cluster);
    json_print(root, out);
    json_free(root);
}

static enum status show(const struct options *options, struct output *out, struct arena *arena,
                        struct err *err)
{
    struct cluster cluster;
    enum status status = cluster_open(options->operands[1], arena, &cluster, err);
    if (status != STATUS_OK)
        return status;
    if (option_given(options, OPTION_JSON))
        show_json(&cluster, &out->result);
    else
        show_text(&cluster, &out->term, &out->result);
    return STATUS_OK;
}

static enum status list(const struct options *options, struct output *out, struct arena *arena,
                        struct err *err)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.cluster_list/1");
    struct cJSON *array = json_add_array(root, "clusters");
    const struct term_margins margins = {.columns = TERM_PAGE_COLUMNS, .at = 14, .hanging = 14};
    struct text rows;
    text_init(&rows);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < n_builtin_clusters; i++) {
        struct cluster cluster;
        status = cluster_open(builtin_clusters[i].name, arena, &cluster, err);
        if (status != STATUS_OK)
            goto out;
        text_add(&rows, "%-14s", cluster.name);
        term_wrap(cluster.description, margins, &rows);
        struct cJSON *object = json_add_object(array, NULL);
        json_add_string(object, "cluster", cluster.name);
        json_add_string(object, "description", cluster.description);
        json_add_u64(object, "memory_bytes", cluster.memory_bytes);
    }
    if (option_given(options, OPTION_JSON))
        json_print(root, &out->result);
    else
        text_add(&out->result, "%s", rows.at);
out:
    text_release(&rows);
    json_free(root);
    return status;
}

enum status cmd_cluster(struct options *options, struct output *out, struct err *err)
{
    struct arena arena;
    arena_init(&arena);
    enum status status = !strcmp(options->operands[0], "list") ? list(options, out, &arena, err)
                                                               : show(options, out, &arena, err);
    arena_release(&arena);
    return status;
}
