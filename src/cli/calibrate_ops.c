/*
 * What one thread of the host does in a second: the operators of gpu/ops.h, packing, memcpy, and the
 * hand-over of work to a stream; see calibrate.h.
 *
 * Each operator runs alone on operands of one small size, by CPU time. A rate is its work, as the
 * price counts it (sim/cost_formula.h), by that time: mid is that of all together, low and high those
 * of the fastest and the slowest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/bell.h"
#include "gpu/device.h"
#include "src/cli/bench_host.h"
#include "src/cli/calibrate.h"

/* Sizes, named as in gpu/ops.h. A sequence, and a short one; products that are narrow. */
enum {
    T = 256,
    H = 256,
    F = 512,
    V = 512,
    NH = 8,
    D = 32,
    Q = NH * D,
    SHORT = 32,
    CHUNKS = 4,
    N = 64
};
_Static_assert(CHUNKS *DELTA_CHUNK == T, "states of the delta rule");

enum { RUNS = 9, WARM_UP_RUNS = 2, SMALL = 16 };
#define TIMEOUT_NS INT64_C(10000000000)
#define OPERAND_BYTES ((size_t)8 << 20) /* of one, more than any needs */

struct operand_size {
    uint64_t n; /* 0: absent */
    uint8_t dtype, mode;
};
/* Letters of a case's operands: read, written, BF16 or FP32; ids of eight bytes; none. */
#define IN(n)                  \
    {                          \
        n, DTYPE_BF16, OP_READ \
    }
#define OUT(n)                  \
    {                           \
        n, DTYPE_BF16, OP_WRITE \
    }
#define IN32(n)                \
    {                          \
        n, DTYPE_FP32, OP_READ \
    }
#define OUT32(n)                \
    {                           \
        n, DTYPE_FP32, OP_WRITE \
    }
#define IDS(n)               \
    {                        \
        n, DTYPE_U8, OP_READ \
    }
#define NONE                   \
    {                          \
        0, DTYPE_BF16, OP_READ \
    }

enum work_class {
    CLASS_GEMM,
    CLASS_NARROW,
    CLASS_START,
    CLASS_LONG,
    CLASS_SHORT,
    CLASS_DELTA,
    CLASS_MEMORY
};

struct op_case {
    uint8_t of, kind, pass; /* enum work_class, op_kind, op_pass */
    uint64_t m, n, k;
    struct operand_size operands[OP_MAX_TENSORS];
};

static const struct op_case cases[] = {
    {CLASS_GEMM, OP_MM, PASS_FORWARD, T, F, H, {IN(T * H), IN(F *H), NONE, OUT(T *F)}},
    {CLASS_GEMM, OP_MM, PASS_DGRAD, T, H, F, {IN(T * F), IN(F *H), OUT(T *H)}},
    {CLASS_GEMM, OP_MM, PASS_WGRAD, F, H, T, {IN(T * F), IN(T *H), OUT(F *H)}},
    {CLASS_NARROW, OP_MM, PASS_FORWARD, N, N, N, {IN(N * N), IN(N *N), NONE, OUT(N *N)}},
    {CLASS_NARROW, OP_MM, PASS_DGRAD, N, N, N, {IN(N * N), IN(N *N), OUT(N *N)}},
    {CLASS_NARROW, OP_MM, PASS_WGRAD, N, N, N, {IN(N * N), IN(N *N), OUT(N *N)}},
    {CLASS_START,
     OP_MM,
     PASS_FORWARD,
     SMALL,
     SMALL,
     SMALL,
     {IN(SMALL * SMALL), IN(SMALL *SMALL), NONE, OUT(SMALL *SMALL)}},
    {CLASS_LONG,
     OP_SDPA,
     PASS_FORWARD,
     NH,
     T,
     D,
     {IN(T * Q), IN(T *Q), IN(T *Q), OUT(T *Q), OUT32(T *NH)}},
    {CLASS_LONG,
     OP_SDPA,
     PASS_DGRAD,
     NH,
     T,
     D,
     {IN(T * Q), IN(T *Q), IN(T *Q), IN(T *Q), IN32(T *NH), IN(T *Q), OUT(T *Q), OUT(T *Q),
      OUT(T *Q)}},
    {CLASS_SHORT,
     OP_SDPA,
     PASS_FORWARD,
     NH,
     SHORT,
     D,
     {IN(SHORT * Q), IN(SHORT *Q), IN(SHORT *Q), OUT(SHORT *Q), OUT32(SHORT *NH)}},
    {CLASS_SHORT,
     OP_SDPA,
     PASS_DGRAD,
     NH,
     SHORT,
     D,
     {IN(SHORT * Q), IN(SHORT *Q), IN(SHORT *Q), IN(SHORT *Q), IN32(SHORT *NH), IN(SHORT *Q),
      OUT(SHORT *Q), OUT(SHORT *Q), OUT(SHORT *Q)}},
    {CLASS_DELTA,
     OP_DELTA_RULE,
     PASS_FORWARD,
     T,
     NH,
     D,
     {IN32(T * Q), IN32(T *Q), IN(T *Q), IN32(T *Q), IN32(T *NH), OUT32(T *Q),
      OUT32(CHUNKS *NH *D *D)}},
    {CLASS_DELTA,
     OP_DELTA_RULE,
     PASS_DGRAD,
     T,
     NH,
     D,
     {IN32(T * Q), IN32(T *Q), IN(T *Q), IN32(T *Q), IN32(T *NH), IN32(CHUNKS *NH *D *D),
      IN32(T *Q), OUT32(T *Q), OUT32(T *Q), OUT(T *Q), OUT32(T *Q), OUT32(T *NH)}},
    {CLASS_MEMORY, OP_RMS, PASS_FORWARD, 0, 0, 0, {IN(T * H), IN(H), OUT(T *H), OUT32(T)}},
    {CLASS_MEMORY, OP_RMS, PASS_DGRAD, 0, 0, 0, {IN(T * H), IN(H), IN32(T), IN(T *H), OUT(T *H)}},
    {CLASS_MEMORY, OP_RMS, PASS_WGRAD, 0, 0, 0, {IN(T * H), IN32(T), IN(T *H), OUT(H)}},
    {CLASS_MEMORY, OP_SWIGLU, PASS_FORWARD, 0, 0, 0, {IN(T * F), IN(T *F), OUT(T *F)}},
    {CLASS_MEMORY,
     OP_SWIGLU,
     PASS_DGRAD,
     0,
     0,
     0,
     {IN(T * F), IN(T *F), IN(T *F), OUT(T *F), OUT(T *F)}},
    {CLASS_MEMORY, OP_ADD, PASS_FORWARD, 0, 0, 0, {IN(T * H), IN(T *H), OUT(T *H)}},
    {CLASS_MEMORY,
     OP_CROSS_ENTROPY,
     PASS_FORWARD,
     0,
     0,
     0,
     {IN(T * V), IDS(T), OUT32(T), OUT32(1)}},
    {CLASS_MEMORY, OP_CROSS_ENTROPY, PASS_DGRAD, 0, 0, 0, {IN(T * V), IDS(T), IN32(T), OUT(T *V)}},
};
enum { CASE_N = sizeof cases / sizeof *cases };

/* ---- one operator -------------------------------------------------------------------------------- */

/* Numbers that no function of an operator is slow for: 0.1; decays and gates take them too. */
static void fill(const struct operand_size *size, void *to)
{
    static const uint16_t tenth = 0x3dcd;

    if (size->dtype == DTYPE_U8)
        memset(to, 0, size->n * sizeof(int64_t));
    for (uint64_t i = 0; i < size->n && size->dtype == DTYPE_BF16; i++)
        memcpy((uint16_t *)to + i, &tenth, sizeof tenth);
    for (uint64_t i = 0; i < size->n && size->dtype == DTYPE_FP32; i++)
        ((float *)to)[i] = -0.1F;
}

static enum status run_op(void *self, struct err *err)
{
    const struct op_call *call = self;

    (void)err;
    host_op_find((enum op_kind)call->kind, (enum op_pass)call->pass)(call);
    return STATUS_OK;
}

static enum status time_op(const struct op_case *of, char *memory, double *seconds, struct err *err)
{
    static const struct bench_stage stage = {.warm_up = WARM_UP_RUNS, .runs = RUNS, .run = run_op};
    const uint64_t seq = of->of == CLASS_SHORT ? SHORT : T;
    const struct op_shape shape = {
        .batch = 1, .seq = seq, .heads = NH, .kv_heads = NH, .head_dim = D, .vocab = V};
    struct step_state state = {.grad_scale = 1, .loss_factor = 1, .loss_scale = 1};
    struct op_call call = {.kind = of->kind,
                           .pass = of->pass,
                           .m = of->m,
                           .n = of->n,
                           .k = of->k,
                           .shape = &shape,
                           .state = &state};
    struct bench_time time = {0};

    for (uint8_t i = 0; i < OP_MAX_TENSORS; i++) {
        const struct operand_size *size = &of->operands[i];
        void *at = memory + i * OPERAND_BYTES;
        call.tensors[i] = (struct op_tensor){
            .at = size->n ? at : NULL, .n = size->n, .dtype = size->dtype, .mode = size->mode};
        fill(size, at);
        call.n_tensor = size->n ? (uint8_t)(i + 1) : call.n_tensor;
    }
    const enum status status = bench_measure(&stage, &call, &time, err);
    *seconds = time.cpu_s;
    return status;
}

/* What the price takes for its work: FLOP, of attention those of forward, or bytes. */
static double work_of(const struct op_case *of)
{
    const struct op op = {.kind = of->kind, .pass = of->pass, .m = of->m, .n = of->n, .k = of->k};
    const double backward = of->pass == PASS_FORWARD ? 1 : 2.94; /* ATTENTION_BACKWARD_FACTOR */
    uint64_t work = 0;

    if (of->of == CLASS_LONG || of->of == CLASS_SHORT)
        return 2 * backward * (double)(of->m * of->n * of->n * of->k);
    op_flops(&op, &work);
    for (uint8_t i = 0; i < OP_MAX_TENSORS && of->of == CLASS_MEMORY; i++)
        work += of->operands[i].n * (of->operands[i].dtype == DTYPE_U8
                                         ? sizeof(int64_t)
                                         : dtype_bytes((enum dtype)of->operands[i].dtype));
    return (double)work;
}

/* ---- classes of them ------------------------------------------------------------------------------- */

/* Work in a second: of the fastest, of all together, of the slowest. */
struct speed {
    double fast, all, slow;
};

static struct speed speed_of(enum work_class of, const double *seconds)
{
    struct speed out = {.fast = 0, .slow = INFINITY};
    double work = 0, time = 0;

    for (int i = 0; i < CASE_N; i++) {
        if (cases[i].of != of)
            continue;
        const double speed = work_of(&cases[i]) / seconds[i];
        out.fast = fmax(out.fast, speed);
        out.slow = fmin(out.slow, speed);
        work += work_of(&cases[i]);
        time += seconds[i];
    }
    out.all = work / time;
    return out;
}

static double seconds_of(enum work_class of, const double *seconds)
{
    int i = 0;
    while (cases[i].of != of)
        i++;
    return seconds[i];
}

/* What a file's number of products can be at the least; the rest is efficiency. */
static const double NOMINAL_FLOPS = 1e11;

static struct rate share(struct speed speed, double of, const char *source)
{
    return calibrate_rate(speed.fast / of, speed.all / of, speed.slow / of, source);
}

static void set_products(const double *seconds, struct cluster *out, struct arena *arena)
{
    const struct speed products = speed_of(CLASS_GEMM, seconds);

    out->gemm_flops = calibrate_value(fmax(NOMINAL_FLOPS, products.fast),
                                      "nominal: what efficiency is a share of");
    out->gemm_efficiency = share(products, out->gemm_flops.at[SPREAD_MID],
                                 "measured: products of forward and backward, 256 to 512 wide");
    calibrate_valid(&out->gemm_efficiency, QUANTITY_GEMM_DIM, SMALL, 2 * F, arena);
    out->gemm_start_s =
        calibrate_value(seconds_of(CLASS_START, seconds), "measured: a product 16 wide");
    const double narrow_s = 2.0 * N * N * N / speed_of(CLASS_NARROW, seconds).all;
    const double start_s = out->gemm_start_s.at[SPREAD_MID];
    const double k = (narrow_s - start_s) * products.all / (2.0 * N * N);
    out->gemm_k0 = calibrate_value(fmax(0, k - N), "measured: products 64 wide against wide ones");
    out->gemm_derate = calibrate_value(1, "in what was measured");
}

/* 1/r = (1 + s0 / s) / E, through a long and a short sequence. */
static void set_attention(const double *seconds, struct cluster *out, struct arena *arena)
{
    const struct speed whole = speed_of(CLASS_LONG, seconds);
    const double per_long = 1 / whole.all, per_short = 1 / speed_of(CLASS_SHORT, seconds).all;
    const double slope = fmax(0, (per_short - per_long) / (1 / (double)SHORT - 1 / (double)T));
    const double best = fmax(per_long - slope / T, per_long / 2);
    const double ramp = 1 / (best * whole.all), flops = out->gemm_flops.at[SPREAD_MID];
    const struct speed limit = {whole.fast * ramp, 1 / best, whole.slow * ramp};

    out->attention_efficiency =
        share(limit, flops, "measured: forward and backward of 8 heads of 32, 256 tokens");
    calibrate_valid(&out->attention_efficiency, QUANTITY_HEAD_DIM, 8, 128, arena);
    out->attention_s0 = calibrate_value(slope / best, "measured: 256 against 32 tokens");
    calibrate_valid(&out->attention_s0, QUANTITY_SEQ, SHORT, 1024, arena);
    out->attention_head64 = calibrate_value(1, "in what was measured");
    out->attention_derate = calibrate_value(1, "in what was measured");
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
static enum status time_work(const struct work *work, double *seconds, struct err *err)
{
    const struct device_setup setup = {.ranks = 1, .timeout_ns = TIMEOUT_NS};
    struct host_device *device = host_device_new();
    struct stamp stamps[RUNS] = {0};
    enum status status = host_device_ops.open(device, &setup, err);
    double least_s = INFINITY;

    for (int i = 0; i < RUNS && status == STATUS_OK; i++) {
        const struct submission submission = {
            .work = work, .parts = STAMP_START | STAMP_END, .stamp = &stamps[i]};
        status = host_device_ops.submit(device, STREAM_C, &submission, err);
    }
    if (status == STATUS_OK)
        status = host_device_ops.drain(device, err);
    host_device_ops.close(device);
    host_device_free(device);
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
    const struct work work = {.kind = WORK_UPDATE,
                              .n = 1,
                              .state = &state,
                              .is.update = {.list = &update, .n_list = 1, .options = &options}};
    const enum status status = time_work(&work, seconds, err);
    free(memory);
    return status;
}

/* Operators of bodies have a rate of their own, as a factor on that of plain kernels. */
static enum status set_memory(const double *seconds, struct cluster *out, struct err *err)
{
    const struct speed ops = speed_of(CLASS_MEMORY, seconds);
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
    struct host_device *device;
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
    struct handing handing = {.device = host_device_new()};
    struct bench_time time = {0};
    enum status status = host_device_ops.open(handing.device, &setup, err);

    if (status == STATUS_OK)
        status = bench_measure(&stage, &handing, &time, err);
    host_device_ops.close(handing.device);
    host_device_free(handing.device);
    if (status != STATUS_OK)
        return status;
    const double issue_s = (double)handing.issued_ns * 1e-9 / ITEMS;
    out->host_launch_s = calibrate_value(issue_s, "measured: work handed to a stream");
    out->host_all_gather_s = calibrate_value(8 * issue_s, "as its copies, waits and records");
    out->copy_launch_s =
        calibrate_value(time.wall_s / ITEMS, "measured: a stream that has nothing to do");
    return STATUS_OK;
}

enum status calibrate_ops(struct cluster *out, struct arena *arena, struct err *err)
{
    char *memory = calloc(OP_MAX_TENSORS, OPERAND_BYTES);
    double seconds[CASE_N] = {0};
    enum status status = STATUS_OK;

    if (!memory)
        err_out_of_memory(OP_MAX_TENSORS * OPERAND_BYTES);
    for (int i = 0; i < CASE_N && status == STATUS_OK; i++)
        status = time_op(&cases[i], memory, &seconds[i], err);
    free(memory);
    if (status != STATUS_OK)
        return status;
    set_products(seconds, out, arena);
    set_attention(seconds, out, arena);
    status = set_memory(seconds, out, err);
    return status == STATUS_OK ? set_host(out, err) : status;
}
