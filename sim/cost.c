/*
 * Prices of a program's tasks; see cost.h. The formulas are in cost_ops.c and cost_comm.c.
 *
 * A program has thousands of tasks and a handful of prices: bodies are priced once each, unit tasks
 * once per kind and unit shape. A remembered price is used only for a task that asks the same, so
 * that nothing is assumed of how tasks and shapes go together. Rounding is in cost_ns() alone.
 */
#include "sim/cost.h"

#include <inttypes.h>
#include <math.h>

#include "sim/cost_formula.h"
#include "sim/cost_left.h"
#include "sim/without.h"

#define MAX_NS 0x1p62
#define MAX_CONTENTION 1000.0 /* compute at a thousandth of its speed */

struct price {
    int64_t ns, last_ns;
};

struct unit_price {
    struct price price;
    uint64_t elements, rest; /* what was asked */
    uint32_t kernels;        /* the same */
    bool known;
};

struct body_price {
    struct price price;
    bool known;
};

struct pricing {
    const struct cluster *cluster;
    const struct program *program;
    struct cost_rates rates; /* zero where the cluster has prices */
    double straggler_factor;
    enum spread spread;
    struct cost_ranges ranges;
    struct cost_extent of_plan, extent; /* what each price asks for; what any of them does */
    double factors[COST_TABLE_N];       /* how much wider of_plan alone makes each table */
    uint8_t row_readers[TASK_KIND_N];   /* bits of the communicators that read a row of the kind */
    struct body_price *bodies;          /* by body */
    struct unit_price *units;           /* by kind and unit shape; the last shape is NO_UNIT's */
};

enum status cost_ns(double seconds, bool has_work, int64_t *out, struct err *err)
{
    const double ns = seconds * 1e9;

    if (!(ns >= 0 && ns <= MAX_NS))
        return err_set(err, STATUS_INPUT, "a price of %g s does not fit, 2^62 ns is the most",
                       seconds);
    const int64_t rounded = llround(ns);
    *out = rounded == 0 && has_work ? 1 : rounded;
    return STATUS_OK;
}

/* A GPU lacks a kernel where its rate is 0. */
static enum status check_kernels(const struct cluster *cluster, const struct plan_options *options,
                                 struct err *err)
{
    const struct cost_rates rates = cost_rates_of(cluster, SPREAD_MID, options);

    if (cluster->has_prices)
        return STATUS_OK;
    if (rates.gemm_flops == 0)
        return err_set(err, STATUS_USAGE, "cluster '%s' has no rates for compute in fp32%s",
                       cluster->name, options->tf32 ? " with products in tf32" : "");
    if (options->linear_fp8 && options->policy.param == DTYPE_FP32)
        return err_set(err, STATUS_USAGE,
                       "products in fp8 have inputs in bf16, take --param-dtype bf16");
    if (options->linear_fp8 && rates.fp8_flops == 0)
        return err_set(err, STATUS_USAGE, "cluster '%s' has no rates for products in fp8",
                       cluster->name);
    if (rates.attention_derate == 0)
        return err_set(err, STATUS_USAGE, "cluster '%s' has no rates for this attention kernel",
                       cluster->name);
    return STATUS_OK;
}

static enum status check_plan(const struct cluster *cluster, const struct plan *plan,
                              struct err *err)
{
    if (plan->gpus_per_node > cluster->max_gpus_per_node)
        return err_set(err, STATUS_USAGE,
                       "%" PRIu64 " GPUs in a node, cluster '%s' has %" PRIu64
                       ": ask for more nodes",
                       plan->gpus_per_node, cluster->name, cluster->max_gpus_per_node);
    return check_kernels(cluster, &plan->options, err);
}

/* NULL where a body is none of a pair's. */
static const struct body_pair *pair_of(const struct body_table *table, uint32_t body)
{
    for (uint32_t i = 0; i < table->n_pair; i++)
        if (table->pairs[i].forward == body || table->pairs[i].backward == body)
            return &table->pairs[i];
    return NULL;
}

/* The head's product stays in BF16 (spec COST 3). */
static bool multiplies_in_fp8(const struct pricing *p, const struct body_pair *pair)
{
    return p->program->plan->options.linear_fp8 && pair && pair->kind != BODY_HEAD;
}

/* At this end of the spread, farther out where it is read outside of its table. */
static double op_s(struct pricing *p, const struct op *op, bool fp8)
{
    const double seconds = fp8 ? cost_op_fp8_s(&p->rates, op) : cost_op_s(&p->rates, op);
    const double of_plan = p->factors[cost_table_of(op)];

    cost_extent_op(&p->extent, op);
    return cost_widened(seconds, fmax(of_plan, cost_op_factor(&p->ranges, op)), p->spread);
}

/*
 * PyTorch saves what a product needs before it computes it, so that a recompute can stop there. FP8
 * layers are autograd functions of their own (Transformer Engine, torchao), whose tensors are saved
 * once they are through. A compiled graph has no product that nobody needs.
 */
static bool stops_late(const struct pricing *p, bool fp8)
{
    const struct plan *plan = p->program->plan;
    const bool compiled = body_blocks_compile(plan->model, plan->options.ops);
    return is_without(p->cluster, WITHOUT_EARLY_STOP) || (fp8 && !compiled);
}

/* What a full recompute that does not stop early adds: the last product of forward. */
static double late_stop_s(struct pricing *p, const struct body_pair *pair, uint32_t id, bool fp8)
{
    const struct body_table *table = p->program->bodies;
    const struct body *body = &table->bodies[id];
    const struct plan_options *options = &p->program->plan->options;

    if (options->ac != AC_FULL || options->full_recompute || !pair || id != pair->backward ||
        body->n_op == 0 || table->ops[body->op].pass != PASS_RECOMPUTE)
        return 0;
    const struct body *forward = &table->bodies[pair->forward];
    for (uint32_t i = forward->n_op; i-- > 0;)
        if (op_kind_cost(table->ops[forward->op + i].kind) == COST_GEMM)
            return op_s(p, &table->ops[forward->op + i], fp8);
    return 0;
}

/* Outside the model: losses and metrics. */
static bool reads_logits(const struct body_pair *pair)
{
    return pair && (pair->kind == BODY_LOSS || pair->kind == BODY_METRIC);
}

static enum status body_from_rates(struct pricing *p, uint32_t id, struct price *out,
                                   struct err *err)
{
    const struct body *body = &p->program->bodies->bodies[id];
    const struct body_pair *pair = pair_of(p->program->bodies, id);
    const bool fp8 = multiplies_in_fp8(p, pair), of_logits = reads_logits(pair);
    double sum_s = 0, last_s = 0;
    enum status status;

    for (uint32_t i = 0; i < body->n_op; i++) {
        const struct op *op = &p->program->bodies->ops[body->op + i];
        last_s = without_op(p->cluster, op, of_logits) ? 0 : op_s(p, op, fp8);
        sum_s += last_s;
    }
    if (stops_late(p, fp8))
        sum_s += late_stop_s(p, pair, id, fp8);
    const bool has_work = body->n_op > 0;
    if ((status = cost_ns(sum_s * p->straggler_factor, has_work, &out->ns, err)))
        return status;
    return cost_ns(last_s * p->straggler_factor, has_work, &out->last_ns, err);
}

/* No overflow: a price has a bound in cluster.h. */
static void body_from_prices(const struct pricing *p, const struct body *body, struct price *out)
{
    *out = (struct price){0};
    for (uint32_t i = 0; i < body->n_op; i++) {
        out->last_ns = p->cluster->op_price_ns[p->program->bodies->ops[body->op + i].kind];
        out->ns += out->last_ns;
    }
}

static enum status price_body(struct pricing *p, const struct task *task, const struct price **out,
                              struct err *err)
{
    const struct body *body = &p->program->bodies->bodies[task->body];
    struct body_price *known = &p->bodies[task->body];
    enum status status = STATUS_OK;

    if (!known->known && p->cluster->has_prices)
        body_from_prices(p, body, &known->price);
    else if (!known->known)
        status = body_from_rates(p, task->body, &known->price, err);
    known->known = true;
    *out = &known->price;
    return status;
}

/*
 * Of the network and of the row, which is that of another number of ranks where it has none. One of
 * several nodes is read for these alone.
 */
static double collective_factor(struct pricing *p, struct comm_ranks ranks,
                                const struct collective_row *row)
{
    const double network =
        fmax(p->factors[COST_TABLE_NETWORK], cost_collective_factor(&p->ranges, ranks));

    if (collective_row_nodes(row) > 1)
        return 1;
    cost_extent_collective(&p->extent, ranks);
    if (ranks.per_node == 1)
        return network;
    return fmax(network, cost_range_factor(ranks.per_node, row->ranks, row->ranks));
}

/* An all-reduce without a row of its own is a reduce-scatter and an all-gather. */
static double collective_s(struct pricing *p, const struct task *task, enum task_kind kind)
{
    const enum comm comm = (enum comm)task->comm;
    const struct comm_ranks ranks = comm_ranks_of(p->program->plan, comm);
    const struct collective_row *row =
        cost_collective_row(p->cluster, kind, ranks.per_node, ranks.ranks / ranks.per_node);
    const double bytes = (double)task->elements * (double)dtype_bytes((enum dtype)task->dtype);

    if (!row && kind == TASK_ALL_REDUCE)
        return collective_s(p, task, TASK_REDUCE_SCATTER) + collective_s(p, task, TASK_ALL_GATHER);
    p->row_readers[kind] |= (uint8_t)(1u << comm);
    const double seconds =
        cost_collective_s(&p->rates, row, bytes, (double)ranks.ranks / (double)ranks.per_node,
                          (double)ranks.per_node);
    return cost_widened(seconds, collective_factor(p, ranks, row), p->spread);
}

static double task_s(struct pricing *p, const struct task *task)
{
    const enum task_kind kind = (enum task_kind)task->kind;
    if (without_task(p->cluster, task))
        return 0;
    if (task_kind_is_collective(kind))
        return collective_s(p, task, kind);
    return cost_widened(cost_unit_task_s(&p->rates, p->program, task),
                        p->factors[COST_TABLE_COPIES], p->spread);
}

/* Several kernels of one unit task are taken as equal, so that the last is an even share. */
static int64_t last_of(int64_t ns, uint32_t kernels)
{
    return kernels > 1 ? (ns + kernels - 1) / kernels : ns;
}

/* Tasks of one kind, unit and size that cost differently: what their accesses say of them. */
static uint32_t variant_of(const struct program *program, const struct task *task)
{
    const struct access *first = &program->accesses[task->access];

    if (task->n_access == 0)
        return 0;
    return program->buffers[first->buffer].role | task->n_access << 8 |
           (uint32_t)first[task->n_access - 1].mode << 16 | (uint32_t)task->bucket << 24;
}

/* All that a task asks beside kind, unit, elements and kernels, in one number. */
static uint64_t rest_of(const struct program *program, const struct task *task)
{
    return (uint64_t)task->dtype | (uint64_t)task->comm << 8 |
           (uint64_t)variant_of(program, task) << 32;
}

/* *out: until the next task of its kind. */
static enum status price_unit_task(struct pricing *p, const struct task *task,
                                   const struct price **out, struct err *err)
{
    const struct layout *layout = p->program->layout;
    const uint32_t shape =
        task->unit == NO_UNIT ? layout->n_shape : layout->units[task->unit]->shape;
    struct unit_price *known = &p->units[task->kind * (layout->n_shape + 1) + shape];
    const uint64_t rest = rest_of(p->program, task);
    enum status status = STATUS_OK;

    if (!known->known || known->elements != task->elements || known->kernels != task->kernels ||
        known->rest != rest) {
        int64_t ns = p->cluster->task_price_ns[task->kind];
        if (!p->cluster->has_prices)
            status = cost_ns(task_s(p, task), true, &ns, err);
        *known = (struct unit_price){
            .price = {.ns = ns, .last_ns = last_of(ns, task->kernels)},
            .elements = task->elements,
            .kernels = task->kernels,
            .rest = rest,
            .known = true,
        };
    }
    *out = &known->price;
    return status;
}

static enum status price_tasks(struct pricing *p, int64_t *task_ns, int64_t *last_ns,
                               struct err *err)
{
    for (uint32_t t = 0; t < p->program->n_task; t++) {
        const struct task *task = &p->program->tasks[t];
        const bool has_body = task->kind == TASK_FORWARD || task->kind == TASK_BACKWARD;
        const struct price *price;
        const enum status status =
            has_body ? price_body(p, task, &price, err) : price_unit_task(p, task, &price, err);
        if (status) {
            err_prefix(err, "cluster '%s', %s", p->cluster->name, task_kind_name(task->kind));
            return status;
        }
        task_ns[t] = price->ns;
        last_ns[t] = price->last_ns;
    }
    return STATUS_OK;
}

static enum status price_host(const struct pricing *p, struct prices *out, struct err *err)
{
    const struct cluster *cluster = p->cluster;
    enum status status;

    if (cluster->has_prices) {
        out->host_launch_ns = cluster->host_launch_price_ns;
        out->host_all_gather_ns = cluster->host_all_gather_price_ns;
        out->contention_permille = (uint32_t)cluster->contention_permille;
        return STATUS_OK;
    }
    if (p->rates.contention > MAX_CONTENTION)
        return err_set(err, STATUS_INPUT, "a contention of %g, %g is the most", p->rates.contention,
                       MAX_CONTENTION);
    out->contention_permille = (uint32_t)lround(1000 * p->rates.contention);
    out->peak_flops = p->rates.gemm_flops;
    if ((status = cost_ns(p->rates.host_launch_s, false, &out->host_launch_ns, err)))
        return status;
    if ((status = cost_ns(p->rates.host_all_gather_s, false, &out->host_all_gather_ns, err)))
        return status;
    return cost_ns(p->rates.host_retry_s, false, &out->host_retry_ns, err);
}

/* What is no kernel's own: each of these rates by its own ranges. */
static void widen_rates(struct pricing *p)
{
    const struct cluster *cluster = p->cluster;
    struct cost_rates *r = &p->rates;
    const struct {
        const struct rate *rate;
        double *number;
    } all[] = {{&cluster->straggler, &r->straggler},
               {&cluster->contention, &r->contention},
               {&cluster->host_launch_s, &r->host_launch_s},
               {&cluster->host_all_gather_s, &r->host_all_gather_s},
               {&cluster->host_retry_s, &r->host_retry_s}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i].number =
            cost_widened(*all[i].number, cost_rate_factor(all[i].rate, &p->of_plan), p->spread);
}

static void take_rates(struct pricing *p)
{
    p->rates = cost_rates_of(p->cluster, p->spread, &p->program->plan->options);
    without_rates(p->cluster, p->spread, &p->rates);
    cost_extent_init(&p->of_plan, p->program->plan);
    p->extent = p->of_plan;
    cost_ranges_init(&p->ranges, p->cluster);
    for (int table = 0; table < COST_TABLE_N; table++)
        p->factors[table] = cost_table_factor(&p->ranges, (enum cost_table)table, &p->of_plan);
    widen_rates(p);
    p->straggler_factor = cost_straggler_factor(&p->rates, (double)p->program->plan->world);
}

static struct pricing pricing_of(const struct cluster *cluster, enum spread spread,
                                 const struct program *program, struct arena *arena)
{
    const size_t n_shape = program->layout->n_shape + 1;

    return (struct pricing){
        .cluster = cluster,
        .program = program,
        .spread = spread,
        .bodies = arena_array(arena, struct body_price, program->bodies->n_body),
        .units = arena_array(arena, struct unit_price, TASK_KIND_N * n_shape),
    };
}

static enum status price_program(struct pricing *p, struct arena *arena, struct prices *out,
                                 struct err *err)
{
    const struct program *program = p->program;
    int64_t *task_ns = arena_take(arena, 2 * (size_t)program->n_task * sizeof *task_ns);
    int64_t *last_ns = task_ns + program->n_task;
    struct prices prices = {.task_ns = task_ns, .last_ns = last_ns};
    enum status status;

    if ((status = check_plan(p->cluster, program->plan, err)))
        return status;
    if (!p->cluster->has_prices)
        take_rates(p);
    if ((status = price_tasks(p, task_ns, last_ns, err)))
        return status;
    if ((status = price_host(p, &prices, err))) {
        err_prefix(err, "cluster '%s', host", p->cluster->name);
        return status;
    }
    *out = prices;
    return STATUS_OK;
}

enum status cost_price_times(const struct cluster *cluster, enum spread spread,
                             const struct program *program, struct arena *arena, struct prices *out,
                             struct err *err)
{
    struct pricing p = pricing_of(cluster, spread, program, arena);
    return price_program(&p, arena, out, err);
}

enum status cost_price(const struct cluster *cluster, enum spread spread,
                       const struct program *program, struct arena *arena, struct prices *out,
                       struct err *err)
{
    struct pricing p = pricing_of(cluster, spread, program, arena);
    const enum status status = price_program(&p, arena, out, err);

    if (status == STATUS_OK && !cluster->has_prices)
        out->left = cost_tables_left(cluster, program, &p.extent, p.row_readers, arena);
    return status;
}
