/*
 * Host profiles of a cluster: which one a name is, what it takes from the cluster's own host, and
 * that a file that is written has them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cluster.h"
#include "src/cluster_file.h"
#include "src/json.h"
#include "tests/tap.h"

static struct arena arena;

static enum status open_text(const char *text, struct cluster *out, struct err *err)
{
    char path[64];
    snprintf(path, sizeof path, "%s/unshard-hosts-XXXXXX", P_tmpdir);
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0)
        tap_bail("cannot write a temporary file");
    const enum status status = cluster_open(path, &arena, out, err);
    unlink(path);
    return status;
}

#define FILE_WITH(profiles)                                                             \
    "{\"schema\": \"unshard.cluster/1\", \"name\": \"own\", \"description\": \"own\", " \
    "\"base\": \"h100-sxm\", \"host_profiles\": " profiles "}"

static const char own[] = FILE_WITH(
    "{\"torch-2.10\": {\"launch_us\": {\"value\": 1, \"source\": \"a\"}},"
    " \"torch-2.9\": {\"all_gather_us\": {\"value\": 90, \"source\": \"b\"}},"
    " \"mine\": {\"launch_us\": {\"low\": 1, \"mid\": 2, \"high\": 3, \"source\": \"c\"}}}");

/* launch and all-gather of the cluster's own host are 10 and 400 us. */
static const struct {
    const char *name;
    double launch_us, all_gather_us;
} names[] = {
    {"torch-2.10", 1, 400}, {"torch-2.9", 10, 90}, {"torch-2.9.1+cu126", 10, 90},
    {"torch-2.11", 1, 400}, {"torch-3.0", 1, 400}, {"torch-2.1", 10, 90},
    {"torch-1.13", 10, 90}, {"mine", 2, 400},
};

static void test_names(const struct cluster *cluster)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct cluster as = *cluster;
        struct err err = {0};
        is_int(cluster_set_host(&as, names[i].name, &err), STATUS_OK, "%s %s", names[i].name,
               err.text);
        is_near(as.host_launch_s.at[SPREAD_MID], names[i].launch_us * 1e-6, 1e-9, "its launch");
        is_near(as.host_all_gather_s.at[SPREAD_MID], names[i].all_gather_us * 1e-6, 1e-9,
                "and its all-gather");
    }
}

static void check_refused(const char *cluster_name, const char *name, const char *told)
{
    struct cluster cluster;
    struct err err = {0};
    if (cluster_open(cluster_name, &arena, &cluster, &err))
        tap_bail(err.text);
    is_int(cluster_set_host(&cluster, name, &err), STATUS_USAGE, "%s on %s is refused", name,
           cluster_name);
    ok(strstr(err.text, told) != NULL, "with '%s' (got '%s')", told, err.text);
}

static void test_refused(void)
{
    check_refused("h100-sxm", "torch", "it has torch-2.4, torch-2.5, native");
    check_refused("h100-sxm", "jax", "has no host 'jax'");
    check_refused("a100-sxm-40g", "torch-x", "it has torch-2.4, torch-2.5, native");
    check_refused("toy", "native", "has prices and one host");
}

static const struct {
    const char *text, *told;
} bad[] = {
    {FILE_WITH("[]"), "not an object"},
    {FILE_WITH("{\"a\": 3}"), "not an object"},
    {FILE_WITH("{\"a\": {\"lunch_us\": {\"value\": 1, \"source\": \"s\"}}}"),
     "did you mean 'launch_us'"},
    {FILE_WITH("{\"a\": {\"launch_us\": {\"value\": -1, \"source\": \"s\"}}}"),
     "it must be from 0"},
    {FILE_WITH("{\"a\": {\"launch_us\": {\"value\": 1}}}"), "source"},
};

static void test_bad_files(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cluster cluster;
        struct err err = {0};
        is_int(open_text(bad[i].text, &cluster, &err), STATUS_INPUT, "a bad profile is refused");
        ok(strstr(err.text, bad[i].told) != NULL, "with '%s' (got '%s')", bad[i].told, err.text);
    }
}

static void test_written(const struct cluster *cluster)
{
    struct cJSON *root = cluster_to_file(cluster);
    struct cluster again;
    struct text text;
    struct err err = {0};

    text_init(&text);
    json_print(root, &text);
    json_free(root);
    is_int(open_text(text.at, &again, &err), STATUS_OK, "a written file is read %s", err.text);
    is_int(again.n_host_profile, cluster->n_host_profile, "with all profiles");
    test_names(&again);
    text_release(&text);
}

int main(void)
{
    struct cluster cluster;
    struct err err = {0};

    arena_init(&arena);
    if (open_text(own, &cluster, &err))
        tap_bail(err.text);
    test_names(&cluster);
    test_refused();
    test_bad_files();
    test_written(&cluster);
    arena_release(&arena);
    return tap_done();
}
