/*
 * A cluster as a JSON document; see cluster_json.h. Numbers stand in the unit that their key names,
 * as in the file.
 */
#include "src/cluster_json.h"

#include <string.h>

static void add_rate_json(const struct cluster *cluster, const struct rate_field *field,
                          struct cJSON *array)
{
    const struct rate *rate = cluster_rate(cluster, field);
    static const char *const spreads[SPREAD_N] = {"low", "mid", "high"};
    struct cJSON *object = json_add_object(array, NULL);
    json_add_string(object, "section", field->section);
    json_add_string(object, "key", field->key);
    for (unsigned spread = 0; spread < SPREAD_N; spread++)
        json_add_real(object, spreads[spread], rate->at[spread] / field->unit);
    json_add_string(object, "source", rate->source);
    if (rate->n_valid == 0)
        return;
    struct cJSON *valid = json_add_object(object, "valid");
    for (uint32_t i = 0; i < rate->n_valid; i++) {
        struct cJSON *range =
            json_add_object(valid, quantity_name((enum quantity)rate->valid[i].quantity));
        json_add_u64(range, "min", rate->valid[i].min);
        if (rate->valid[i].max != UINT64_MAX)
            json_add_u64(range, "max", rate->valid[i].max);
    }
}

static void add_points_json(const struct collective_point *points, uint32_t n, const char *key,
                            struct cJSON *object)
{
    struct cJSON *array = json_add_array(object, key);

    for (uint32_t i = 0; i < n; i++) {
        struct cJSON *point = json_add_object(array, NULL);
        json_add_u64(point, "bytes", (uint64_t)points[i].bytes);
        json_add_real(point, "us", points[i].seconds * 1e6);
    }
}

static void add_rates_json(const struct cluster *cluster, struct cJSON *root)
{
    struct cJSON *rates = json_add_array(root, "rates");
    for (uint32_t i = 0; i < n_cluster_rate_fields; i++)
        add_rate_json(cluster, &cluster_rate_fields[i], rates);
    struct cJSON *collectives = json_add_array(root, "collectives");
    for (uint32_t i = 0; i < cluster->n_collective; i++) {
        const struct collective_row *row = &cluster->collectives[i];
        struct cJSON *object = json_add_object(collectives, NULL);
        json_add_string(object, "kind", task_kind_name((enum task_kind)row->kind));
        json_add_u64(object, "ranks", row->ranks);
        json_add_u64(object, "nodes", collective_row_nodes(row));
        json_add_real(object, "start_us", row->a_s * 1e6);
        json_add_real(object, "root_us_per_sqrt_mb", row->b_s_per_sqrt_mb * 1e6);
        json_add_real(object, "gb_per_s", row->bytes_per_s * 1e-9);
#define X(member, key, most) json_add_real(object, key, row->member);
        CLUSTER_ROW_SHARES(X)
#undef X
        add_points_json(row->points, row->n_point, "points", object);
        add_points_json(row->shape, row->n_shape, "shape", object);
        json_add_string(object, "source", row->source);
    }
}

/* The rates of a profile are those of section "host". */
static void add_hosts_json(const struct cluster *cluster, struct cJSON *root)
{
    struct cJSON *array = json_add_array(root, "host_profiles");
    for (uint32_t p = 0; p < cluster->n_host_profile; p++) {
        const struct cluster as = cluster_with_host(cluster, &cluster->host_profiles[p]);
        struct cJSON *object = json_add_object(array, NULL);
        json_add_string(object, "name", cluster->host_profiles[p].name);
        struct cJSON *rates = json_add_array(object, "rates");
        for (uint32_t i = 0; i < n_cluster_rate_fields; i++)
            if (!strcmp(cluster_rate_fields[i].section, "host"))
                add_rate_json(&as, &cluster_rate_fields[i], rates);
    }
}

static void add_prices_json(const struct cluster *cluster, struct cJSON *root)
{
    struct cJSON *prices = json_add_object(root, "prices");
    struct cJSON *tasks = json_add_object(prices, "task_ns");
    for (unsigned kind = 0; kind < TASK_KIND_N; kind++) {
        if (kind != TASK_FORWARD && kind != TASK_BACKWARD)
            json_add_int(tasks, task_kind_name((enum task_kind)kind), cluster->task_price_ns[kind]);
    }
    struct cJSON *ops = json_add_object(prices, "op_ns");
    for (unsigned kind = 0; kind < OP_KIND_N; kind++)
        json_add_int(ops, op_kind_name((enum op_kind)kind), cluster->op_price_ns[kind]);
#define X(member, key, most) json_add_int(prices, key, (int64_t)cluster->member);
    CLUSTER_PRICES(X)
#undef X
}

static void add_size(struct cJSON *parent, const char *key, double value, const char *source)
{
    struct cJSON *object = json_add_object(parent, key);
    json_add_real(object, "value", value);
    json_add_string(object, "source", source);
}

struct cJSON *cluster_to_json(const struct cluster *cluster)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.cluster_show/1");
    json_add_string(root, "cluster", cluster->name);
    json_add_string(root, "description", cluster->description);
    struct cJSON *gpu = json_add_object(root, "gpu");
#define X(member, key, unit, least) \
    add_size(gpu, key, (double)cluster->member / (unit), cluster->member##_source);
    CLUSTER_SIZES(X)
#undef X
    if (cluster->has_prices)
        add_prices_json(cluster, root);
    else
        add_rates_json(cluster, root);
    if (cluster->n_host_profile > 0)
        add_hosts_json(cluster, root);
    return root;
}
