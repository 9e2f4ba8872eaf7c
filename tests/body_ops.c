/*
 * What llama's bodies launch: bytes moved and floating-point operations (COST 2, 3), keys that need
 * no repeating, the bodies outside the blocks (MEMORY 4), gradient slots, sizes that are refused.
 */
#include "src/arch/arch.h"
#include "tests/body_make.h"
#include "tests/tap.h"

static struct arena arena;

/* Over the operators that are not a recompute's. */
static unsigned long long moved_bytes(const struct body_table *table, enum body_kind kind,
                                      bool backward)
{
    const struct body *body = body_of(table, kind, backward);
    unsigned long long sum = 0;
    for (uint32_t i = 0; i < body->n_op; i++)
        if (table->ops[body->op + i].pass != PASS_RECOMPUTE)
            sum += table->ops[body->op + i].bytes;
    return sum;
}

/* Bytes per token of COST 3: per hidden element, per element of q and k, per FFN element. */
static const unsigned cost_3[NATIVE][2][3] = {
    [EAGER] = {{84, 28, 10}, {160 + 18, 28, 22}},
    /* norms of 4 d and 10 d, residuals of 6 d, the rest as above */
    [EAGERFUSED] = {{2 * 4 + 2 * 6, 28, 10}, {2 * 10 + 2 * 6 + 18, 28, 22}},
    [COMPILE] = {{16, 4, 6}, {16 + 18, 4, 11}},
};

static void test_block_bytes(int profile, const struct dims *dims, const char *name)
{
    const uint64_t t = 3 * 640, q_kv = (dims->heads + dims->kv_heads) * dims->head_dim;
    for (int ac = 0; ac < AC_N; ac++) {
        struct body_table table = bodies_of(dims, 3, 640, &profiles[profile], ac, &arena);
        for (int back = 0; back < 2; back++) {
            const unsigned *each = cost_3[profile][back];
            is_int(moved_bytes(&table, BODY_BLOCK, back),
                   t * (each[0] * dims->hidden + each[1] * q_kv + each[2] * dims->intermediate),
                   "%s_%s %s: bytes of the list, %s", profiles[profile].name, ac_names[ac], name,
                   back ? "backward" : "forward");
        }
    }
}

/* The same formulas as for any linear layer: 2 m n k, twice in backward; attention 2.5 times. */
static void test_block_flops(const struct profile *profile, enum checkpointing ac)
{
    const uint64_t t = 8192, h = 4096, f = 14336;
    const uint64_t linears = 2 * t * (2 * h * h + 2 * h * 1024 + 3 * h * f);
    const uint64_t attention = 2 * 32 * t * t * 128, down = 2 * t * h * f;
    const uint64_t again[AC_N] = {[AC_FULL] = linears - down + attention,
                                  [AC_OP] = 2 * t * h * (1024 + h + f)}; /* k, o and up */
    struct body_table table = bodies_of(&llama8b, 1, t, profile, ac, &arena);
    const struct body *forward = body_of(&table, BODY_BLOCK, false);
    const struct body *backward = body_of(&table, BODY_BLOCK, true);
    is_int(forward->flops, linears + attention, "%s_%s: flops of forward", profile->name,
           ac_names[ac]);
    is_int(backward->flops, 2 * linears + 5 * attention / 2 + again[ac],
           "%s_%s: flops of backward, and of what is computed again", profile->name, ac_names[ac]);
    ok(forward->uses_gemm && backward->uses_gemm, "%s_%s: both need the workspace", profile->name,
       ac_names[ac]);
}

/* Launches by hand: linears and attention first, then what runs between them. */
static void test_block_kernels(void)
{
    static const struct {
        int profile;
        uint32_t forward, backward;
    } cases[] = {
        /* norms, RoPE, repeat, SwiGLU, residuals; in backward, sums of input gradients as well */
        {EAGER, 7 + 1 + 2 * 8 + 6 + 2 + 2 + 2, 14 + 3 + 2 * 14 + 6 + 2 + 3 + 2 + 3},
        {EAGERFUSED, 7 + 1 + 2 * 1 + 6 + 2 + 2 + 2, 14 + 3 + 2 * 2 + 6 + 2 + 3 + 2 + 3},
        /* norms, RoPE, V's expansion, product, residuals; in backward norms, RoPE, product */
        {COMPILE, 7 + 1 + 2 + 1 + 1 + 1 + 2, 14 + 3 + 2 + 1 + 1},
        /* norms, product, residuals; in backward norms, twice each, and product */
        {NATIVE, 7 + 1 + 2 + 1 + 2, 14 + 1 + 2 * 2 + 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct profile *profile = &profiles[cases[i].profile];
        struct body_table table = bodies_of(&llama8b, 1, 128, profile, AC_NONE, &arena);
        is_int(body_of(&table, BODY_BLOCK, false)->kernels, cases[i].forward,
               "%s: launches of forward", profile->name);
        is_int(body_of(&table, BODY_BLOCK, true)->kernels, cases[i].backward,
               "%s: launches of backward", profile->name);
    }
}

/* K and V go to attention as they are: no copies for query heads, no sums of their gradients. */
static void test_unrepeated_heads(const struct profile *profile, int fewer_slots)
{
    struct dims dims = llama8b;
    struct body_table repeated = bodies_of(&dims, 1, 512, profile, AC_NONE, &arena);
    dims.kv_heads = dims.heads;
    struct body_table table = bodies_of(&dims, 1, 512, profile, AC_NONE, &arena);
    int repeats = 0;
    for (uint32_t i = 0; i < table.n_op; i++)
        repeats += table.ops[i].kind == OP_REPEAT;
    is_int(repeats, 0, "%s: keys of one query head each are not repeated", profile->name);
    is_int(pair_of(&repeated, BODY_BLOCK)->n_slot - pair_of(&table, BODY_BLOCK)->n_slot,
           fewer_slots, "%s: nor are there slots for it", profile->name);
}

/* ---- outside the blocks ------------------------------------------------------------------- */

static void test_embedding(const struct body_table *table, uint64_t t, uint64_t h, uint64_t v)
{
    const struct body *forward = body_of(table, BODY_EMBEDDING, false);
    const struct body *backward = body_of(table, BODY_EMBEDDING, true);
    const struct body_pair *pair = pair_of(table, BODY_EMBEDDING);
    is_int(forward->net_bytes, 2 * t * h, "embedding leaves its output and saves nothing else");
    is_int(backward->rise_bytes, 2 * v * h + 16 * t, "its gradient is born beside the sorted ids");
    is_int(backward->net_bytes, (long long)(2 * v * h) - (long long)(2 * t * h),
           "the output's gradient dies for the parameter's");
    ok(!pair->has_d_in && !pair->in_dies_in_forward && !pair->in_dies_in_backward,
       "the ids have no gradient and outlive the embedding");
    is_int(moved_bytes(table, BODY_EMBEDDING, false), 12 * t * h, "embedding's bytes, forward");
    is_int(moved_bytes(table, BODY_EMBEDDING, true), 8 * t * h + 6 * v * h, "and backward");
}

static void test_final_norm(const struct profile *profile)
{
    const uint64_t t = 512, h = llama8b.hidden;
    struct body_table table = bodies_of(&llama8b, 1, t, profile, AC_FULL, &arena);
    const struct body_pair *pair = pair_of(&table, BODY_NORM);
    bool fused = profile->norm == NORM_FUSED;
    is_int(body_of(&table, BODY_NORM, false)->net_bytes, (fused ? 2 : 6) * t * h + 4 * t,
           "%s: final norm keeps %s", profile->name,
           fused ? "its output, input and rstd" : "copies in place of its input");
    ok(pair->in_dies_in_backward == fused && pair->in_dies_in_forward == !fused,
       "%s: and so its input dies in %s", profile->name, fused ? "backward" : "forward");
    ok(pair->has_d_in && !pair->d_in_place, "%s: its gradient is a new buffer", profile->name);
    is_int(moved_bytes(&table, BODY_NORM, false), t * h * (fused ? 4 : 36),
           "%s: its bytes are one norm's, forward", profile->name);
    is_int(moved_bytes(&table, BODY_NORM, true), t * h * (fused ? 10 : 80), "%s: and backward",
           profile->name);
}

static void test_head(const struct body_table *table, uint64_t t, uint64_t h, uint64_t v)
{
    const struct body *forward = body_of(table, BODY_HEAD, false);
    const struct body *backward = body_of(table, BODY_HEAD, true);
    is_int(forward->net_bytes, 2 * t * v, "head leaves bf16 logits");
    is_int(backward->rise_bytes, 2 * t * h + 2 * v * h, "its backward holds dn and dW");
    is_int(backward->net_bytes, (long long)(2 * v * h) - (long long)(2 * t * v),
           "then its input and the gradient of the logits die");
    is_int(backward->flops, 4 * t * v * h, "its backward is two products");
    ok(pair_of(table, BODY_HEAD)->in_dies_in_backward, "its input is saved");
}

static void test_loss(const struct body_table *table, uint64_t t, uint64_t v)
{
    const struct body *forward = body_of(table, BODY_LOSS, false);
    const struct body *backward = body_of(table, BODY_LOSS, true);
    const struct body_pair *pair = pair_of(table, BODY_LOSS);
    is_int(forward->rise_bytes, 8 * t * v, "loss holds fp32 logits and log-probabilities");
    is_int(forward->net_bytes, 2 * t * v, "it keeps the latter and drops the bf16 logits");
    is_int(4 * t * v + backward->rise_bytes, 12 * t * v, "its backward peaks at 12 bytes a logit");
    is_int(4 * t * v + backward->net_bytes, 2 * t * v, "and leaves a bf16 gradient");
    is_int(moved_bytes(table, BODY_LOSS, false), 14 * t * v, "cross-entropy's bytes, forward");
    is_int(moved_bytes(table, BODY_LOSS, true), 22 * t * v, "and backward");
    ok(pair->n_grad == 0 && slot_of(table, BODY_LOSS, SLOT_OUT)->bytes == 0 &&
           !forward->uses_gemm && !backward->uses_gemm,
       "it has no parameters, no output that is kept and no products");
    int others = 0;
    for (uint32_t slot = SLOT_GRAD; slot < pair->n_slot; slot++)
        others += slot_of(table, BODY_LOSS, slot)->memory_class != CLASS_LOGITS;
    is_int(others, 0, "all that it holds is of the class of logits");
}

/* ---- dtype of compute --------------------------------------------------------------------- */

static struct body_table bodies_in(enum dtype compute, const struct profile *profile)
{
    const struct body_options options = {
        1, 512, compute, profile->ops, profile->norm, .ac = AC_NONE};
    return default_bodies(&arch_llama, &llama8b, &options, &arena);
}

static int count_ops(const struct body_table *table, enum op_kind kind)
{
    int n = 0;
    for (uint32_t i = 0; i < table->n_op; i++)
        n += table->ops[i].kind == kind;
    return n;
}

/* Statistics are FP32 always; what eager PyTorch casts to FP32 it has in FP32 already. */
static void test_compute_dtype(const struct profile *profile)
{
    const uint64_t t = 512, h = llama8b.hidden, f = llama8b.intermediate;
    const uint64_t statistics = 8 * t + 4 * t * llama8b.heads;
    struct body_table bf16 = bodies_in(DTYPE_BF16, profile), fp16 = bodies_in(DTYPE_FP16, profile);
    struct body_table fp32 = bodies_in(DTYPE_FP32, profile);
    const struct events events = events_of(&fp32, BODY_BLOCK);
    /* of a composite norm the scaled input as well; compiled, one tensor of the MLP less */
    const uint64_t norms = profile->norm == NORM_COMPOSITE ? 20 : 12;
    const uint64_t mlp = profile->ops == OPS_TORCH_COMPILE ? 12 : 16;
    const uint64_t saved = statistics + t * ((norms + 16) * h + mlp * f);
    is_int(extremes_of(&events, false, false).net - (long long)(4 * t * h), saved,
           "%s: a block in FP32 saves twice as much, but for casts and statistics", profile->name);
    is_int(count_ops(&fp32, OP_TO), 0, "%s: and casts nothing", profile->name);
    is_int(count_ops(&fp16, OP_TO), count_ops(&bf16, OP_TO), "%s: in FP16 it casts as in BF16",
           profile->name);
    is_int(body_of(&fp16, BODY_BLOCK, true)->rise_bytes,
           body_of(&bf16, BODY_BLOCK, true)->rise_bytes, "%s: and takes the same", profile->name);
    is_int(body_of(&fp32, BODY_HEAD, false)->net_bytes, 4 * t * llama8b.vocab,
           "%s: logits have the dtype of compute", profile->name);
    is_int(body_of(&fp32, BODY_LOSS, false)->rise_bytes, 4 * t * llama8b.vocab,
           "%s: and the loss makes no copy of them", profile->name);
    is_int(moved_bytes(&fp32, BODY_LOSS, true), 16 * t * llama8b.vocab, "%s: nor moves one",
           profile->name);
}

/* ---- gradients and limits ----------------------------------------------------------------- */

/* Grad slot i of a piece is the gradient of its i-th parameter, in BF16. */
static void test_grad_slots(const char *name)
{
    const struct body_options options = {1,          128,          DTYPE_BF16, OPS_TORCH_EAGER,
                                         NORM_FUSED, .ac = AC_NONE};
    struct model model;
    struct body_table table;
    struct err err = {0};
    if (model_open(name, 1, &arena, &model, &err) ||
        body_table_build(&model, default_policy(&model, &arena), &options, &arena, &table, &err))
        tap_bail(err.text);
    int wrong = 0;
    for (uint32_t p = 0; p < model.n_piece; p++) {
        const struct piece *piece = &model.pieces[p];
        wrong += pair_of(&table, piece->kind)->n_grad != piece->n_param;
        for (uint32_t i = 0; i < piece->n_param; i++)
            wrong += slot_of(&table, piece->kind, SLOT_GRAD + i)->bytes !=
                     2 * model.params[model.piece_params[piece->param + i]].numel;
    }
    is_int(wrong, 0, "%s: gradients have the order and the sizes of the pieces' parameters", name);
}

static void test_too_large(void)
{
    static const struct {
        uint64_t batch, seq;
        const char *what;
    } cases[] = {{UINT64_C(1) << 40, UINT64_C(1) << 40, "tokens"},
                 {1, UINT64_C(1) << 50, "bytes of a tensor"},
                 {1, UINT64_C(1) << 31, "operations of attention"}};
    struct model model;
    arch_llama.build(&llama8b, &arena, &model, NULL);
    model.arch = &arch_llama;
    model.dims = llama8b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct body_options options = {.batch = cases[i].batch, .seq = cases[i].seq};
        struct body_table table = {.n_pair = 77};
        struct err err = {0};
        is_int(body_table_build(&model, default_policy(&model, &arena), &options, &arena, &table,
                                &err),
               STATUS_INPUT, "too many %s are refused", cases[i].what);
        tap_note("%s", err.text);
        is_int(table.n_pair, 77, "and nothing is handed out");
    }
}

int main(void)
{
    static const int repeat_slots[NATIVE] = {[EAGER] = 4, [EAGERFUSED] = 4, [COMPILE] = 3};
    for (int i = 0; i < PROFILE_N; i++)
        for (int ac = 0; ac < AC_N; ac++)
            test_block_flops(&profiles[i], (enum checkpointing)ac);
    for (int i = 0; i < NATIVE; i++) { /* of which the specs have lists */
        test_block_bytes(i, &llama8b, "8b");
        test_block_bytes(i, &llama7b, "7b");
        test_unrepeated_heads(&profiles[i], repeat_slots[i]);
        test_final_norm(&profiles[i]);
        test_compute_dtype(&profiles[i]);
    }
    test_block_kernels();
    struct body_table table = bodies_of(&llama8b, 2, 512, &profiles[EAGERFUSED], AC_NONE, &arena);
    test_embedding(&table, 1024, llama8b.hidden, llama8b.vocab);
    test_head(&table, 1024, llama8b.hidden, llama8b.vocab);
    test_loss(&table, 1024, llama8b.vocab);
    test_grad_slots("llama3-8b");
    test_grad_slots("llama2-7b");
    test_too_large();
    arena_release(&arena);
    return tap_done();
}
