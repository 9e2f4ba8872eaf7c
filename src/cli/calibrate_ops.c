/*
 * How fast the operators of gpu/ops.h are on a device; see calibrate.h.
 *
 * Each runs in a row on the stream that computes. Its speed is its work, as the price counts it
 * (sim/cost_formula.h), by that time: what it costs to hand an operator over is in it, as in a step.
 */
#include <math.h>
#include <string.h>

#include "src/cli/calibrate.h"

/* A size of a case: one of struct calibrate_sizes, or what follows from them. */
enum dim {
    ONE,
    T,
    S, /* the short sequence */
    H,
    F,
    V,
    NH,
    D,
    Q, /* heads * d */
    N, /* narrow */
    SMALL,
    GT,
    GH,
    GF,
    CHUNKS, /* of a sequence, for the delta rule */
    WIDTH,  /* of a short convolution */
    DIM_N
};

struct operand_size {
    uint8_t a, b, c; /* enum dim, multiplied; all 0: absent */
    uint8_t dtype, mode;
    bool is_there;
};
/* clang-format off */
/* A case's operands: read, written, BF16 or FP32; ids of eight bytes; none. */
#define IN(a, b)     {a, b, ONE, DTYPE_BF16, OP_READ, true}
#define OUT(a, b)    {a, b, ONE, DTYPE_BF16, OP_WRITE, true}
#define IN32(a, b)   {a, b, ONE, DTYPE_FP32, OP_READ, true}
#define OUT32(a, b)  {a, b, ONE, DTYPE_FP32, OP_WRITE, true}
#define STATES(mode) {CHUNKS, Q, D, DTYPE_FP32, mode, true}
#define IDS(a)       {a, ONE, ONE, DTYPE_U8, OP_READ, true}
#define NONE         {ONE, ONE, ONE, DTYPE_BF16, OP_READ, false}
/* clang-format on */

struct op_case {
    uint8_t of, kind, pass; /* enum calibrate_class, op_kind, op_pass */
    uint8_t m, n, k;        /* enum dim; ONE: the operator has none */
    struct operand_size operands[OP_MAX_TENSORS];
};

/* clang-format off */
static const struct op_case cases[] = {
    {CLASS_GEMM, OP_MM, PASS_FORWARD, GT, GF, GH, {IN(GT, GH), IN(GF, GH), NONE, OUT(GT, GF)}},
    {CLASS_GEMM, OP_MM, PASS_DGRAD,   GT, GH, GF, {IN(GT, GF), IN(GF, GH), OUT(GT, GH)}},
    {CLASS_GEMM, OP_MM, PASS_WGRAD,   GF, GH, GT, {IN(GT, GF), IN(GT, GH), OUT(GF, GH)}},
    {CLASS_NARROW, OP_MM, PASS_FORWARD, N, N, N, {IN(N, N), IN(N, N), NONE, OUT(N, N)}},
    {CLASS_NARROW, OP_MM, PASS_DGRAD,   N, N, N, {IN(N, N), IN(N, N), OUT(N, N)}},
    {CLASS_NARROW, OP_MM, PASS_WGRAD,   N, N, N, {IN(N, N), IN(N, N), OUT(N, N)}},
    {CLASS_START, OP_MM, PASS_FORWARD, SMALL, SMALL, SMALL,
     {IN(SMALL, SMALL), IN(SMALL, SMALL), NONE, OUT(SMALL, SMALL)}},
    {CLASS_LONG, OP_SDPA, PASS_FORWARD, NH, T, D,
     {IN(T, Q), IN(T, Q), IN(T, Q), OUT(T, Q), OUT32(T, NH)}},
    {CLASS_LONG, OP_SDPA, PASS_DGRAD, NH, T, D,
     {IN(T, Q), IN(T, Q), IN(T, Q), IN(T, Q), IN32(T, NH), IN(T, Q), OUT(T, Q), OUT(T, Q),
      OUT(T, Q)}},
    {CLASS_SHORT, OP_SDPA, PASS_FORWARD, NH, S, D,
     {IN(S, Q), IN(S, Q), IN(S, Q), OUT(S, Q), OUT32(S, NH)}},
    {CLASS_SHORT, OP_SDPA, PASS_DGRAD, NH, S, D,
     {IN(S, Q), IN(S, Q), IN(S, Q), IN(S, Q), IN32(S, NH), IN(S, Q), OUT(S, Q), OUT(S, Q),
      OUT(S, Q)}},
    {CLASS_DELTA, OP_DELTA_RULE, PASS_FORWARD, S, NH, D,
     {IN32(S, Q), IN32(S, Q), IN(S, Q), IN32(S, Q), IN32(S, NH), OUT32(S, Q), STATES(OP_WRITE)}},
    {CLASS_DELTA, OP_DELTA_RULE, PASS_DGRAD, S, NH, D,
     {IN32(S, Q), IN32(S, Q), IN(S, Q), IN32(S, Q), IN32(S, NH), STATES(OP_READ), IN32(S, Q),
      OUT32(S, Q), OUT32(S, Q), OUT(S, Q), OUT32(S, Q), OUT32(S, NH)}},
    {CLASS_OTHER, OP_RMS, PASS_FORWARD, ONE, ONE, ONE,
     {IN(T, H), IN(H, ONE), OUT(T, H), OUT32(T, ONE)}},
    {CLASS_OTHER, OP_RMS, PASS_DGRAD, ONE, ONE, ONE,
     {IN(T, H), IN(H, ONE), IN32(T, ONE), IN(T, H), OUT(T, H)}},
    {CLASS_OTHER, OP_RMS, PASS_WGRAD, ONE, ONE, ONE,
     {IN(T, H), IN32(T, ONE), IN(T, H), OUT(H, ONE)}},
    {CLASS_OTHER, OP_SWIGLU, PASS_FORWARD, ONE, ONE, ONE, {IN(T, F), IN(T, F), OUT(T, F)}},
    {CLASS_OTHER, OP_SWIGLU, PASS_DGRAD, ONE, ONE, ONE,
     {IN(T, F), IN(T, F), IN(T, F), OUT(T, F), OUT(T, F)}},
    {CLASS_OTHER, OP_ADD, PASS_FORWARD, ONE, ONE, ONE, {IN(T, H), IN(T, H), OUT(T, H)}},
    {CLASS_OTHER, OP_SHORT_CONV, PASS_FORWARD, ONE, ONE, ONE,
     {IN(T, Q), IN(Q, WIDTH), OUT(T, Q)}},
    {CLASS_OTHER, OP_SHORT_CONV, PASS_DGRAD, ONE, ONE, ONE,
     {IN(T, Q), IN(Q, WIDTH), IN(T, Q), OUT(T, Q)}},
    {CLASS_OTHER, OP_CROSS_ENTROPY, PASS_FORWARD, ONE, ONE, ONE,
     {IN(T, V), IDS(T), OUT32(T, ONE), OUT32(ONE, ONE)}},
    {CLASS_OTHER, OP_CROSS_ENTROPY, PASS_DGRAD, ONE, ONE, ONE,
     {IN(T, V), IDS(T), IN32(T, ONE), OUT(T, V)}},
};
/* clang-format on */
enum { CASE_N = sizeof cases / sizeof *cases };

static const double ROPE_BASE = 10000;

static void set_dims(const struct calibrate_sizes *sizes, uint64_t out[DIM_N])
{
    const uint64_t chunks = (sizes->short_t + DELTA_CHUNK - 1) / DELTA_CHUNK;
    const uint64_t dims[DIM_N] = {
        [ONE] = 1,           [T] = sizes->t,         [S] = sizes->short_t,
        [H] = sizes->h,      [F] = sizes->f,         [V] = sizes->v,
        [NH] = sizes->nh,    [D] = sizes->d,         [Q] = sizes->nh * sizes->d,
        [N] = sizes->narrow, [SMALL] = sizes->small, [GT] = sizes->g_t,
        [GH] = sizes->g_h,   [GF] = sizes->g_f,      [CHUNKS] = chunks,
        [WIDTH] = 4};
    memcpy(out, dims, sizeof dims);
}

static uint64_t elements_of(const struct operand_size *size, const uint64_t dims[DIM_N])
{
    return size->is_there ? dims[size->a] * dims[size->b] * dims[size->c] : 0;
}

/* Ids are of eight bytes. */
static uint64_t bytes_of(const struct operand_size *size, const uint64_t dims[DIM_N])
{
    const uint64_t each =
        size->dtype == DTYPE_U8 ? sizeof(int64_t) : dtype_bytes((enum dtype)size->dtype);
    return elements_of(size, dims) * each;
}

/* ---- one operator -------------------------------------------------------------------------------- */

/* At random, since what a GPU draws depends on the bits: small numbers in BF16; in FP32 small negative
   ones, which decays have to be; ids are 0. */
static enum status fill(void *context, uint32_t step, uint64_t what, void *to, uint64_t bytes,
                        struct err *err)
{
    const struct operand_size *size = context;
    const uint64_t exponents =
        size->dtype == DTYPE_FP32 ? UINT64_C(0xbc000000bc000000) : UINT64_C(0x3c003c003c003c00);
    const uint64_t bits =
        size->dtype == DTYPE_FP32 ? UINT64_C(0x01ffffff01ffffff) : UINT64_C(0x81ff81ff81ff81ff);
    uint64_t state = what + 1;

    (void)step, (void)err;
    memset(to, 0, bytes);
    for (uint64_t at = 0; at + sizeof state <= bytes && size->dtype != DTYPE_U8;
         at += sizeof state) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t numbers = exponents | ((state ^ state >> 33) & bits);
        memcpy((char *)to + at, &numbers, sizeof numbers);
    }
    return STATUS_OK;
}

static enum status put_operands(struct timed_device *timed, const struct op_case *of,
                                const uint64_t dims[DIM_N], struct op_call *call, struct err *err)
{
    enum status status = STATUS_OK;

    for (uint8_t i = 0; i < OP_MAX_TENSORS && status == STATUS_OK; i++) {
        const struct operand_size *size = &of->operands[i];
        const uint64_t bytes = bytes_of(size, dims);
        void *at = NULL;
        if (bytes == 0)
            continue;
        status = timed_take(timed, bytes, &at, err);
        if (status == STATUS_OK)
            status = timed_give(timed, at, bytes, fill, (void *)(uintptr_t)size, err);
        call->tensors[i] = (struct op_tensor){
            .at = at, .n = elements_of(size, dims), .dtype = size->dtype, .mode = size->mode};
        call->n_tensor = (uint8_t)(i + 1);
    }
    return status;
}

/* What the work points to is in the device's arena. */
static enum status prepare_op(struct timed_device *timed, const struct op_case *of,
                              const uint64_t dims[DIM_N], struct work *out, struct err *err)
{
    const bool is_short = of->of == CLASS_SHORT || of->of == CLASS_DELTA;
    struct op_shape *shape = arena_array(&timed->arena, struct op_shape, 1);
    struct op_call *call = arena_array(&timed->arena, struct op_call, 1);

    *shape = (struct op_shape){.batch = 1,
                               .seq = is_short ? dims[S] : dims[T],
                               .heads = dims[NH],
                               .kv_heads = dims[NH],
                               .head_dim = dims[D],
                               .vocab = dims[V],
                               .rope_base = ROPE_BASE};
    *call = (struct op_call){.kind = of->kind,
                             .pass = of->pass,
                             .m = dims[of->m],
                             .n = dims[of->n],
                             .k = dims[of->k],
                             .shape = shape,
                             .state = timed->state};
    *out = (struct work){.kind = WORK_OP, .n = 1, .state = timed->state, .is.op = call};
    const enum status status = put_operands(timed, of, dims, call, err);
    return status == STATUS_OK ? timed->ops->prepare(timed->self, out, err) : status;
}

enum status calibrate_product(struct timed_device *timed, const struct calibrate_sizes *sizes,
                              struct work *out, struct err *err)
{
    uint64_t dims[DIM_N];

    set_dims(sizes, dims);
    return prepare_op(timed, &cases[0], dims, out, err);
}

static enum status time_op(struct timed_device *timed, const struct op_case *of,
                           const uint64_t dims[DIM_N], double *seconds, struct err *err)
{
    struct work work;

    timed_reset(timed);
    enum status status = prepare_op(timed, of, dims, &work, err);
    if (status == STATUS_OK)
        status = timed_run(timed, &work, 1, seconds, err);
    if (status != STATUS_OK)
        err_prefix(err, "operator '%s'", op_kind_name((enum op_kind)of->kind));
    return status;
}

/* What the price takes for its work: FLOP, of attention those of forward, or bytes. */
static double work_of(const struct op_case *of, const uint64_t dims[DIM_N])
{
    const struct op op = {
        .kind = of->kind, .pass = of->pass, .m = dims[of->m], .n = dims[of->n], .k = dims[of->k]};
    const double backward = of->pass == PASS_FORWARD ? 1 : 2.94; /* ATTENTION_BACKWARD */
    uint64_t work = 0;

    if (of->of == CLASS_LONG || of->of == CLASS_SHORT)
        return 2 * backward * (double)(op.m * op.n * op.n * op.k);
    op_flops(&op, &work);
    for (uint8_t i = 0; i < OP_MAX_TENSORS && of->of == CLASS_OTHER; i++)
        work += bytes_of(&of->operands[i], dims);
    return (double)work;
}

/* ---- classes of them ---------------------------------------------------------------------------- */

static void add_case(double work, double seconds, struct calibrate_speed *to)
{
    const double speed = work / seconds;

    if (to->work == 0 || speed < to->slow)
        to->slow = speed;
    to->fast = fmax(to->fast, speed);
    to->work += work;
    to->seconds += seconds;
    to->all = to->work / to->seconds;
}

enum status calibrate_ops(struct timed_device *timed, const struct calibrate_sizes *sizes,
                          struct calibrate_speed out[CLASS_OP_N], struct err *err)
{
    uint64_t dims[DIM_N];
    enum status status = STATUS_OK;

    set_dims(sizes, dims);
    memset(out, 0, CLASS_OP_N * sizeof *out);
    for (int i = 0; i < CASE_N && status == STATUS_OK; i++) {
        double seconds = 0;
        status = time_op(timed, &cases[i], dims, &seconds, err);
        if (status == STATUS_OK)
            add_case(work_of(&cases[i], dims), seconds, &out[cases[i].of]);
    }
    return status;
}
