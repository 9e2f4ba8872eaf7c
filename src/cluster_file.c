/*
 * Writing a cluster's file; see cluster_file.h. Driven by the lists of cluster.h, as the reader is.
 */
#include "src/cluster_file.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 4 }; /* of a measurement; bounds and whole numbers have fewer */

static double within(double number, double least, double most)
{
    return fmin(fmax(number, least), most);
}

/* The file's number at one end: low is the fast one. */
static double number_at(const struct rate *rate, const struct rate_field *field, enum spread spread)
{
    double first = rate->at[SPREAD_LOW], last = rate->at[SPREAD_HIGH];
    const bool turned = field->more_is_faster ? first < last : first > last;
    const double ends[SPREAD_N] = {turned ? last : first, rate->at[SPREAD_MID],
                                   turned ? first : last};
    return within(ends[spread] / field->unit, field->least, field->most);
}

static void add_number(struct cJSON *object, const char *key, double number)
{
    if (number == floor(number))
        json_add_real(object, key, number);
    else
        json_add_number(object, key, number, DIGITS);
}

static void add_valid(const struct rate *rate, struct cJSON *object)
{
    struct cJSON *valid = rate->n_valid > 0 ? json_add_object(object, "valid") : NULL;

    for (uint32_t i = 0; i < rate->n_valid; i++) {
        struct cJSON *range =
            json_add_object(valid, quantity_name((enum quantity)rate->valid[i].quantity));
        json_add_u64(range, "min", rate->valid[i].min);
        if (rate->valid[i].max != UINT64_MAX)
            json_add_u64(range, "max", rate->valid[i].max);
    }
}

static void add_rate(const struct cluster *cluster, const struct rate_field *field,
                     struct cJSON *section)
{
    static const char *const spreads[SPREAD_N] = {"low", "mid", "high"};
    const struct rate *rate = cluster_rate(cluster, field);
    struct cJSON *object = json_add_object(section, field->key);
    const bool is_one = rate->at[SPREAD_LOW] == rate->at[SPREAD_MID] &&
                        rate->at[SPREAD_MID] == rate->at[SPREAD_HIGH];

    for (int spread = 0; spread < SPREAD_N && !is_one; spread++)
        add_number(object, spreads[spread], number_at(rate, field, (enum spread)spread));
    if (is_one)
        add_number(object, "value", number_at(rate, field, SPREAD_MID));
    json_add_string(object, "source", rate->source);
    add_valid(rate, object);
}

static void add_sizes(const struct cluster *cluster, struct cJSON *root)
{
    struct cJSON *gpu = json_add_object(root, "gpu"), *size;

#define X(member, key, unit, least)                               \
    size = json_add_object(gpu, key);                             \
    json_add_real(size, "value", (double)cluster->member / unit); \
    json_add_string(size, "source", cluster->member##_source);
    CLUSTER_SIZES(X)
#undef X
}

static void add_points(const struct collective_point *points, uint32_t n, const char *key,
                       struct cJSON *object)
{
    struct cJSON *array = n > 0 ? json_add_array(object, key) : NULL;

    for (uint32_t i = 0; i < n; i++) {
        struct cJSON *point = json_add_object(array, NULL);
        json_add_u64(point, "bytes", (uint64_t)points[i].bytes);
        json_add_number(point, "us", points[i].seconds * 1e6, DIGITS);
    }
}

static void add_collectives(const struct cluster *cluster, struct cJSON *root)
{
    struct cJSON *rows = json_add_array(root, "collectives");

    for (uint32_t i = 0; i < cluster->n_collective; i++) {
        const struct collective_row *row = &cluster->collectives[i];
        struct cJSON *object = json_add_object(rows, NULL);
        json_add_string(object, "kind", task_kind_name((enum task_kind)row->kind));
        json_add_u64(object, "ranks", row->ranks);
        if (collective_row_nodes(row) > 1)
            json_add_u64(object, "nodes", row->nodes);
#define X(member, key, unit, least, most) \
    add_number(object, key, within(row->member / unit, least, most));
        CLUSTER_ROW_NUMBERS(X)
#undef X
#define X(member, key, most) \
    if (row->member > 0)     \
        add_number(object, key, within(row->member, 0, most));
        CLUSTER_ROW_SHARES(X)
#undef X
        add_points(row->points, row->n_point, "points", object);
        add_points(row->shape, row->n_shape, "shape", object);
        json_add_string(object, "source", row->source);
    }
}

static void add_hosts(const struct cluster *cluster, struct cJSON *root)
{
    struct cJSON *profiles = json_add_object(root, "host_profiles");

    for (uint32_t p = 0; p < cluster->n_host_profile; p++) {
        const struct cluster as = cluster_with_host(cluster, &cluster->host_profiles[p]);
        struct cJSON *profile = json_add_object(profiles, cluster->host_profiles[p].name);
        for (uint32_t i = 0; i < n_cluster_rate_fields; i++)
            if (!strcmp(cluster_rate_fields[i].section, "host"))
                add_rate(&as, &cluster_rate_fields[i], profile);
    }
}

struct cJSON *cluster_to_file(const struct cluster *cluster)
{
    struct cJSON *root = json_new_object(), *section = NULL;
    const char *name = "";

    json_add_string(root, "schema", "unshard.cluster/1");
    json_add_string(root, "name", cluster->name);
    json_add_string(root, "description", cluster->description);
    add_sizes(cluster, root);
    for (uint32_t i = 0; i < n_cluster_rate_fields; i++) {
        const struct rate_field *field = &cluster_rate_fields[i];
        if (strcmp(name, field->section))
            section = json_add_object(root, field->section);
        name = field->section;
        add_rate(cluster, field, section);
    }
    add_collectives(cluster, root);
    if (cluster->n_host_profile > 0)
        add_hosts(cluster, root);
    return root;
}
