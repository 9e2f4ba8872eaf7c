/*
 * Kinds of attention kernels, losses, optimizers and products: what each costs beside the usual one,
 * what it keeps, and where it is refused. Numbers: spec COST 2 and 3, MEMORY 4.
 */
#include <math.h>
#include <string.h>

#include "sim/cost.h"
#include "sim/cost_formula.h"
#include "src/arch/arch.h"
#include "tests/body_make.h"
#include "tests/make.h"
#include "tests/tap.h"

static struct arena arena;

static struct cluster open_cluster(const char *name)
{
    struct cluster cluster;
    struct err err = {0};
    if (cluster_open(name, &arena, &cluster, &err))
        tap_bail(err.text);
    return cluster;
}

/* ---- losses -------------------------------------------------------------------------------- */

enum { TOKENS = 64, WORDS = 4096 };

/* Bytes of logits' size alive at once, with the logits that forward is given. */
static uint64_t loss_peak(const struct body_table *table)
{
    const struct body_pair *pair = &table->pairs[table->of_loss];
    const struct body *forward = &table->bodies[pair->forward];
    const struct body *backward = &table->bodies[pair->backward];
    const int64_t given = (int64_t)table->slots[pair->slot + SLOT_IN].bytes;
    const int64_t in_backward = given + forward->net_bytes + (int64_t)backward->rise_bytes;
    const int64_t in_forward = given + (int64_t)forward->rise_bytes;
    return (uint64_t)(in_backward > in_forward ? in_backward : in_forward);
}

static uint64_t bytes_moved(const struct body_table *table, uint32_t body)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < table->bodies[body].n_op; i++)
        sum += table->ops[table->bodies[body].op + i].bytes;
    return sum;
}

static void test_losses(void)
{
    static const struct {
        enum loss_kind loss;
        const char *name;
        uint64_t peak, forward, backward; /* bytes a token and word */
    } cases[] = {
        {LOSS_EAGER, "eager", 12, 14, 22},        {LOSS_EAGER_MODEL, "eager-model", 16, 14, 22},
        {LOSS_EAGER_BF16, "eager-bf16", 8, 4, 8}, {LOSS_FUSED, "fused", 4, 2, 6},
        {LOSS_COMPILED, "compiled", 4, 2, 6},
    };
    struct dims dims = llama8b;

    dims.vocab = WORDS;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct body_options options = {
            .batch = 1, .seq = TOKENS, .compute = DTYPE_BF16, .loss = cases[i].loss};
        const struct body_table table = default_bodies(&arch_llama, &dims, &options, &arena);
        const struct body_pair *pair = &table.pairs[table.of_loss];
        const uint64_t row = (uint64_t)TOKENS * WORDS;
        is_int(loss_peak(&table) / row, cases[i].peak, "%s: %d bytes a token and word at its peak",
               cases[i].name, (int)cases[i].peak);
        is_int(bytes_moved(&table, pair->forward) / row, cases[i].forward, "%s moves %d forward",
               cases[i].name, (int)cases[i].forward);
        is_int(bytes_moved(&table, pair->backward) / row, cases[i].backward, "%s moves %d backward",
               cases[i].name, (int)cases[i].backward);
    }
}

/* Of whatever loss there is, behind it, a metric has logits, and lets them live. */
static void test_metric(void)
{
    const uint64_t row = (uint64_t)TOKENS * WORDS;
    struct dims dims = llama8b;

    dims.vocab = WORDS;
    for (enum loss_kind loss = 0; loss < LOSS_N; loss++) {
        const struct body_options options = {
            .batch = 1, .seq = TOKENS, .compute = DTYPE_BF16, .loss = loss, .train_metrics = 2};
        const struct body_table table = default_bodies(&arch_llama, &dims, &options, &arena);
        const struct body_pair *of_loss = &table.pairs[table.of_loss];
        const struct body_pair *pair = &table.pairs[table.of_metric];
        const struct body *forward = &table.bodies[pair->forward];
        ok(!of_loss->in_dies_in_forward && !of_loss->in_dies_in_backward &&
               !pair->in_dies_in_forward && !pair->in_dies_in_backward,
           "loss %u and metric leave the logits to their caller", loss);
        is_int(bytes_moved(&table, pair->forward) / row, 10,
               "log_softmax moves 2 bytes there and back, the cast of its result 6");
        is_int(forward->rise_bytes / row, 6, "both results are alive at once");
        is_int((uint64_t)forward->net_bytes, 0, "and neither in the end");
        is_int(table.bodies[pair->backward].n_tape, 0, "for no backward");
    }
}

/* Activations of FP32 are cast by nobody, and the logits that are not cast are not freed either. */
static void test_metric_of_fp32(void)
{
    const struct body_options options = {
        .batch = 1, .seq = TOKENS, .compute = DTYPE_FP32, .train_metrics = 1};
    const struct body_table table = default_bodies(&arch_llama, &llama8b, &options, &arena);
    const struct body_pair *pair = &table.pairs[table.of_metric];
    const struct body *forward = &table.bodies[pair->forward];

    is_int(bytes_moved(&table, pair->forward), 8 * TOKENS * llama8b.vocab,
           "in FP32 log_softmax moves 4 bytes there and back");
    is_int(forward->rise_bytes, 4 * TOKENS * llama8b.vocab, "its result is all that is made");
    is_int((uint64_t)forward->net_bytes, 0, "and given back");
}

/* ---- attention and FP8 --------------------------------------------------------------------- */

static double attention_s(const struct cluster *cluster, enum attention attention, double head_dim)
{
    const struct plan_options options = {.attention = attention};
    const struct cost_rates rates = cost_rates_of(cluster, SPREAD_MID, &options);
    return cost_attention_s(&rates, 64, 2048, head_dim);
}

static void test_attention(const struct cluster *h100, const struct cluster *a100)
{
    is_near(attention_s(h100, ATTENTION_TRITON_2023, 128) / attention_s(h100, ATTENTION_SDPA, 128),
            0.55 / 0.322, 1e-9, "H100: the kernel of 2023 takes 1.7 times the next one's forward");
    is_near(attention_s(a100, ATTENTION_TRITON_2023, 128) / attention_s(a100, ATTENTION_SDPA, 128),
            0.9 / 0.645, 1e-9, "A100: 1.4 times");
    ok(attention_s(h100, ATTENTION_FA3, 128) < 0.7 * attention_s(h100, ATTENTION_SDPA, 128),
       "FlashAttention 3 is faster");
    is_near(attention_s(h100, ATTENTION_TRITON_2023, 64),
            attention_s(h100, ATTENTION_TRITON_2023, 128) / 2, 1e-9,
            "narrow heads cost the kernel of 2023 nothing");
    ok(attention_s(h100, ATTENTION_SDPA, 64) > 0.6 * attention_s(h100, ATTENTION_SDPA, 128),
       "but later ones do");
}

static void test_fp8(const struct cluster *h100)
{
    const struct cost_rates r = cost_rates_at(h100, SPREAD_MID);
    const double m = 16384, n = 4096, k = 14336;
    struct op op = {.kind = OP_MM, .m = 16384, .n = 4096, .k = 14336};
    const double product_s =
        r.gemm_start_s + 2 * m * n * (k + r.gemm_k0) / (1979e12 * 0.62 * r.fp8_derate);
    const double bytes_s = r.memory_slowdown * m * k / (3.35e12 * 0.8);
    static const struct {
        enum op_pass pass;
        double bytes, factor;
        const char *what;
    } cases[] = {{PASS_FORWARD, 5, 1, "forward casts its input"},
                 {PASS_DGRAD, 7, 1, "the gradient of the input casts that of the output"},
                 {PASS_WGRAD, 2, 1.04, "that of the weight transposes the input"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op.pass = cases[i].pass;
        is_near(cost_op_fp8_s(&r, &op), cases[i].factor * product_s + cases[i].bytes * bytes_s,
                1e-9, "%s: %g bytes an element", cases[i].what, cases[i].bytes);
    }
    op = (struct op){.kind = OP_GELU, .bytes = 1000000};
    is_near(cost_op_fp8_s(&r, &op), cost_op_s(&r, &op), 1e-12, "other operators cost the same");
}

/* ---- products in FP32 ---------------------------------------------------------------------- */

static void test_fp32(const struct cluster *h100)
{
    static const struct {
        bool tf32;
        double tflops;
    } cases[] = {{false, 67}, {true, 494.5}};
    const double m = 16384, n = 4096, k = 14336;
    const struct op op = {.kind = OP_MM, .m = 16384, .n = 4096, .k = 14336};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct plan_options options = {.tf32 = cases[i].tf32,
                                             .policy = {.param = DTYPE_FP32}};
        const struct cost_rates r = cost_rates_of(h100, SPREAD_MID, &options);
        is_near(cost_op_s(&r, &op),
                2.4e-6 + 2 * m * n * (k + 120) / (cases[i].tflops * 1e12 * 0.783 * 0.85), 1e-9,
                "%g TFLOP/s at the share that bf16 reaches", cases[i].tflops);
        is_near(cost_gemm_s(&r, 1, n, k), 2.4e-6 + (k + n * k + n) * 4 / (0.8 * 3.35e12), 1e-9,
                "or four bytes an element at the bandwidth");
    }
}

/* ---- whole programs ------------------------------------------------------------------------ */

static int64_t price_of(const struct made *made, const struct cluster *cluster, enum task_kind kind,
                        const char *unit)
{
    struct prices prices;
    struct err err = {0};
    if (cost_price(cluster, SPREAD_MID, &made->program, &arena, &prices, &err))
        tap_bail(err.text);
    for (uint32_t t = 0; t < made->program.n_task; t++) {
        const struct task *task = &made->program.tasks[t];
        const char *name = task->unit == NO_UNIT ? "" : made->plan.units[task->unit].name;
        if (task->kind == kind && (!unit || strstr(name, unit)))
            return prices.task_ns[t];
    }
    return -1;
}

static uint64_t hash_and_price(const struct plan_options *options, const struct cluster *cluster,
                               int64_t *block_ns, int64_t *head_ns)
{
    struct made made;
    make_init(&made, "llama3-8b", 2, options);
    const uint64_t hash = program_hash(&made.program);
    *block_ns = price_of(&made, cluster, TASK_FORWARD, "layers.0");
    *head_ns = price_of(&made, cluster, TASK_FORWARD, "lm_head");
    make_release(&made);
    return hash;
}

/* What changes times alone leaves the program as it is. */
static void test_cost_only(const struct cluster *h100)
{
    struct plan_options options = plan_options_default();
    int64_t block_ns, head_ns, block_fp8_ns, head_fp8_ns, other_ns;
    const uint64_t hash = hash_and_price(&options, h100, &block_ns, &head_ns);

    options.linear_fp8 = true;
    is_int(hash_and_price(&options, h100, &block_fp8_ns, &head_fp8_ns), hash,
           "products in FP8 are the same program");
    ok(block_fp8_ns < block_ns, "blocks get faster (%lld of %lld ns)", (long long)block_fp8_ns,
       (long long)block_ns);
    is_int(head_fp8_ns, head_ns, "the head stays in BF16");
    options.linear_fp8 = false;
    options.attention = ATTENTION_TRITON_2023;
    is_int(hash_and_price(&options, h100, &other_ns, &head_ns), hash,
           "another attention kernel is the same program");
    ok(other_ns > block_ns, "and costs another time");
}

static struct buffer update_temp(const struct program *program)
{
    for (uint32_t b = 0; b < program->n_buffer; b++)
        if (program->buffers[b].role == ROLE_UPDATE_TEMP)
            return program->buffers[b];
    return (struct buffer){0};
}

static uint32_t update_kernels(const struct program *program)
{
    for (uint32_t t = 0; t < program->n_task; t++)
        if (program->tasks[t].kind == TASK_OPTIMIZER)
            return program->tasks[t].kernels;
    return 0;
}

/* Three microseconds a launch, and its bytes; of 75 tensors. */
static void test_optimizers(const struct cluster *h100)
{
    static const struct {
        enum optimizer optimizer;
        const char *name;
        double moved;
        int kernels;
        bool all;
        uint32_t temps;
    } cases[] = {{OPTIMIZER_ADAMW, "fused", 28, 3, false, 0},
                 {OPTIMIZER_ADAMW_FOREACH, "foreach", 84, 12, true, 75},
                 {OPTIMIZER_ADAMW_COMPOSER, "in a loop", 92, 13 * 75, false, 2}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = plan_options_default();
        struct made made;
        options.optimizer = cases[i].optimizer;
        make_init(&made, "llama3-8b", 8, &options);
        const double shard = (double)made.model.n_element / 8;
        is_int(update_kernels(&made.program), cases[i].kernels, "AdamW %s: %d launches",
               cases[i].name, cases[i].kernels);
        is_near((double)price_of(&made, h100, TASK_OPTIMIZER, NULL) * 1e-9,
                cases[i].kernels * 3e-6 + cases[i].moved * shard / (3.35e12 * 0.8), 1e-4,
                "AdamW %s moves %g bytes an element", cases[i].name, cases[i].moved);
        const uint64_t temp = update_temp(&made.program).bytes;
        is_int(update_temp(&made.program).n_member, cases[i].temps, "%s: %u tensors beside states",
               cases[i].name, cases[i].temps);
        if (cases[i].all)
            is_near((double)temp, 4 * shard, 1e-6, "%s: a temporary of all shards", cases[i].name);
        else if (cases[i].optimizer == OPTIMIZER_ADAMW_COMPOSER)
            is_int(temp, 2 * 4 * made.model.params[0].numel / 8, "%s: two of the largest shard",
                   cases[i].name);
        else
            is_int(temp, 0, "%s: none", cases[i].name);
        make_release(&made);
    }
}

/* More than 16 bits hold: a loop over many tensors, and one layer more takes longer. */
static void test_many_launches(const struct cluster *h100)
{
    int64_t ns[2];

    for (uint64_t i = 0; i < 2; i++) {
        const struct dims small = {.layers = 559 + i,
                                   .hidden = 8,
                                   .intermediate = 8,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .head_dim = 4,
                                   .vocab = 16,
                                   .default_seq = 8};
        struct plan_options options = plan_options_default();
        struct made made;
        options.optimizer = OPTIMIZER_ADAMW_COMPOSER;
        make_init_dims(&made, &small, &options);
        is_int(update_kernels(&made.program), 13 * (9 * (559 + i) + 3), "%d layers in a loop",
               (int)(559 + i));
        ns[i] = price_of(&made, h100, TASK_OPTIMIZER, NULL);
        make_release(&made);
    }
    ok(ns[1] > ns[0], "one layer more costs more: %lld us", (long long)(ns[1] - ns[0]) / 1000);
}

static void test_refused(const struct cluster *a100)
{
    static const struct {
        enum dtype param;
        bool fp8, tf32;
        enum attention attention;
        const char *told;
    } cases[] = {
        {DTYPE_BF16, true, false, ATTENTION_SDPA, "no rates for products in fp8"},
        {DTYPE_FP32, true, false, ATTENTION_SDPA, "inputs in bf16"},
        {DTYPE_FP32, false, true, ATTENTION_SDPA, "fp32 with products in tf32"},
        {DTYPE_BF16, false, true, ATTENTION_FA3, "no rates for this attention kernel"},
    };
    struct cluster old = *a100;

    old.tf32_flops = (struct rate){.at = {0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = plan_options_default();
        struct prices prices;
        struct err err = {0};
        struct made made;
        options.policy.param = cases[i].param;
        options.linear_fp8 = cases[i].fp8;
        options.tf32 = cases[i].tf32;
        options.attention = cases[i].attention;
        make_init(&made, "llama3-8b", 1, &options);
        is_int(cost_price(&old, SPREAD_MID, &made.program, &arena, &prices, &err), STATUS_USAGE,
               "an A100 without TF32 refuses it");
        ok(strstr(err.text, cases[i].told) != NULL, "with what it lacks (got '%s')", err.text);
        make_release(&made);
    }
}

static void test_nic(void)
{
    struct cluster h100 = open_cluster("h100-sxm"), toy = open_cluster("toy");

    struct collective_row rows[] = {{.kind = TASK_ALL_GATHER, .ranks = 16, .nodes = 2},
                                    h100.collectives[0]};

    h100.collectives = rows;
    h100.n_collective = 2;
    is_int(cluster_set_nic(&h100, 200, &arena, NULL), STATUS_OK, "another adapter");
    ok(h100.n_collective == 1 && h100.collectives[0].nodes == 1,
       "what was measured over the old one is gone");
    for (int spread = 0; spread < SPREAD_N; spread++)
        is_near(h100.nic_bytes_per_s.at[spread], 25e9, 1e-12, "of 200 Gbit/s, which is known");
    is_int(cluster_set_nic(&h100, 1e-3, &arena, NULL), STATUS_USAGE, "one that is nothing");
    is_int(cluster_set_nic(&toy, 200, &arena, NULL), STATUS_USAGE, "where there are prices, none");
}

static void test_positions(void)
{
    struct model mpt, llama;

    if (model_open("mpt-125m", 0, &arena, &mpt, NULL) ||
        model_open("llama2-7b", 0, &arena, &llama, NULL))
        tap_bail("no model");
    const uint64_t before = mpt.n_element;
    is_int(model_set_positions(&mpt, 4096, &arena, NULL), STATUS_OK, "mpt learns more positions");
    is_int(mpt.n_element - before, 2048 * 768, "a row of parameters for each");
    is_int(model_set_positions(&llama, 4096, &arena, NULL), STATUS_USAGE, "llama learns none");
}

int main(void)
{
    arena_init(&arena);
    const struct cluster h100 = open_cluster("h100-sxm"), a100 = open_cluster("a100-sxm-80g");
    test_losses();
    test_metric();
    test_metric_of_fp32();
    test_attention(&h100, &a100);
    test_fp32(&h100);
    test_fp8(&h100);
    test_cost_only(&h100);
    test_optimizers(&h100);
    test_many_launches(&h100);
    test_refused(&a100);
    test_nic();
    test_positions();
    arena_release(&arena);
    return tap_done();
}
