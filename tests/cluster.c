/*
 * Cluster files: the built-in ones, what a base gives, and how bad files are refused.
 *
 * A bad file is a built-in text with one piece replaced; the message must name the place.
 */
#include "src/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cluster_file.h"
#include "tests/tap.h"

static const char *builtin_json(const char *name)
{
    for (uint32_t i = 0; i < n_builtin_clusters; i++)
        if (!strcmp(builtin_clusters[i].name, name))
            return builtin_clusters[i].json;
    tap_bail("a built-in cluster is missing");
}

/* Opens a text by way of a file. The path is written to shown, which has room for 64. */
static enum status open_text(const char *text, size_t length, struct arena *arena,
                             struct cluster *out, char *shown, struct err *err)
{
    snprintf(shown, 64, "%s/unshard-cluster-XXXXXX", P_tmpdir);
    const int fd = mkstemp(shown);
    if (fd < 0 || write(fd, text, length) != (ssize_t)length || close(fd) != 0)
        tap_bail("cannot write a temporary file");
    const enum status status = cluster_open(shown, arena, out, err);
    unlink(shown);
    return status;
}

/* Rates that are in order, whole and with a source: what every reader of a cluster relies on. */
static uint32_t count_faults(const struct cluster *cluster)
{
    uint32_t faults = 0;

    for (uint32_t f = 0; f < n_cluster_rate_fields && !cluster->has_prices; f++) {
        const struct rate_field *field = &cluster_rate_fields[f];
        const struct rate *rate = cluster_rate(cluster, field);
        for (int i = 0; i < SPREAD_N; i++) {
            faults += !isfinite(rate->at[i]) || rate->at[i] < 0;
            faults += field->more_is_faster && field->least > 0 && rate->at[i] == 0;
            if (i > 0)
                faults += field->more_is_faster ? rate->at[i] > rate->at[i - 1]
                                                : rate->at[i] < rate->at[i - 1];
        }
        faults += rate->source == NULL;
        for (uint32_t i = 0; i < rate->n_valid; i++)
            faults +=
                rate->valid[i].quantity >= QUANTITY_N || rate->valid[i].min > rate->valid[i].max;
    }
    for (uint32_t i = 0; i < cluster->n_collective; i++)
        faults += cluster->collectives[i].ranks < 2 || !(cluster->collectives[i].bytes_per_s > 0);
    faults += cluster->has_prices != (cluster->n_collective == 0);
    faults += cluster->name == NULL || cluster->description == NULL;
    faults += cluster->memory_bytes == 0 || cluster->max_gpus_per_node == 0;
    return faults;
}

static void test_builtins(struct arena *arena)
{
    static const struct {
        const char *name;
        double gib;
        uint64_t workspace_bytes;
        uint32_t rows;
    } expected[] = {
        {"h100-sxm", 79.10, 33554432, 7},    {"h100-96g-500w", 95.04, 33554432, 7},
        {"h200-sxm", 139.80, 33554432, 6},   {"b200-sxm", 178.35, 33554432, 6},
        {"gb200", 184.3, 33554432, 4},       {"a100-sxm-80g", 79.15, 8519680, 6},
        {"a100-sxm-40g", 39.39, 8519680, 6}, {"toy", 80, 8519680, 0},
    };
    is_int(n_builtin_clusters, sizeof expected / sizeof *expected, "eight clusters are built in");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *name = expected[i].name;
        struct cluster c = {0};
        struct err err = {0};
        is_int(cluster_open(name, arena, &c, &err), STATUS_OK, "%s opens (%s)", name, err.text);
        is_str(c.name, name, "%s is called so", name);
        is_int(count_faults(&c), 0, "%s has ordered rates with sources", name);
        is_near((double)c.memory_bytes, expected[i].gib * 1073741824.0, 1e-9,
                "%s has %g GiB as the driver reports it", name, expected[i].gib);
        is_int(c.workspace_bytes, expected[i].workspace_bytes, "%s has its workspace", name);
        is_int(c.outside_bytes, c.context_bytes + c.communicator_bytes,
               "%s: outside torch lie context and communicator", name);
        is_int(c.n_collective, expected[i].rows, "%s has %u rows of collectives", name,
               expected[i].rows);
    }
}

static void test_units(struct arena *arena)
{
    struct cluster c;
    if (cluster_open("h100-sxm", arena, &c, NULL))
        tap_bail("h100-sxm does not open");
    is_near(c.gemm_flops.at[SPREAD_MID], 989e12, 1e-15, "TFLOP/s become FLOP/s");
    is_near(c.gemm_start_s.at[SPREAD_MID], 2.4e-6, 1e-15, "microseconds become seconds");
    is_near(c.memory_bytes_per_s.at[SPREAD_LOW], 3.35e12, 1e-15, "TB/s become bytes/s");
    is_near(c.gemm_derate.at[SPREAD_LOW], 0.90, 1e-15, "low is the fast end of a fraction");
    is_near(c.host_launch_s.at[SPREAD_HIGH], 17.7e-6, 1e-15, "high is the slow end of a time");
    is_near(c.collectives[0].bytes_per_s, 288e9, 1e-15, "GB/s of a row become bytes/s");
    is_int(c.gemm_derate.n_valid, 2, "a rate knows where it holds");
    is_int(c.gemm_efficiency.valid[0].max, -1, "a range without an end has none");
}

static void test_base(struct arena *arena)
{
    static const char text[] =
        "{\"schema\": \"unshard.cluster/1\", \"name\": \"mine\", \"description\": \"slow links\","
        " \"base\": \"a100-sxm-40g\", \"network\": {\"nic_gb_per_s_per_gpu\":"
        " {\"value\": 6.25, \"source\": \"AWS p4d\"}}}";
    struct cluster base, c;
    struct err err = {0};
    char path[64];

    if (cluster_open("a100-sxm-40g", arena, &base, NULL))
        tap_bail("a100-sxm-40g does not open");
    is_int(open_text(text, sizeof text - 1, arena, &c, path, &err), STATUS_OK,
           "a file may change one rate of a built-in cluster (%s)", err.text);
    is_str(c.name, "mine", "it has its own name");
    is_near(c.nic_bytes_per_s.at[SPREAD_HIGH], 6.25e9, 1e-15, "what it gives is its own");
    is_str(c.nic_bytes_per_s.source, "AWS p4d", "with its source");
    is_near(c.memory_bytes_per_s.at[SPREAD_MID], 1.555e12, 1e-15, "the rest is its base's");
    is_near(c.gemm_flops.at[SPREAD_MID], 312e12, 1e-15, "and that of its base's base");
    is_int(c.n_collective, base.n_collective, "tables too");
}

/* Prices that differ let a sum tell what is in it. */
static void test_toy(struct arena *arena)
{
    int64_t prices[TASK_KIND_N + OP_KIND_N];
    uint32_t n = 0, equal = 0;
    struct cluster c;

    if (cluster_open("toy", arena, &c, NULL))
        tap_bail("toy does not open");
    for (int kind = 0; kind < TASK_KIND_N; kind++)
        if (kind != TASK_FORWARD && kind != TASK_BACKWARD)
            prices[n++] = c.task_price_ns[kind];
    for (int kind = 0; kind < OP_KIND_N; kind++)
        prices[n++] = c.op_price_ns[kind];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++)
            equal += j < i ? prices[i] == prices[j] : prices[i] < 1;
    is_int(equal, 0, "toy's %u prices are above 0 and all different", n);
    is_int(c.host_launch_price_ns, 1, "a launch takes toy's host 1 ns");
    is_int(c.contention_permille, 0, "nothing contends on toy");
}

struct bad {
    const char *cluster, *from, *to; /* a built-in text with from replaced by to */
    const char *told;                /* what follows "FILE: " */
};

static const struct bad bad_files[] = {
    {"toy", "\"schema\": \"unshard.cluster/1\"", "\"schema\": \"unshard.cluster/2\"",
     "'schema' is 'unshard.cluster/2', 'unshard.cluster/1' is needed"},
    {"toy", "\"schema\": \"unshard.cluster/1\",", "", "missing key 'schema'"},
    {"toy", "\"name\": \"toy\",", "", "missing key 'name'"},
    {"toy", "\"name\": \"toy\"", "\"name\": 7", "name: a string is needed, not a number"},
    {"toy", "\"prices\"", "\"price\"", "unknown key 'price', did you mean 'prices'?"},
    {"toy", "\"schema\"", "\"wholly_else\": 1, \"schema\"", "unknown key 'wholly_else'"},

    {"h100-sxm", "\"gpu\": {", "\"gpu\": 3, \"host\": {", "key 'host' is there twice"},
    {"h100-sxm", "\"context_gib\": {\"value\": 0.45,", "\"context_gib\": {\"value\": -1,",
     "gpu.context_gib: 'value' is -1, it must be from 0 to 8.38861e+06"},
    {"h100-sxm", "{\"value\": 79.10,", "{\"value\": 0,",
     "gpu.memory_gib: 'value' is 0, that is too small"},
    {"h100-sxm", "{\"value\": 79.10,", "{\"value\": 1e9,",
     "gpu.memory_gib: 'value' is 1000000000, it must be from 0 to 8.38861e+06"},
    {"h100-sxm", "{\"value\": 79.10,", "{\"value\": 1e-12,",
     "gpu.memory_gib: 'value' is 1e-12, that is too small"},
    {"h100-sxm", "{\"value\": 33554432,", "{\"value\": 1.5,",
     "gpu.workspace_bytes: 'value' is 1.5, a whole number is needed"},
    {"h100-sxm", "\"max_gpus_per_node\"", "\"gpus_per_node\"",
     "gpu: unknown key 'gpus_per_node', did you mean 'max_gpus_per_node'?"},

    {"h100-sxm", "\"efficiency\": {\"value\": 0.783", "\"eficiency\": {\"value\": 0.783",
     "gemm: unknown key 'eficiency', did you mean 'efficiency'?"},
    {"h100-sxm", "\"k0\": {\"value\": 120, \"source\": \"the same fit\"},", "",
     "gemm: missing key 'k0'"},
    {"h100-sxm", "{\"value\": 120, \"source\": \"the same fit\"}", "120", "gemm.k0: not an object"},
    {"h100-sxm", "\"value\": 120", "\"value\": \"120\"",
     "gemm.k0.value: a number is needed, not a string"},
    {"h100-sxm", "\"value\": 120", "\"value\": -1",
     "gemm.k0: 'value' is -1, it must be from 0 to 10000"},
    {"h100-sxm", "\"value\": 989", "\"value\": 0",
     "gemm.bf16_tflops: 'value' is 0, it must be from 0.1 to 1e+06"},
    {"h100-sxm", "\"value\": 120, \"source\": \"the same fit\"", "\"value\": 120",
     "gemm.k0: missing key 'source'"},
    {"h100-sxm", "\"value\": 120", "\"vlaue\": 120",
     "gemm.k0: unknown key 'vlaue', did you mean 'value'?"},
    {"h100-sxm", "\"value\": 120", "\"low\": 100, \"high\": 140", "gemm.k0: missing key 'mid'"},
    {"h100-sxm", "\"value\": 120", "\"value\": 120, \"mid\": 130",
     "gemm.k0: both 'value' and 'mid' are given"},
    {"h100-sxm", "\"value\": 0.783", "\"value\": 5",
     "gemm.efficiency: 'value' is 5, it must be from 0.01 to 1"},
    {"h100-sxm", "\"low\": 0.90, \"mid\": 0.85", "\"low\": 90, \"mid\": 85",
     "gemm.derate: 'low' is 90, it must be from 0.01 to 2"},
    {"h100-sxm", "\"low\": 0.90, \"mid\": 0.85", "\"low\": 0.85, \"mid\": 0.90",
     "gemm.derate: 'mid' (0.9) is faster than 'low' (0.85): low is the fast end, and here more"},
    {"h100-sxm", "\"low\": 5, \"mid\": 10", "\"low\": 10, \"mid\": 5",
     "host.launch_us: 'mid' (5) is faster than 'low' (10): low is the fast end, and here less"},
    {"h100-sxm", "\"hidden\": {", "\"hiden\": {",
     "gemm.derate.valid: unknown key 'hiden', did you mean 'hidden'?"},
    {"h100-sxm", "{\"min\": 768, \"max\": 8192}", "{\"min\": 768, \"max\": 1}",
     "gemm.derate.valid.hidden: 'min' is above 'max'"},
    {"h100-sxm", "{\"min\": 768, \"max\": 8192}", "{}",
     "gemm.derate.valid.hidden: neither 'min' nor 'max' is given"},
    {"h100-sxm", "{\"min\": 768, \"max\": 8192}", "{\"min\": 7.5}",
     "gemm.derate.valid.hidden.min: a whole number of 0 or more is needed"},

    {"h200-sxm", "\"kind\": \"all_gather\"", "\"kind\": \"all_gathr\"",
     "collectives[0]: unknown kind 'all_gathr', did you mean 'all_gather'?"},
    {"h200-sxm", "\"kind\": \"all_gather\"", "\"kind\": \"reduce_scatter\"",
     "collectives: two rows for reduce_scatter of 8 ranks"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 1",
     "collectives[0]: 'ranks' is 1, a collective has at least 2"},
    {"h200-sxm", "\"gb_per_s\": 362", "\"gb_per_s\": 0",
     "collectives[1]: 'gb_per_s' is 0, it must be from 0.01 to 100000"},
    {"h200-sxm", "\"start_us\": 11.6,", "", "collectives[0]: missing key 'start_us'"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"nodes\": 3",
     "collectives[0]: 8 ranks cannot be equally many on each of 3 nodes"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"nodes\": 0",
     "collectives[0].nodes: a whole number of 1 or more is needed"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"faster\": 1",
     "collectives[0]: 'faster' is 1, it must be from 0 to 0.999"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"slower\": -1",
     "collectives[0]: 'slower' is -1, it must be from 0 to 1000"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"points\": 7",
     "collectives[0].points: not an array"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"points\": [{\"bytes\": 8, \"us\": 1}]",
     "collectives[0].points: 1 points, it takes 2 to lie between"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"shape\": []",
     "collectives[0].shape: 0 points, it takes 2 to lie between"},
    {"h200-sxm", "\"ranks\": 8",
     "\"ranks\": 8, \"points\": [{\"bytes\": 8, \"us\": 1}, {\"bytes\": 8, \"us\": 2}]",
     "collectives[0].points[1]: 'bytes' is 8, points are in the order of their bytes"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"points\": [{\"bytes\": 8, \"us\": 0}]",
     "collectives[0].points[0]: 'us' is 0, it must be from 0.001 to 1e+09"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"points\": [{\"bytes\": 0, \"us\": 1}]",
     "collectives[0].points[0].bytes: "},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"points\": [{\"bytes\": 8}]",
     "collectives[0].points[0]: missing key 'us'"},
    {"h200-sxm", "\"ranks\": 8", "\"ranks\": 8, \"points\": [{\"bytse\": 8, \"us\": 1}]",
     "collectives[0].points[0]: unknown key 'bytse', did you mean 'bytes'?"},
    {"h200-sxm", "\"base\": \"h100-sxm\"", "\"base\": \"h100-sxn\"",
     "unknown base 'h100-sxn', did you mean 'h100-sxm'?"},
    {"h200-sxm", "\"base\": \"h100-sxm\",", "", "gpu: missing key 'workspace_bytes'"},
    {"h200-sxm", "\"base\": \"h100-sxm\"", "\"base\": \"toy\"",
     "the base has prices, so rates cannot be given"},
    {"h200-sxm", "\"compute\": {", "\"prices\": {}, \"compute\": {",
     "'prices' and rates are both given: prices exclude rates"},

    {"toy", "\"name\": \"toy\"", "\"name\": \"toy\", \"base\": \"h100-sxm\"",
     "the base has rates, so prices cannot be given"},
    {"toy", "\"silu\": 15,", "", "prices.op_ns: missing key 'silu'"},
    {"toy", "\"silu\"", "\"silly\"", "prices.op_ns: unknown key 'silly', did you mean 'silu'?"},
    {"toy", "\"silu\": 15", "\"silu\": -15", "prices.op_ns.silu: a whole number of 0 or more"},
    {"toy", "\"silu\": 15", "\"silu\": 1e12", "prices.op_ns.silu: 1000000000000 is too large"},
    {"toy", "\"pack\": 40", "\"forward\": 40", "prices.task_ns: unknown key 'forward'"},
    {"toy", "\"pack\": 40,", "", "prices.task_ns: missing key 'pack'"},
    {"toy", "\"contention_permille\"", "\"contention\"", "prices: unknown key 'contention'"},
    {"toy", "\"host_launch_ns\": 1,", "", "prices: missing key 'host_launch_ns'"},
    {"toy", "\"prices\": {", "\"prices\": [], \"unused\": {", "unknown key 'unused'"},
};

/* The text of a built-in cluster with one piece replaced, on the heap. */
static char *replaced(const struct bad *bad)
{
    const char *json = builtin_json(bad->cluster);
    const char *found = strstr(json, bad->from);
    const size_t size = strlen(json) + strlen(bad->to) + 1;
    char *text = malloc(size);

    if (!found || !text)
        tap_bail("a test case replaces what is not there");
    snprintf(text, size, "%.*s%s%s", (int)(found - json), json, bad->to, found + strlen(bad->from));
    return text;
}

static void test_bad_files(struct arena *arena)
{
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        const struct bad *bad = &bad_files[i];
        struct cluster c = {.name = "untouched"};
        struct err err = {0};
        char path[64], want[300];
        char *text = replaced(bad);
        const enum status status = open_text(text, strlen(text), arena, &c, path, &err);
        snprintf(want, sizeof want, "%s: %s", path, bad->told);
        err.text[strlen(want) < sizeof err.text ? strlen(want) : 0] = '\0';
        is_str(err.text, want, "%s with '%s' is refused in one line", bad->cluster, bad->to);
        is_int(status, STATUS_INPUT, "as bad input");
        is_str(c.name, "untouched", "and nothing is written");
        free(text);
    }
}

/* Cut the member of this key out of a text, with the comma before it. */
static void cut(char *text, const char *key)
{
    char *at = strstr(text, key), *end = at ? strchr(at, '}') : NULL;

    while (at && at > text && *at != ',')
        at--;
    if (!end || *at != ',')
        tap_bail("a test case cuts out what is not there");
    memmove(at, end + 1, strlen(end + 1) + 1);
}

/* Files that were written before there were prices of retries. */
static void test_optional(struct arena *arena)
{
    const char *json = builtin_json("h100-sxm");
    char *text = malloc(strlen(json) + 1), path[64];
    struct err err = {0};
    struct cluster c;

    if (!text)
        abort();
    strcpy(text, json);
    is_int(open_text(text, strlen(text), arena, &c, path, &err), STATUS_OK, "h100-sxm is read");
    ok(c.headroom_bytes > 0 && c.host_retry_s.at[SPREAD_MID] > 0,
       "it says what real runs need beside, and what retries cost");
    cut(text, "\"headroom_gib\"");
    cut(text, "\"retry_us\"");
    is_int(open_text(text, strlen(text), arena, &c, path, &err), STATUS_OK,
           "a file may say neither (%s)", err.text);
    ok(c.headroom_bytes == 0 && c.host_retry_s.at[SPREAD_MID] == 0, "then it is nothing");
    is_str(c.headroom_bytes_source, "not given", "which is not given");
    is_str(c.host_retry_s.source, "not given", "nor is the other");
    free(text);
}

/* A file that differs from h100-sxm in one rate, of one number. */
static enum status open_rate(const struct rate_field *field, double number, struct arena *arena,
                             struct cluster *out, char *shown, struct err *err)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"schema\": \"unshard.cluster/1\", \"name\": \"x\", \"description\": \"x\", "
             "\"base\": \"h100-sxm\", \"%s\": {\"%s\": {\"value\": %.17g, \"source\": \"x\"}}}",
             field->section, field->key, number);
    return open_text(text, strlen(text), arena, out, shown, err);
}

/* A file like it, whose rows of collectives all have one number in common. */
static enum status open_row(const char *key, double number, struct arena *arena,
                            struct cluster *out, char *shown, struct err *err)
{
    char row[200] = "", text[1024];
#define X(member, name, unit, least, most)                                         \
    snprintf(row + strlen(row), sizeof row - strlen(row), ", \"%s\": %.17g", name, \
             strcmp(name, key) ? 1.0 : number);
    CLUSTER_ROW_NUMBERS(X)
#undef X
    snprintf(text, sizeof text,
             "{\"schema\": \"unshard.cluster/1\", \"name\": \"x\", \"description\": \"x\", "
             "\"base\": \"h100-sxm\", \"collectives\": ["
             "{\"kind\": \"all_gather\", \"ranks\": 8%s, \"source\": \"x\"}, "
             "{\"kind\": \"reduce_scatter\", \"ranks\": 8%s, \"source\": \"x\"}]}",
             row, row);
    return open_text(text, strlen(text), arena, out, shown, err);
}

/* A number just past a bound, and one far past it. */
static void past_bounds(double least, double most, double past[4])
{
    past[0] = nextafter(least, -HUGE_VAL);
    past[1] = -1e300;
    past[2] = nextafter(most, HUGE_VAL);
    past[3] = 1e300;
}

static void test_rate_bounds(struct arena *arena)
{
    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        const struct rate_field *field = &cluster_rate_fields[f];
        const double within[] = {field->least, field->most};
        double past[4];
        uint32_t refused = 0;
        char path[64], want[160];
        struct err err = {0};
        struct cluster c;

        for (int i = 0; i < 2; i++) {
            is_int(open_rate(field, within[i], arena, &c, path, &err), STATUS_OK,
                   "%s.%s may be %g (%s)", field->section, field->key, within[i], err.text);
            is_near(cluster_rate(&c, field)->at[SPREAD_MID], within[i] * field->unit, 1e-15,
                    "and is");
        }
        past_bounds(field->least, field->most, past);
        for (int i = 0; i < 4; i++) {
            refused += open_rate(field, past[i], arena, &c, path, &err) == STATUS_INPUT;
            snprintf(want, sizeof want, "%s: %s.%s: 'value' is ", path, field->section, field->key);
            refused += !strncmp(err.text, want, strlen(want));
            snprintf(want, sizeof want, ", it must be from %g to %g", field->least, field->most);
            refused += strstr(err.text, want) != NULL;
        }
        is_int(refused, 12, "%s.%s past its bounds is refused with file, key and bounds",
               field->section, field->key);
    }
}

static void test_row_bounds(struct arena *arena)
{
    static const struct {
        const char *key;
        double least, most;
    } numbers[] = {
#define X(member, key, unit, least, most) {key, least, most},
        CLUSTER_ROW_NUMBERS(X)
#undef X
    };
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        double past[4];
        uint32_t refused = 0;
        char path[64], want[160];
        struct err err = {0};
        struct cluster c;

        is_int(open_row(numbers[n].key, numbers[n].least, arena, &c, path, &err), STATUS_OK,
               "a row's %s may be %g (%s)", numbers[n].key, numbers[n].least, err.text);
        is_int(open_row(numbers[n].key, numbers[n].most, arena, &c, path, &err), STATUS_OK,
               "and %g (%s)", numbers[n].most, err.text);
        past_bounds(numbers[n].least, numbers[n].most, past);
        for (int i = 0; i < 4; i++) {
            refused += open_row(numbers[n].key, past[i], arena, &c, path, &err) == STATUS_INPUT;
            snprintf(want, sizeof want, "%s: collectives[0]: '%s' is ", path, numbers[n].key);
            refused += !strncmp(err.text, want, strlen(want));
        }
        is_int(refused, 8, "past its bounds it is refused with file, row and key");
    }
}

/* Bounds that mean something: shares end at the data sheet, divisors stay above 0. */
static void test_bounds(void)
{
    uint32_t shares = 0, odd = 0, absent = 0;

    for (uint32_t f = 0; f < n_cluster_rate_fields; f++) {
        const struct rate_field *field = &cluster_rate_fields[f];
        const bool share = strstr(field->key, "efficiency") || strstr(field->key, "fraction");
        shares += share;
        odd += share && field->most != 1;
        odd += !(field->least >= 0 && field->least < field->most && field->most <= 1e9);
        absent += field->more_is_faster && field->least <= 0;
    }
    is_int(odd, 0, "every rate has bounds, a share of a data sheet those of a share");
    is_int(shares, 12, "twelve rates are such shares");
    is_int(absent, 6, "six may be 0: products in FP8, FP32, TF32, three kernels of attention");
}

#define ONE_ROW(row)                                                                \
    "{\"schema\": \"unshard.cluster/1\", \"name\": \"a\", \"description\": \"b\", " \
    "\"base\": \"h100-sxm\", \"collectives\": [{" row ", \"start_us\": 1, "         \
    "\"root_us_per_sqrt_mb\": 1, \"gb_per_s\": 1, \"source\": \"c\"}]}"

/* Every unit is gathered, so a table without such a row of one node prices nothing. */
static void test_no_gather(struct arena *arena)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {ONE_ROW("\"kind\": \"reduce_scatter\", \"ranks\": 8"), "no row for all_gather"},
        {ONE_ROW("\"kind\": \"all_gather\", \"ranks\": 16, \"nodes\": 2"),
         "no row for all_gather in one node"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster cluster;
        struct err err = {0};
        char shown[64];
        is_int(open_text(cases[i].text, strlen(cases[i].text), arena, &cluster, shown, &err),
               STATUS_INPUT, "a table without all-gathers is refused");
        ok(strstr(err.text, cases[i].told) != NULL, "with '%s' (got '%s')", cases[i].told,
           err.text);
    }
}

static void test_names(struct arena *arena)
{
    static const struct {
        const char *what, *told;
        enum status status;
    } cases[] = {
        {"h100-sx", "unknown cluster 'h100-sx', did you mean 'h100-sxm'?", STATUS_USAGE},
        {"abacus", "unknown cluster 'abacus', give a file or one of: ", STATUS_USAGE},
        {"no-such-file.json", "cannot read 'no-such-file.json': ", STATUS_INPUT},
        {"./no-such-file", "cannot read './no-such-file': ", STATUS_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster c;
        struct err err = {0};
        is_int(cluster_open(cases[i].what, arena, &c, &err), cases[i].status, "'%s' is refused",
               cases[i].what);
        ok(!strncmp(err.text, cases[i].told, strlen(cases[i].told)), "with a hint (got '%s')",
           err.text);
    }
}

/* Cut or with a byte changed, a file is refused in one line, or opens with nothing out of order. */
static void test_damaged(struct arena *arena)
{
    uint64_t state = tap_seed(7);
    uint32_t silent = 0, faults = 0, opened = 0;

    for (int round = 0; round < 600; round++) {
        const char *json = builtin_clusters[tap_below(&state, n_builtin_clusters)].json;
        size_t length = strlen(json);
        char *text = malloc(length);
        struct cluster c;
        struct err err = {0};
        char path[64];
        if (!text)
            tap_bail("out of memory");
        memcpy(text, json, length);
        if (round % 3 == 0)
            length = tap_below(&state, length);
        else
            text[tap_below(&state, length)] = "0-9\"{}[],:.ex "[tap_below(&state, 14)];
        arena_reset(arena);
        if (open_text(text, length, arena, &c, path, &err)) {
            silent += err.status != STATUS_INPUT || err.text[0] == '\0' || strchr(err.text, '\n');
        } else {
            faults += count_faults(&c);
            opened++;
        }
        free(text);
    }
    is_int(silent, 0, "a damaged file that is refused says why");
    is_int(faults, 0, "one that opens keeps every invariant");
    ok(opened > 0 && opened < 600, "both happened (%u of 600 opened)", opened);
}

/* Each bit of what a row may have on top, written as a file and read again. */
static void test_row_file(struct arena *arena)
{
    static const struct collective_point points[] = {{65536, 19.54e-6}, {1e9, 0.0041}};
    static const struct collective_point shape[] = {{1024, 9e-6}, {2048, 8e-6}, {1e6, 0.03}};
    struct collective_row rows[] = {
        {TASK_ALL_GATHER, 8, 0, .a_s = 1e-6, .bytes_per_s = 3e11, .source = "plain"},
        {TASK_REDUCE_SCATTER, 8, 1, .a_s = 1e-6, .bytes_per_s = 3e11, .source = "one node"},
        {TASK_ALL_REDUCE, 16, 2, 2e-6, 3e-6, 4e11, 0.05, 1.5, points, shape, 2, 3, "all of it"}};
    struct cluster cluster, back;
    struct text text = {0};
    struct err err = {0};
    char path[64];

    if (cluster_open("h100-sxm", arena, &cluster, NULL))
        tap_bail("h100-sxm does not open");
    cluster.collectives = rows;
    cluster.n_collective = 3;
    struct cJSON *root = cluster_to_file(&cluster);
    json_print(root, &text);
    json_free(root);
    is_int(open_text(text.at, text.length, arena, &back, path, &err), STATUS_OK,
           "rows with nodes, spread, points and shape can be read again (%s)", err.text);
    const struct collective_row *row = &back.collectives[2];
    ok(row->ranks == 16 && row->nodes == 2 && row->n_point == 2, "with ranks, nodes and points");
    is_near(row->points[0].bytes, 65536, 1e-15, "a point has its bytes");
    is_near(row->points[0].seconds, 19.54e-6, 1e-9, "and its time");
    ok(row->n_shape == 3 && row->shape[1].bytes == 2048, "a shape has points of its own");
    is_near(row->shape[1].seconds, 8e-6, 1e-9, "which may fall");
    ok(row->faster == 0.05 && row->slower == 1.5, "the spread is there, to either side");
    ok(back.collectives[0].n_point + back.collectives[0].n_shape == 0 &&
           collective_row_nodes(&back.collectives[0]) == 1,
       "a plain row has none of it");
    text_release(&text);
}

int main(void)
{
    struct arena arena;
    arena_init(&arena);
    test_builtins(&arena);
    test_units(&arena);
    test_base(&arena);
    test_toy(&arena);
    test_bad_files(&arena);
    test_optional(&arena);
    test_rate_bounds(&arena);
    test_row_bounds(&arena);
    test_row_file(&arena);
    test_bounds();
    test_no_gather(&arena);
    test_names(&arena);
    test_damaged(&arena);
    arena_release(&arena);
    return tap_done();
}
