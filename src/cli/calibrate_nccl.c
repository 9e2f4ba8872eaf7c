/*
 * Outputs of nccl-tests as a cluster's collectives; see calibrate.h.
 *
 * Each kind, number of ranks and of nodes becomes a row, with its times as points; where sizes are far
 * apart, the row that --cluster has for the same says where the steps between them are. All-gathers and
 * reduce-scatters between nodes say something of the network, too. Everything else stays as --cluster
 * has it. Of messages below 64 KiB nothing is taken: there a launch costs more than they do.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/calibrate.h"
#include "src/cli/collective_fit.h"
#include "traces/nccl_tests.h"

/* A message, and the file (and the day) that it is from. */
struct sample {
    struct node_sample of;
    const char *from;
    uint32_t place; /* among all, as they were read */
};

struct samples {
    struct sample *all;
    uint32_t n, cap;
};

/*
 * Which half of a row is what FSDP2 does. Its copy-in puts a rank's shard into its place in the buffer
 * that is gathered into: in place. Its reduce-scatter reads packed gradients and writes a shard that
 * has memory of its own: out of place. An all-reduce between replicas changes that shard: in place.
 */
static enum nccl_block block_of(uint8_t kind)
{
    return kind == TASK_REDUCE_SCATTER ? NCCL_OUT_OF_PLACE : NCCL_IN_PLACE;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- reading ------------------------------------------------------------------------------------ */

/* The fewest that hold its ranks, where a file does not say. */
static enum status nodes_of(const struct nccl_test *test, const struct cluster *cluster,
                            uint32_t *nodes, struct err *err)
{
    const uint64_t most = cluster->max_gpus_per_node;
    const uint32_t line = test->rows[0].line;

    *nodes = test->nodes > 0 ? test->nodes : (uint32_t)((test->ranks + most - 1) / most);
    if (test->ranks % *nodes != 0)
        return err_set(err, STATUS_INPUT,
                       "line %u: %u ranks on %u nodes, as many on each are needed", line,
                       test->ranks, *nodes);
    if (test->ranks / *nodes > most)
        return err_set(err, STATUS_INPUT,
                       "line %u: %u ranks in a node, but '%s' has %u GPUs in one, see --cluster",
                       line, test->ranks / *nodes, cluster->name, (unsigned)most);
    return STATUS_OK;
}

static enum status add_test(const struct nccl_test *test, const char *from,
                            const struct cluster *cluster, struct samples *out, struct arena *arena,
                            struct err *err)
{
    const enum nccl_block block = block_of(test->kind);
    uint32_t nodes;
    enum status status = nodes_of(test, cluster, &nodes, err);

    for (uint32_t i = 0; i < test->n_row && status == STATUS_OK; i++) {
        const struct nccl_row *row = &test->rows[i];
        if (row->bytes < FIT_LEAST_BYTES)
            continue;
        if (row->seconds[block] == 0)
            return err_set(err, STATUS_INPUT, "line %u: no time %s, which %s needs", row->line,
                           block == NCCL_IN_PLACE ? "in place" : "out of place",
                           task_kind_name((enum task_kind)test->kind));
        out->all = arena_grow(arena, out->all, &out->cap, out->n + 1, sizeof *out->all);
        out->all[out->n] = (struct sample){.of = {.kind = test->kind,
                                                  .ranks = test->ranks,
                                                  .nodes = nodes,
                                                  .bytes = (double)row->bytes,
                                                  .seconds = row->seconds[block]},
                                           .from = from,
                                           .place = out->n};
        out->n++;
    }
    return status;
}

static enum status read_file(const char *path, const struct cluster *cluster, struct samples *out,
                             struct arena *arena, struct err *err)
{
    struct nccl_tests tests;
    enum status status = nccl_tests_read(path, arena, &tests, err);

    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < tests.n_test && status == STATUS_OK; i++) {
        const struct nccl_test *test = &tests.tests[i];
        const char *from = test->date[0] ? arena_printf(arena, "%s, %s", name_of(path), test->date)
                                         : name_of(path);
        status = add_test(test, from, cluster, out, arena, err);
    }
    return status == STATUS_OK ? STATUS_OK : err_prefix(err, "%s", path);
}

static bool same_row(const struct node_sample *x, const struct node_sample *y)
{
    return x->kind == y->kind && x->ranks == y->ranks && x->nodes == y->nodes;
}

/* What is of one row comes together, by size. */
static int compare(const void *a, const void *b)
{
    const struct node_sample *x = &((const struct sample *)a)->of;
    const struct node_sample *y = &((const struct sample *)b)->of;

    if (x->nodes != y->nodes)
        return x->nodes < y->nodes ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->ranks != y->ranks)
        return x->ranks < y->ranks ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    const uint32_t place = ((const struct sample *)a)->place;
    return place < ((const struct sample *)b)->place ? -1 : 1;
}

/* ---- what becomes of it ------------------------------------------------------------------------- */

/* Files that samples are from, each once, into a text of the arena. */
static const char *sources_of(const struct sample *samples, uint32_t n, struct arena *arena)
{
    const char *all = samples[0].from;

    for (uint32_t i = 1; i < n; i++) {
        bool is_known = false;
        for (uint32_t j = 0; j < i && !is_known; j++)
            is_known = strcmp(samples[i].from, samples[j].from) == 0;
        if (!is_known)
            all = arena_printf(arena, "%s; %s", all, samples[i].from);
    }
    return all;
}

/* How many sizes; what several files say of one is their geometric mean, as errors are relative. */
static uint32_t points_of(const struct sample *samples, uint32_t n, struct collective_point *out)
{
    uint32_t n_point = 0;

    for (uint32_t i = 0, same; i < n; i += same) {
        double log_sum = 0;
        for (same = 0; i + same < n && samples[i + same].of.bytes == samples[i].of.bytes; same++)
            log_sum += log(samples[i + same].of.seconds);
        out[n_point++] =
            (struct collective_point){.bytes = samples[i].of.bytes, .seconds = exp(log_sum / same)};
    }
    return n_point;
}

/* Sizes whose time is a hiccup, or an empty text. */
static const char *hiccups_of(const struct measured_row *measured, struct arena *arena)
{
    const char *all = "";
    char bytes[32];

    for (uint32_t i = 0; i < measured->n_point; i++)
        if (measured_row_is_hiccup(measured, i))
            all = arena_printf(arena, "%s%s%s", all, all[0] ? ", " : "",
                               text_bytes((uint64_t)measured->points[i].bytes, bytes));
    return all;
}

/* *n_kept: how many are no hiccups. */
static enum status check_sizes(const struct measured_row *measured, const char *from,
                               uint32_t *n_kept, struct err *err)
{
    const bool too_many = measured->n_point > MEASURED_MOST_SIZES;
    uint32_t n = 0;

    for (uint32_t i = 0; i < measured->n_point; i++)
        n += !measured_row_is_hiccup(measured, i);
    if (too_many || n < FIT_LEAST_SIZES)
        return err_set(
            err, STATUS_INPUT,
            "%s: %s of %u ranks: sizes of 64 KiB or more: %u, of these %u took longer than "
            "a larger one; %d others are needed, and %d in all are possible",
            from, task_kind_name((enum task_kind)measured->kind), measured->ranks,
            measured->n_point, measured->n_point - n, FIT_LEAST_SIZES, MEASURED_MOST_SIZES);
    *n_kept = n;
    return STATUS_OK;
}

/* n_inferred: points between those that were measured, by the steps of the preset. */
static const char *sizes_text(const struct measured_row *measured, const char *hiccups,
                              uint32_t n_inferred, const char *preset, struct arena *arena)
{
    const char *all = arena_printf(arena, "%u sizes", measured->n_point);

    if (hiccups[0])
        all = arena_printf(arena, "%s, without %s, as a larger one took less", all, hiccups);
    if (n_inferred > 0)
        all =
            arena_printf(arena, "%s; %u more inferred by the steps of %s", all, n_inferred, preset);
    return all;
}

/* *hiccups: the sizes that are no points of it. */
static enum status fit_row(const struct sample *samples, uint32_t n, const struct cluster *preset,
                           struct collective_row *out, const char **hiccups, struct arena *arena,
                           struct err *err)
{
    struct collective_point *sizes = arena_array(arena, struct collective_point, n);
    struct collective_point *points =
        arena_array(arena, struct collective_point, CLUSTER_MAX_POINTS);
    struct measured_row measured = {.kind = samples->of.kind,
                                    .ranks = samples->of.ranks,
                                    .nodes = samples->of.nodes,
                                    .points = sizes,
                                    .n_point = points_of(samples, n, sizes)};
    uint32_t n_kept = 0;
    char worst[32];
    const enum status status = check_sizes(&measured, samples->from, &n_kept, err);

    if (status != STATUS_OK)
        return status;
    measured.steps = measured_row_steps(&measured, preset);
    collective_fit_row(&measured, points, out);
    const struct fit_errors errors = collective_fit_errors(&measured);
    out->faster = errors.faster;
    out->slower = errors.slower;
    *hiccups = hiccups_of(&measured, arena);
    out->source = arena_printf(
        arena,
        "nccl-tests, %s: %s; one that is left out is missed by %.1f %% (median), %.1f %% at "
        "most, at %s",
        sources_of(samples, n, arena),
        sizes_text(&measured, *hiccups, out->n_point - n_kept, preset->name, arena),
        100 * errors.median, 100 * errors.worst, text_bytes((uint64_t)errors.worst_bytes, worst));
    return STATUS_OK;
}

/* In the place of the row that the cluster has for this, or after all. */
static void put_row(const struct collective_row *row, struct collective_row *rows, uint32_t *n)
{
    uint32_t i = 0;

    while (i < *n && (rows[i].kind != row->kind || rows[i].ranks != row->ranks ||
                      collective_row_nodes(&rows[i]) != row->nodes))
        i++;
    rows[i] = *row;
    if (i == *n)
        ++*n;
}

static void tell_row(const struct collective_row *row, const char *hiccups, struct text *what)
{
    text_add(what, "%s%s of %u ranks", what->length ? ", " : "",
             task_kind_name((enum task_kind)row->kind), row->ranks);
    if (row->nodes > 1)
        text_add(what, " on %u nodes", row->nodes);
    if (hiccups[0])
        text_add(what, " (without %s: a larger one took less)", hiccups);
}

static enum status fit_rows(const struct samples *samples, struct cluster *cluster,
                            struct text *what, struct arena *arena, struct err *err)
{
    struct collective_row *rows =
        arena_array(arena, struct collective_row, cluster->n_collective + samples->n);
    struct collective_row row;
    const char *hiccups;
    uint32_t n = cluster->n_collective;
    enum status status;

    memcpy(rows, cluster->collectives, n * sizeof *rows);
    for (uint32_t i = 0, end; i < samples->n; i = end) {
        for (end = i; end < samples->n && same_row(&samples->all[i].of, &samples->all[end].of);)
            end++;
        status = fit_row(samples->all + i, end - i, cluster, &row, &hiccups, arena, err);
        if (status != STATUS_OK)
            return status;
        put_row(&row, rows, &n);
        tell_row(&row, hiccups, what);
    }
    if (n > CLUSTER_MAX_ROWS)
        return err_set(err, STATUS_INPUT, "%u rows of collectives, a cluster has at most %d", n,
                       CLUSTER_MAX_ROWS);
    cluster->collectives = rows;
    cluster->n_collective = n;
    return STATUS_OK;
}

/* Nothing is said of the network where only all-reduces went over it. */
static void fit_network(const struct samples *samples, struct cluster *cluster, struct text *what,
                        struct arena *arena)
{
    struct sample *used = arena_array(arena, struct sample, samples->n);
    struct node_sample *messages = arena_array(arena, struct node_sample, samples->n);
    uint32_t least = UINT32_MAX, most = 0, n = 0;
    char worst[32];

    for (uint32_t i = 0; i < samples->n; i++) {
        const struct node_sample *of = &samples->all[i].of;
        if (of->nodes == 1 || of->kind == TASK_ALL_REDUCE)
            continue;
        used[n] = samples->all[i];
        messages[n++] = *of;
        least = of->ranks < least ? of->ranks : least;
        most = of->ranks > most ? of->ranks : most;
    }
    if (n == 0)
        return;
    const struct fit_errors errors = collective_fit_network(cluster, messages, n);
    cluster->nic_efficiency.source = cluster->rank_latency_s.source = arena_printf(
        arena, "nccl-tests, %s: %u messages, missed by %.1f %% (median), %.1f %% at most, at %s",
        sources_of(used, n, arena), n, 100 * errors.median, 100 * errors.worst,
        text_bytes((uint64_t)errors.worst_bytes, worst));
    calibrate_valid(&cluster->rank_latency_s, QUANTITY_RANKS, least, most, arena);
    text_add(what, ", the network between nodes");
}

static enum status fit_all(struct samples *samples, struct cluster *cluster, struct text *what,
                           struct arena *arena, struct err *err)
{
    if (samples->n == 0)
        return err_set(err, STATUS_INPUT, "no message of 64 KiB or more in these files");
    qsort(samples->all, samples->n, sizeof *samples->all, compare);
    const enum status status = fit_rows(samples, cluster, what, arena, err);
    if (status == STATUS_OK)
        fit_network(samples, cluster, what, arena);
    return status;
}

static enum status open_base(const struct options *options, struct cluster *out,
                             struct arena *arena, struct err *err)
{
    const char *name = option_text(options, OPTION_CLUSTER);
    const enum status status = cluster_open(name, arena, out, err);

    if (status == STATUS_OK && out->has_prices)
        return err_set(err, STATUS_USAGE,
                       "cluster '%s' has prices and no rates to put these beside", out->name);
    return status;
}

/* One that was calibrated before is called so already. */
static void rename_cluster(struct cluster *cluster, struct arena *arena)
{
    static const char suffix[] = "+nccl-tests";

    if (strstr(cluster->name, suffix))
        return;
    cluster->name = arena_printf(arena, "%s%s", cluster->name, suffix);
    cluster->description =
        arena_printf(arena, "%s; collectives from nccl-tests", cluster->description);
}

enum status calibrate_nccl(const struct options *options, struct arena *arena, struct output *out,
                           struct err *err)
{
    struct samples samples = {0};
    struct cluster cluster;
    struct text what = {0};
    enum status status = open_base(options, &cluster, arena, err);

    for (int i = 0; i < OPTIONS_MAX_OPERANDS && options->operands[i] && status == STATUS_OK; i++)
        status = read_file(options->operands[i], &cluster, &samples, arena, err);
    if (status == STATUS_OK)
        status = fit_all(&samples, &cluster, &what, arena, err);
    if (status == STATUS_OK) {
        text_add(&what, "; the rest is of %s", cluster.name);
        rename_cluster(&cluster, arena);
        status = calibrate_put(&cluster, what.at, options, out, err);
    }
    text_release(&what);
    return status;
}
