/*
 * `unshard calibrate`: a cluster file with what was measured here, so that a step's prediction is one
 * for this machine.
 *
 * A source fills in a cluster; each is a line of the table. What a source cannot measure it says, in
 * the number's own source.
 */
#include <string.h>
#include <unistd.h>

#include "gpu/devices.h"
#include "src/cli/calibrate.h"
#include "src/cli/command.h"
#include "src/cluster_file.h"
#include "traces/out_file.h"

enum { RANKS_PER_CORE = 2, MOST_RANKS = 8, MOST_LOCAL_RANKS = 256 };

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

/* ---- the host ----------------------------------------------------------------------------------- */

static uint64_t memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 1;
}

static void set_sizes(struct cluster *out)
{
    static const char none[] = "the host has none";

    out->memory_bytes = memory_bytes();
    out->memory_bytes_source = "of the machine; ranks share it";
    out->max_gpus_per_node = MOST_LOCAL_RANKS;
    out->max_gpus_per_node_source = "ranks are processes";
    out->workspace_bytes_source = out->context_bytes_source = out->communicator_bytes_source = none;
}

/* One machine has no network; nothing is known of what ranks take from one another. */
static void set_rest(struct cluster *out)
{
    static const char none[] = "not measured: one machine has no network";
    static const char other[] = "a kernel of GPUs, which this device does not have";

    out->collective_floor_s = calibrate_value(0, "in the rows");
    out->nic_bytes_per_s = calibrate_value(1e9, none);
    out->nic_efficiency = calibrate_value(1, none);
    out->rank_latency_s = calibrate_value(0, none);
    out->node_decay = calibrate_value(1e9, none);
    out->straggler = calibrate_value(0, none);
    out->fp8_flops = calibrate_value(0, other);
    out->fp8_efficiency = calibrate_value(1, other);
    out->fp8_derate = calibrate_value(1, other);
    out->fa3_derate = calibrate_value(0, other);
    out->fa4_derate = calibrate_value(0, other);
    out->triton_2023_derate = calibrate_value(0, other);
    out->contention = calibrate_rate(0, 0, 1,
                                     "not measured: low where each thread has a core of "
                                     "its own, high where two share one");
}

static enum status calibrate_host(struct cluster *out, struct arena *arena, struct err *err)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t ranks = cores > MOST_RANKS ? MOST_RANKS : (uint32_t)(cores < 1 ? 1 : cores);
    const uint32_t most = RANKS_PER_CORE * ranks;

    *out = (struct cluster){.name = "host",
                            .description = "this machine as a device: threads and memory, ranks "
                                           "over shared memory"};
    set_sizes(out);
    set_rest(out);
    const enum status status = calibrate_device(out, arena, err);
    return status == STATUS_OK
               ? calibrate_comm(most < MOST_RANKS ? most : MOST_RANKS, out, arena, err)
               : status;
}

/* ---- the command -------------------------------------------------------------------------------- */

/* By enum device. */
static const struct {
    enum status (*measure)(struct cluster *out, struct arena *arena, struct err *err);
} sources[DEVICE_N] = {[DEVICE_HOST] = {calibrate_host}};

static enum status write_file(const char *path, const struct text *text, struct err *err)
{
    struct out_file out;
    enum status status = out_open(path, &out, err);

    if (status != STATUS_OK)
        return status;
    status = out_write(&out, text->at, text->length, err);
    if (status == STATUS_OK)
        return out_commit(&out, err);
    out_discard(&out);
    return status;
}

/* To the file, or to where results go. */
static enum status put(const struct cluster *cluster, const struct options *options,
                       struct output *out, struct err *err)
{
    const char *path = option_text(options, OPTION_OUTPUT);
    const bool to_file = path && strcmp(path, "-") != 0;
    struct cJSON *root = cluster_to_file(cluster);
    struct text text = {0};
    enum status status = STATUS_OK;

    json_print(root, to_file ? &text : &out->result);
    json_free(root);
    if (to_file)
        status = write_file(path, &text, err);
    text_release(&text);
    if (to_file && status == STATUS_OK)
        text_add(&out->result,
                 "%s: %u rates and %u rows of collectives, measured on this machine\n", path,
                 n_cluster_rate_fields, cluster->n_collective);
    return status;
}

enum status cmd_calibrate(struct options *options, struct output *out, struct err *err)
{
    const enum device device = (enum device)option_number(options, OPTION_DEVICE);
    const struct device_ops *ops;
    struct cluster cluster;
    struct arena arena;
    enum status status = device_find(device, &ops, err);

    if (status == STATUS_OK && !sources[device].measure)
        status = err_set(err, STATUS_DEVICE, "rates of device %s are not measured yet", ops->name);
    if (status != STATUS_OK)
        return status;
    arena_init(&arena);
    status = sources[device].measure(&cluster, &arena, err);
    if (status == STATUS_OK)
        status = put(&cluster, options, out, err);
    arena_release(&arena);
    return status;
}
