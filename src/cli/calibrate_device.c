/*
 * The rates of one rank of the host, as a cluster has them; see calibrate.h. From the speeds of
 * operators, of packing and memcpy, and of handing work to a stream.
 *
 * Mid is what all cases of a class reach together, low and high the fastest and the slowest of them.
 */
#include <math.h>
#include <stdlib.h>

#include "gpu/bell.h"
#include "gpu/device.h"
#include "src/cli/bench_host.h"
#include "src/cli/calibrate.h"

enum { RUNS = 9, WARM_UP_RUNS = 2 };
#define TIMEOUT_NS INT64_C(10000000000)

/* ---- operators -------------------------------------------------------------------------------- */

/* What a file's number of products can be at the least; the rest is efficiency. */
static const double NOMINAL_FLOPS = 1e11;

static struct rate share(struct calibrate_speed speed, double of, const char *source)
{
    return calibrate_rate(speed.fast / of, speed.all / of, speed.slow / of, source);
}

static void set_products(const struct calibrate_speed *speeds, struct cluster *out,
                         struct arena *arena)
{
    const struct calibrate_speed products = speeds[CLASS_GEMM];

    out->gemm_flops = calibrate_value(fmax(NOMINAL_FLOPS, products.fast),
                                      "nominal: what efficiency is a share of");
    out->gemm_efficiency = share(products, out->gemm_flops.at[SPREAD_MID],
                                 "measured: products of forward and backward, 256 to 512 wide");
    calibrate_valid(&out->gemm_efficiency, QUANTITY_GEMM_DIM, CALIBRATE_SMALL, 1024, arena);
    out->gemm_start_s = calibrate_value(speeds[CLASS_START].seconds, "measured: a product 16 wide");
    const double narrow_s =
        2.0 * CALIBRATE_NARROW * CALIBRATE_NARROW * CALIBRATE_NARROW / speeds[CLASS_NARROW].all;
    const double start_s = out->gemm_start_s.at[SPREAD_MID];
    const double k =
        (narrow_s - start_s) * products.all / (2.0 * CALIBRATE_NARROW * CALIBRATE_NARROW);
    out->gemm_k0 = calibrate_value(fmax(0, k - CALIBRATE_NARROW),
                                   "measured: products 64 wide against wide ones");
    out->gemm_derate = calibrate_value(1, "in what was measured");
}

/* 1/r = (1 + s0 / s) / E, through a long and a short sequence. */
static void set_attention(const struct calibrate_speed *speeds, struct cluster *out,
                          struct arena *arena)
{
    const struct calibrate_speed whole = speeds[CLASS_LONG];
    const double per_long = 1 / whole.all, per_short = 1 / speeds[CLASS_SHORT].all;
    const double slope = fmax(0, (per_short - per_long) /
                                     (1 / (double)CALIBRATE_SHORT_SEQ - 1 / (double)CALIBRATE_SEQ));
    const double best = fmax(per_long - slope / CALIBRATE_SEQ, per_long / 2);
    const double ramp = 1 / (best * whole.all), flops = out->gemm_flops.at[SPREAD_MID];
    const struct calibrate_speed limit = {
        .fast = whole.fast * ramp, .all = 1 / best, .slow = whole.slow * ramp};

    out->attention_efficiency =
        share(limit, flops, "measured: forward and backward of 8 heads of 32, 256 tokens");
    calibrate_valid(&out->attention_efficiency, QUANTITY_HEAD_DIM, 8, 128, arena);
    out->attention_s0 = calibrate_value(slope / best, "measured: 256 against 32 tokens");
    calibrate_valid(&out->attention_s0, QUANTITY_SEQ, CALIBRATE_SHORT_SEQ, 1024, arena);
    out->attention_head64 = calibrate_value(1, "in what was measured");
    out->attention_derate = calibrate_value(1, "in what was measured");
    out->delta_rule = share(speeds[CLASS_DELTA], 1 / best,
                            "measured: forward and backward of 8 heads of 32, 256 tokens");
}

/* ---- memory, and what is copied -------------------------------------------------------------------- */

#define COPY_BYTES ((uint64_t)64 << 20)
/* In the caches, as a unit of a model that a host trains in good time: faster than memory. */
#define PACK_BYTES ((uint64_t)1 << 20)

/* Shares of the rate of memory at which packing reads and writes. X(member, from, to) */
#define PACKINGS(X)           \
    X(copy_cast, FP32, BF16)  \
    X(copy_in, FP32, BF16)    \
    X(copy_out, BF16, BF16)   \
    X(pack_widen, BF16, FP32) \
    X(pack_same, BF16, BF16)  \
    X(pack_fp32, FP32, FP32)

static enum status set_copies(struct cluster *out, struct err *err)
{
    static const char source[] = "measured: 16 tensors of 1 MiB in all, host_pack()";
    const double memory = out->memory_bytes_per_s.at[SPREAD_MID];
    double time = 0, fast = 0, slow = INFINITY;
    struct bench_packing packing;
    int n = 0;
    enum status status;

#define X(member, from, to)                                                                    \
    if ((status = bench_packing_measure(DTYPE_##from, DTYPE_##to, PACK_BYTES, &packing, err))) \
        return status;                                                                         \
    out->member = calibrate_value(packing.pack_bytes_per_s / memory, source);                  \
    fast = fmax(fast, packing.pack_bytes_per_s);                                               \
    slow = fmin(slow, packing.pack_bytes_per_s);                                               \
    time += 1 / packing.pack_bytes_per_s;                                                      \
    n++;
    PACKINGS(X)
#undef X
    out->own_kernels = calibrate_rate(fast / memory, n / time / memory, slow / memory, source);
    out->mixed_slowdown = calibrate_value(1, "each tile is of one type");
    return STATUS_OK;
}

/* AdamW over one parameter: what a plain elementwise kernel reaches, which reads four and writes three
   of seven numbers. */
enum { UPDATED = 1 << 16, UPDATE_BYTES = 7 * sizeof(float) };

/* Work on a stream of a device of its own: the shortest of several times. */
static enum status time_work(struct work *work, double *seconds, struct err *err)
{
    const struct device_setup setup = {.ranks = 1, .timeout_ns = TIMEOUT_NS};
    void *device = host_device_ops.make();
    struct stamp stamps[RUNS] = {0};
    enum status status = host_device_ops.open(device, &setup, err);
    double least_s = INFINITY;

    if (status == STATUS_OK)
        status = host_device_ops.prepare(device, work, err);
    for (int i = 0; i < RUNS && status == STATUS_OK; i++) {
        const struct submission submission = {
            .work = work, .parts = STAMP_START | STAMP_END, .stamp = &stamps[i]};
        status = host_device_ops.submit(device, STREAM_C, &submission, err);
    }
    if (status == STATUS_OK)
        status = host_device_ops.drain(device, err);
    host_device_ops.close(device);
    host_device_ops.free(device);
    for (int i = 0; i < RUNS; i++)
        least_s = fmin(least_s, (double)(stamps[i].end_ns - stamps[i].start_ns) * 1e-9);
    *seconds = least_s;
    return status;
}

static enum status time_update(double *seconds, struct err *err)
{
    static const struct optimizer_options options = {
        .adamw = true, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    float *memory = calloc(4, UPDATED * sizeof(float)), step = 0;
    struct step_state state = {.loss_scale = 1};
    struct device_tensor tensors[4];

    if (!memory)
        err_out_of_memory(4 * UPDATED * sizeof(float));
    for (int i = 0; i < 4; i++)
        tensors[i] = (struct device_tensor){memory + i * UPDATED, UPDATED, DTYPE_FP32};
    const struct update update = {tensors[0], tensors[1], tensors[2], tensors[3], &step};
    struct work work = {.kind = WORK_UPDATE,
                        .n = 1,
                        .state = &state,
                        .is.update = {.list = &update, .n_list = 1, .options = &options}};
    const enum status status = time_work(&work, seconds, err);
    free(memory);
    return status;
}

/* Operators of bodies have a rate of their own, as a factor on that of plain kernels. */
static enum status set_memory(const struct calibrate_speed *speeds, struct cluster *out,
                              struct err *err)
{
    const struct calibrate_speed ops = speeds[CLASS_OTHER];
    struct bench_packing packing;
    double update_s = 0;
    enum status status = bench_packing_measure(DTYPE_FP32, DTYPE_FP32, COPY_BYTES, &packing, err);

    if (status == STATUS_OK)
        status = time_update(&update_s, err);
    if (status != STATUS_OK)
        return status;
    const double plain = (double)UPDATED * UPDATE_BYTES / update_s;
    out->memory_bytes_per_s =
        calibrate_value(packing.copy_bytes_per_s, "measured: memcpy of 64 MiB, read and written");
    out->memory_efficiency = calibrate_value(plain / packing.copy_bytes_per_s, "measured: AdamW");
    out->memory_slowdown =
        calibrate_rate(plain / ops.fast, plain / ops.all, plain / ops.slow,
                       "measured: norms, activations, additions, the loss, against AdamW; forward "
                       "and backward");
    return set_copies(out, err);
}

/* ---- handing over ----------------------------------------------------------------------------------- */

enum { ITEMS = 2000 };

struct handing {
    void *device;
    int64_t issued_ns;
};

static enum status hand_over(void *self, struct err *err)
{
    static const struct work nothing = {.kind = WORK_NOTHING};
    const struct submission submission = {.work = &nothing};
    struct handing *handing = self;
    const int64_t begin_ns = bell_now_ns();
    enum status status = STATUS_OK;

    for (int i = 0; i < ITEMS && status == STATUS_OK; i++)
        status = host_device_ops.submit(handing->device, STREAM_C, &submission, err);
    handing->issued_ns = bell_now_ns() - begin_ns;
    return status == STATUS_OK ? host_device_ops.drain(handing->device, err) : status;
}

static enum status set_host(struct cluster *out, struct err *err)
{
    static const struct bench_stage stage = {
        .warm_up = WARM_UP_RUNS, .runs = RUNS, .run = hand_over};
    const struct device_setup setup = {.ranks = 1, .timeout_ns = TIMEOUT_NS};
    struct handing handing = {.device = host_device_ops.make()};
    struct bench_time time = {0};
    enum status status = host_device_ops.open(handing.device, &setup, err);

    if (status == STATUS_OK)
        status = bench_measure(&stage, &handing, &time, err);
    host_device_ops.close(handing.device);
    host_device_ops.free(handing.device);
    if (status != STATUS_OK)
        return status;
    const double issue_s = (double)handing.issued_ns * 1e-9 / ITEMS;
    out->host_launch_s = calibrate_value(issue_s, "measured: work handed to a stream");
    out->host_all_gather_s = calibrate_value(8 * issue_s, "as its copies, waits and records");
    out->copy_launch_s =
        calibrate_value(time.wall_s / ITEMS, "measured: a stream that has nothing to do");
    return STATUS_OK;
}

enum status calibrate_device(struct cluster *out, struct arena *arena, struct err *err)
{
    struct calibrate_speed speeds[CLASS_OP_N];
    enum status status = calibrate_op_speeds(speeds, err);

    if (status != STATUS_OK)
        return status;
    set_products(speeds, out, arena);
    set_attention(speeds, out, arena);
    status = set_memory(speeds, out, err);
    return status == STATUS_OK ? set_host(out, err) : status;
}
