/*
 * `unshard calibrate`: a cluster file from what was measured, so that a step's prediction is one for
 * that machine.
 *
 * A source makes a cluster and puts it; each is a line of the table. Knows how a cluster is written,
 * not what is in it.
 */
#include <string.h>

#include "gpu/devices.h"
#include "src/cli/calibrate.h"
#include "src/cluster_file.h"
#include "traces/out_file.h"

struct rate calibrate_rate(double low, double mid, double high, const char *source)
{
    return (struct rate){.at = {low, mid, high}, .source = source};
}

struct rate calibrate_value(double value, const char *source)
{
    return calibrate_rate(value, value, value, source);
}

void calibrate_valid(struct rate *rate, enum quantity quantity, uint64_t min, uint64_t max,
                     struct arena *arena)
{
    struct valid_range *range = arena_array(arena, struct valid_range, 1);
    *range = (struct valid_range){.min = min, .max = max, .quantity = (uint8_t)quantity};
    rate->valid = range;
    rate->n_valid = 1;
}

enum status calibrate_write(const struct cluster *cluster, const char *path, struct err *err)
{
    struct cJSON *root = cluster_to_file(cluster);
    struct text text = {0};

    json_print(root, &text);
    json_free(root);
    const enum status status = out_write_file(path, text.at, text.length, err);
    text_release(&text);
    return status;
}

enum status calibrate_put(const struct cluster *cluster, const char *what,
                          const struct options *options, struct output *out, struct err *err)
{
    const char *path = option_text(options, OPTION_OUTPUT);
    const bool to_file = path && strcmp(path, "-") != 0;

    if (to_file) {
        const enum status status = calibrate_write(cluster, path, err);
        if (status == STATUS_OK)
            text_add(&out->result, "%s: %s\n", path, what);
        return status;
    }
    struct cJSON *root = cluster_to_file(cluster);
    json_print(root, &out->result);
    json_free(root);
    return STATUS_OK;
}

/* ---- from a device ------------------------------------------------------------------------------ */

/* By enum device. */
static const struct {
    enum status (*measure)(const struct device_ops *ops, const struct cluster *preset,
                           struct cluster *out, struct arena *arena, struct err *err);
} devices[DEVICE_N] = {[DEVICE_HOST] = {calibrate_host}, [DEVICE_CUDA] = {calibrate_cuda}};

static enum status measure(const struct options *options, struct arena *arena, struct output *out,
                           struct err *err)
{
    const enum device device = (enum device)option_number(options, OPTION_DEVICE);
    const struct device_ops *ops;
    struct cluster cluster, preset;
    enum status status = device_find(device, &ops, err);

    if (status == STATUS_OK)
        status = cluster_open(option_text(options, OPTION_CLUSTER), arena, &preset, err);
    if (status == STATUS_OK)
        status = ops->probe(err);
    if (status == STATUS_OK)
        status = devices[device].measure(ops, &preset, &cluster, arena, err);
    if (status != STATUS_OK)
        return status;
    return calibrate_put(
        &cluster,
        arena_printf(arena, "%u rates and %u rows of collectives, measured on this machine",
                     n_cluster_rate_fields, cluster.n_collective),
        options, out, err);
}

/* ---- the command -------------------------------------------------------------------------------- */

static const struct {
    enum status (*calibrate)(const struct options *options, struct arena *arena, struct output *out,
                             struct err *err);
    const char *files; /* what it reads, in messages; NULL: nothing */
} sources[CALIBRATE_SOURCE_N] = {
    [CALIBRATE_FROM_DEVICE] = {measure, NULL},
    [CALIBRATE_FROM_NCCL_TESTS] = {calibrate_nccl, "what nccl-tests printed"},
    [CALIBRATE_FROM_TRACE] = {calibrate_trace, "a profile that PyTorch wrote, or one of each rank"},
    [CALIBRATE_FROM_RUNS] = {calibrate_from_runs, "a table of measured runs"},
};

static enum status check_files(const struct options *options, struct err *err)
{
    const unsigned from = (unsigned)option_number(options, OPTION_FROM);
    const char *files = sources[from].files, *file = options->operands[0];

    if (!files && file)
        return err_set(err, STATUS_USAGE,
                       "'%s' is not read: with --from %s the machine is measured", file,
                       option_text(options, OPTION_FROM));
    if (files && !file)
        return err_set(err, STATUS_USAGE, "--from %s needs a file: %s",
                       option_text(options, OPTION_FROM), files);
    return STATUS_OK;
}

enum status cmd_calibrate(struct options *options, struct output *out, struct err *err)
{
    struct arena arena;
    enum status status = check_files(options, err);

    if (status != STATUS_OK)
        return status;
    arena_init(&arena);
    status = sources[option_number(options, OPTION_FROM)].calibrate(options, &arena, out, err);
    arena_release(&arena);
    return status;
}
