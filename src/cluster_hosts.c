/*
 * What the host costs under other names; see struct host_profile in cluster.h.
 *
 * A profile is section "host" of a cluster that has the one it stands in as its base, and is read so.
 */
#include <stdio.h>
#include <string.h>

#include "src/cluster_reader.h"

enum { MAX_PROFILES = 32 };

static const char TORCH[] = "torch-";

static enum status read_profile(const struct cluster_reader *r, const struct json_at *at,
                                struct host_profile *out)
{
    struct cluster cluster = *r->out;
    const struct cluster_reader reader = {
        .arena = r->arena, .out = &cluster, .err = r->err, .has_base = true};
    const enum status status = cluster_read_section(&reader, at, "host");

    if (!status)
        *out = (struct host_profile){.name = arena_strdup(r->arena, json_key(at)),
                                     .launch_s = cluster.host_launch_s,
                                     .all_gather_s = cluster.host_all_gather_s,
                                     .retry_s = cluster.host_retry_s};
    return status;
}

enum status cluster_read_hosts(const struct cluster_reader *r, const struct json_at *root)
{
    struct host_profile *profiles;
    struct json_at at;
    uint32_t n = 0;
    enum status status;

    if (!json_has(root, "host_profiles"))
        return STATUS_OK;
    if ((status = json_get(root, "host_profiles", &at, r->err)))
        return status;
    if (!json_is_object(&at))
        return json_fail(&at, r->err, "not an object");
    profiles = arena_array(r->arena, struct host_profile, MAX_PROFILES);
    for (struct json_at it = json_first(&at); it.node && !status; it = json_next(&it)) {
        if (n == MAX_PROFILES)
            return json_fail(&at, r->err, "more than %d profiles", MAX_PROFILES);
        status = read_profile(r, &it, &profiles[n++]);
    }
    r->out->host_profiles = profiles;
    r->out->n_host_profile = n;
    return status;
}

/* Of "torch-2.4" and "torch-2.4.1": 2004; -1 of anything else. */
static long release_of(const char *name)
{
    unsigned major, minor;

    if (strncmp(name, TORCH, sizeof TORCH - 1) != 0 ||
        sscanf(name + sizeof TORCH - 1, "%3u.%3u", &major, &minor) != 2)
        return -1;
    return (long)major * 1000 + (long)minor;
}

/* Of two releases the better one for wanted: the newest that is no newer, else the oldest. */
static bool is_better(long release, long than, long wanted)
{
    return release <= wanted ? than > wanted || release > than : release < than;
}

static const struct host_profile *find_profile(const struct cluster *cluster, const char *name)
{
    const struct host_profile *best = NULL;
    const long wanted = release_of(name);

    for (uint32_t i = 0; i < cluster->n_host_profile; i++) {
        const struct host_profile *profile = &cluster->host_profiles[i];
        const long release = release_of(profile->name);
        if (!strcmp(profile->name, name))
            return profile;
        if (release >= 0 && wanted >= 0 &&
            (!best || is_better(release, release_of(best->name), wanted)))
            best = profile;
    }
    return best;
}

static enum status fail_unknown(const struct cluster *cluster, const char *name, struct err *err)
{
    char list[256] = "";
    size_t length = 0;

    for (uint32_t i = 0; i < cluster->n_host_profile && length < sizeof list; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "",
                                   cluster->host_profiles[i].name);
    return err_set(err, STATUS_USAGE, "cluster '%s' has no host '%.80s'; it has %s", cluster->name,
                   name, *list ? list : "none but its own");
}

struct cluster cluster_with_host(const struct cluster *cluster, const struct host_profile *profile)
{
    struct cluster out = *cluster;

    out.host_launch_s = profile->launch_s;
    out.host_all_gather_s = profile->all_gather_s;
    out.host_retry_s = profile->retry_s;
    return out;
}

enum status cluster_set_host(struct cluster *cluster, const char *name, struct err *err)
{
    const struct host_profile *profile = find_profile(cluster, name);

    if (cluster->has_prices)
        return err_set(err, STATUS_USAGE, "cluster '%s' has prices and one host, leave --host out",
                       cluster->name);
    if (!profile)
        return fail_unknown(cluster, name, err);
    *cluster = cluster_with_host(cluster, profile);
    return STATUS_OK;
}
