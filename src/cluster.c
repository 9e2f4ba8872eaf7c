/*
 * Opening a cluster: by the name of a built-in one, or from a file; see cluster.h.
 *
 * A file either stands alone and gives every key, or names a built-in cluster as its base and gives
 * what differs. A cluster has rates or prices, never both, and so has what is based on it. The
 * document is gone after the read: every string is the arena's.
 */
#include "src/cluster.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cluster_reader.h"
#include "src/text.h"

const struct builtin_cluster builtin_clusters[] = {
#include "src/clusters.inc"
};

enum {
    N_BUILTIN = sizeof builtin_clusters / sizeof *builtin_clusters,
    MAX_KEYS = 64, /* of the root */
};
const uint32_t n_builtin_clusters = N_BUILTIN;

static const char SCHEMA[] = "unshard.cluster/1";

static void builtin_names(const char **names)
{
    for (int i = 0; i < N_BUILTIN; i++)
        names[i] = builtin_clusters[i].name;
}

static const struct builtin_cluster *find_builtin(const char *name)
{
    const char *names[N_BUILTIN];
    builtin_names(names);
    const int index = cluster_index_of(name, names, N_BUILTIN);
    return index < 0 ? NULL : &builtin_clusters[index];
}

/* The root's own keys, and the schema that says how to read them. */
static enum status check_root(const struct cluster_reader *r, const struct json_at *root)
{
    const char *keys[MAX_KEYS] = {"schema", "name",   "description", "base",
                                  "gpu",    "prices", "collectives", "host_profiles"};
    const size_t n_own = 8;
    const char *schema;
    enum status status;

    const size_t n = n_own + cluster_rate_sections(keys + n_own);
    if ((status = cluster_check_object(root, keys, n, r->err)) ||
        (status = json_get_string(root, "schema", &schema, r->err)))
        return status;
    if (strcmp(schema, SCHEMA))
        return json_fail(root, r->err, "'schema' is '%s', '%s' is needed", schema, SCHEMA);
    return STATUS_OK;
}

static bool has_rates(const struct json_at *root)
{
    const char *sections[MAX_KEYS];
    const size_t n = cluster_rate_sections(sections);

    for (size_t i = 0; i < n; i++)
        if (json_has(root, sections[i]))
            return true;
    return json_has(root, "collectives") || json_has(root, "host_profiles");
}

/* Prices or rates, as the base or, without one, as the file has it. */
static enum status read_costs(const struct cluster_reader *r, const struct json_at *root)
{
    const bool prices = json_has(root, "prices"), rates = has_rates(root);

    if (prices && rates)
        return json_fail(root, r->err, "'prices' and rates are both given: prices exclude rates");
    if (!r->has_base)
        r->out->has_prices = prices;
    else if (r->out->has_prices ? rates : prices)
        return json_fail(root, r->err, "the base has %s, so %s cannot be given",
                         rates ? "prices" : "rates", rates ? "rates" : "prices");
    if (r->out->has_prices)
        return cluster_read_prices(r, root);
    enum status status = cluster_read_rates(r, root);
    if (!status)
        status = cluster_read_collectives(r, root);
    return status ? status : cluster_read_hosts(r, root);
}

static enum status read_text(const char *json, const char *name, struct arena *arena,
                             struct cluster *out, struct err *err);

/* A base may have a base. Only built-in clusters can be one, and those are no loop. */
static enum status read_base(struct cluster_reader *r, const struct json_at *root)
{
    const char *names[N_BUILTIN], *name;

    if (!json_has(root, "base"))
        return STATUS_OK;
    const enum status status = json_get_string(root, "base", &name, r->err);
    if (status)
        return status;
    const struct builtin_cluster *base = find_builtin(name);
    builtin_names(names);
    if (!base)
        return cluster_fail_unknown(root, "base", name, names, N_BUILTIN, r->err);
    r->has_base = true;
    return read_text(base->json, base->name, r->arena, r->out, r->err);
}

/* What a file may leave out. */
static void set_defaults(struct cluster *out)
{
    out->headroom_bytes = 0;
    out->headroom_bytes_source = "not given";
    out->host_retry_s = (struct rate){.source = "not given"};
}

static enum status read_document(const struct json_doc *doc, struct arena *arena,
                                 struct cluster *out, struct err *err)
{
    struct cluster_reader r = {.arena = arena, .out = out, .err = err};
    const struct json_at root = json_root(doc);
    enum status status;

    set_defaults(out);
    if ((status = check_root(&r, &root)) || (status = read_base(&r, &root)) ||
        (status = cluster_read_string(&r, &root, "name", &out->name)) ||
        (status = cluster_read_string(&r, &root, "description", &out->description)) ||
        (status = cluster_read_gpu(&r, &root)))
        return status;
    return read_costs(&r, &root);
}

static enum status read_text(const char *json, const char *name, struct arena *arena,
                             struct cluster *out, struct err *err)
{
    struct json_doc doc;
    enum status status = json_parse(json, name, &doc, err);

    if (status)
        return status;
    status = read_document(&doc, arena, out, err);
    json_release(&doc);
    return status;
}

static enum status read_file(const char *path, struct arena *arena, struct cluster *out,
                             struct err *err)
{
    struct json_doc doc;
    enum status status = json_read_file(path, &doc, err);

    if (status)
        return status;
    status = read_document(&doc, arena, out, err);
    json_release(&doc);
    return status;
}

static enum status fail_unknown_cluster(const char *what, struct err *err)
{
    const char *names[N_BUILTIN];
    char list[256] = "";
    size_t length = 0;

    builtin_names(names);
    const int nearest = text_nearest(what, names, N_BUILTIN);
    if (nearest >= 0)
        return err_set(err, STATUS_USAGE, "unknown cluster '%s', did you mean '%s'?", what,
                       names[nearest]);
    for (int i = 0; i < N_BUILTIN && length < sizeof list; i++)
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", names[i]);
    return err_set(err, STATUS_USAGE, "unknown cluster '%s', give a file or one of: %s", what,
                   list);
}

static bool looks_like_file(const char *what)
{
    const size_t length = strlen(what);
    return strchr(what, '/') || (length > 5 && !strcmp(what + length - 5, ".json")) ||
           access(what, F_OK) == 0;
}

enum status cluster_open(const char *what, struct arena *arena, struct cluster *out,
                         struct err *err)
{
    const struct builtin_cluster *builtin = find_builtin(what);
    struct cluster cluster = {.name = what};
    enum status status;

    if (builtin)
        status = read_text(builtin->json, builtin->name, arena, &cluster, err);
    else if (looks_like_file(what))
        status = read_file(what, arena, &cluster, err);
    else
        status = fail_unknown_cluster(what, err);
    if (!status)
        *out = cluster;
    return status;
}

static void keep_rows_of_one_node(struct cluster *cluster, struct arena *arena)
{
    struct collective_row *rows = arena_array(arena, struct collective_row, cluster->n_collective);
    uint32_t n = 0;

    for (uint32_t i = 0; i < cluster->n_collective; i++)
        if (collective_row_nodes(&cluster->collectives[i]) == 1)
            rows[n++] = cluster->collectives[i];
    cluster->collectives = rows;
    cluster->n_collective = n;
}

enum status cluster_set_nic(struct cluster *cluster, double gbit_per_s, struct arena *arena,
                            struct err *err)
{
    const double bytes_per_s = gbit_per_s * 1e9 / 8;

    if (cluster->has_prices)
        return err_set(err, STATUS_USAGE, "cluster '%s' has prices and no network, leave nic out",
                       cluster->name);
    if (!(bytes_per_s >= 1e7 && bytes_per_s <= 1e14))
        return err_set(err, STATUS_USAGE, "nic: %g Gbit/s is nothing that an adapter has",
                       gbit_per_s);
    cluster->nic_bytes_per_s =
        (struct rate){.at = {bytes_per_s, bytes_per_s, bytes_per_s}, .source = "asked for"};
    keep_rows_of_one_node(cluster, arena);
    return STATUS_OK;
}
