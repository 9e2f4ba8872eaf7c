/*
 * How fast the operators of gpu/ops.h are on the host, one thread; see calibrate.h.
 *
 * Each runs alone on operands of one small size, by CPU time. Its speed is its work, as the price
 * counts it (sim/cost_formula.h), by that time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/ops.h"
#include "src/cli/bench.h"
#include "src/cli/calibrate.h"

/* Sizes, named as in gpu/ops.h. */
enum {
    T = CALIBRATE_SEQ,
    S = CALIBRATE_SHORT_SEQ,
    N = CALIBRATE_NARROW,
    SMALL = CALIBRATE_SMALL * CALIBRATE_SMALL,
    H = 256,
    F = 512,
    V = 512,
    NH = 8,
    D = 32,
    Q = NH * D,
    STATES = T / DELTA_CHUNK * Q * D
};
enum { RUNS = 9, WARM_UP_RUNS = 2 };
#define OPERAND_BYTES ((size_t)8 << 20) /* of one, more than any needs */

struct operand_size {
    uint64_t n; /* 0: absent */
    uint8_t dtype, mode;
};
/* clang-format off */
/* A case's operands: read, written, BF16 or FP32; ids of eight bytes; none. */
#define IN(n)    {n, DTYPE_BF16, OP_READ}
#define OUT(n)   {n, DTYPE_BF16, OP_WRITE}
#define IN32(n)  {n, DTYPE_FP32, OP_READ}
#define OUT32(n) {n, DTYPE_FP32, OP_WRITE}
#define IDS(n)   {n, DTYPE_U8, OP_READ}
#define NONE     {0, DTYPE_BF16, OP_READ}
/* clang-format on */

struct op_case {
    uint8_t of, kind, pass; /* enum calibrate_class, op_kind, op_pass */
    uint64_t m, n, k;
    struct operand_size operands[OP_MAX_TENSORS];
};

/* clang-format off */
static const struct op_case cases[] = {
    {CLASS_GEMM, OP_MM, PASS_FORWARD, T, F, H, {IN(T * H), IN(F * H), NONE, OUT(T * F)}},
    {CLASS_GEMM, OP_MM, PASS_DGRAD,   T, H, F, {IN(T * F), IN(F * H), OUT(T * H)}},
    {CLASS_GEMM, OP_MM, PASS_WGRAD,   F, H, T, {IN(T * F), IN(T * H), OUT(F * H)}},
    {CLASS_NARROW, OP_MM, PASS_FORWARD, N, N, N, {IN(N * N), IN(N * N), NONE, OUT(N * N)}},
    {CLASS_NARROW, OP_MM, PASS_DGRAD,   N, N, N, {IN(N * N), IN(N * N), OUT(N * N)}},
    {CLASS_NARROW, OP_MM, PASS_WGRAD,   N, N, N, {IN(N * N), IN(N * N), OUT(N * N)}},
    {CLASS_START, OP_MM, PASS_FORWARD, CALIBRATE_SMALL, CALIBRATE_SMALL, CALIBRATE_SMALL,
     {IN(SMALL), IN(SMALL), NONE, OUT(SMALL)}},
    {CLASS_LONG, OP_SDPA, PASS_FORWARD, NH, T, D,
     {IN(T * Q), IN(T * Q), IN(T * Q), OUT(T * Q), OUT32(T * NH)}},
    {CLASS_LONG, OP_SDPA, PASS_DGRAD, NH, T, D,
     {IN(T * Q), IN(T * Q), IN(T * Q), IN(T * Q), IN32(T * NH), IN(T * Q), OUT(T * Q), OUT(T * Q),
      OUT(T * Q)}},
    {CLASS_SHORT, OP_SDPA, PASS_FORWARD, NH, S, D,
     {IN(S * Q), IN(S * Q), IN(S * Q), OUT(S * Q), OUT32(S * NH)}},
    {CLASS_SHORT, OP_SDPA, PASS_DGRAD, NH, S, D,
     {IN(S * Q), IN(S * Q), IN(S * Q), IN(S * Q), IN32(S * NH), IN(S * Q), OUT(S * Q), OUT(S * Q),
      OUT(S * Q)}},
    {CLASS_DELTA, OP_DELTA_RULE, PASS_FORWARD, T, NH, D,
     {IN32(T * Q), IN32(T * Q), IN(T * Q), IN32(T * Q), IN32(T * NH), OUT32(T * Q),
      OUT32(STATES)}},
    {CLASS_DELTA, OP_DELTA_RULE, PASS_DGRAD, T, NH, D,
     {IN32(T * Q), IN32(T * Q), IN(T * Q), IN32(T * Q), IN32(T * NH), IN32(STATES), IN32(T * Q),
      OUT32(T * Q), OUT32(T * Q), OUT(T * Q), OUT32(T * Q), OUT32(T * NH)}},
    {CLASS_OTHER, OP_RMS, PASS_FORWARD, 0, 0, 0, {IN(T * H), IN(H), OUT(T * H), OUT32(T)}},
    {CLASS_OTHER, OP_RMS, PASS_DGRAD, 0, 0, 0,
     {IN(T * H), IN(H), IN32(T), IN(T * H), OUT(T * H)}},
    {CLASS_OTHER, OP_RMS, PASS_WGRAD, 0, 0, 0, {IN(T * H), IN32(T), IN(T * H), OUT(H)}},
    {CLASS_OTHER, OP_SWIGLU, PASS_FORWARD, 0, 0, 0, {IN(T * F), IN(T * F), OUT(T * F)}},
    {CLASS_OTHER, OP_SWIGLU, PASS_DGRAD, 0, 0, 0,
     {IN(T * F), IN(T * F), IN(T * F), OUT(T * F), OUT(T * F)}},
    {CLASS_OTHER, OP_ADD, PASS_FORWARD, 0, 0, 0, {IN(T * H), IN(T * H), OUT(T * H)}},
    {CLASS_OTHER, OP_CROSS_ENTROPY, PASS_FORWARD, 0, 0, 0,
     {IN(T * V), IDS(T), OUT32(T), OUT32(1)}},
    {CLASS_OTHER, OP_CROSS_ENTROPY, PASS_DGRAD, 0, 0, 0,
     {IN(T * V), IDS(T), IN32(T), OUT(T * V)}},
};
/* clang-format on */
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
    const uint64_t seq = of->of == CLASS_SHORT ? S : T;
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
    for (uint8_t i = 0; i < OP_MAX_TENSORS && of->of == CLASS_OTHER; i++)
        work += of->operands[i].n * (of->operands[i].dtype == DTYPE_U8
                                         ? sizeof(int64_t)
                                         : dtype_bytes((enum dtype)of->operands[i].dtype));
    return (double)work;
}

/* ---- classes of them ---------------------------------------------------------------------------- */

static void add_case(const struct op_case *of, double seconds, struct calibrate_speed *to)
{
    const double work = work_of(of), speed = work / seconds;

    if (to->work == 0 || speed < to->slow)
        to->slow = speed;
    to->fast = fmax(to->fast, speed);
    to->work += work;
    to->seconds += seconds;
    to->all = to->work / to->seconds;
}

enum status calibrate_op_speeds(struct calibrate_speed out[CLASS_OP_N], struct err *err)
{
    char *memory = calloc(OP_MAX_TENSORS, OPERAND_BYTES);
    enum status status = STATUS_OK;

    if (!memory)
        err_out_of_memory(OP_MAX_TENSORS * OPERAND_BYTES);
    memset(out, 0, CLASS_OP_N * sizeof *out);
    for (int i = 0; i < CASE_N && status == STATUS_OK; i++) {
        double seconds = 0;
        status = time_op(&cases[i], memory, &seconds, err);
        if (status == STATUS_OK)
            add_case(&cases[i], seconds, &out[cases[i].of]);
    }
    free(memory);
    return status;
}
