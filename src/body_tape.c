/*
 * Writes the steps of one phase to a tape: slots, operators, births and deaths in their order.
 *
 * In backward a tensor ends after the last operator that names it, whichever of a recipe's rows
 * run. Within one operator the deaths that a table states come first, in its order.
 */
#include <assert.h>

#include "src/body_walk.h"

#define MAX_SIZE (UINT64_C(1) << 62)

uint64_t body_times(bool *too_large, uint64_t a, uint64_t b)
{
    uint64_t product;
    if (!__builtin_mul_overflow(a, b, &product) && product <= MAX_SIZE)
        return product;
    *too_large = true;
    return 0;
}

void body_add(bool *too_large, uint64_t *sum, uint64_t term)
{
    if (term > MAX_SIZE - *sum)
        *too_large = true;
    else
        *sum += term;
}

static uint64_t extent_bytes(struct walk *walk, const struct extent *extent)
{
    const uint64_t *dims = walk->builder->dims;
    const uint64_t of_compute = dtype_bytes(walk->table->options.compute) / 2;
    uint64_t bytes = body_times(&walk->too_large, dims[extent->a], dims[extent->b]);
    return body_times(&walk->too_large, bytes, extent->each * (extent->fixed ? 1 : of_compute));
}

/* ---- slots -------------------------------------------------------------------------------- */

static uint32_t push_bytes(struct walk *walk, uint64_t bytes, enum memory_class memory_class,
                           const char *name)
{
    struct body_table *table = walk->table;
    body_add(&walk->too_large, &walk->slot_bytes, bytes);
    assert(walk->pair.n_slot < BODY_MAX_SLOTS);
    table->slots = arena_grow(walk->builder->arena, table->slots, &walk->builder->cap_slot,
                              table->n_slot + 1, sizeof *table->slots);
    table->slots[table->n_slot++] =
        (struct slot){.bytes = bytes, .name = name, .memory_class = (uint8_t)memory_class};
    return walk->pair.n_slot++;
}

uint32_t walk_push_slot(struct walk *walk, uint8_t tensor, enum memory_class memory_class)
{
    const struct body_tensor *is = &walk->builder->tensors[tensor];
    if (tensor == NO_TENSOR)
        return push_bytes(walk, 0, memory_class, "");
    return push_bytes(walk, extent_bytes(walk, &is->size), is->logits ? CLASS_LOGITS : memory_class,
                      is->name);
}

uint32_t walk_param_of(const struct walk *walk, uint32_t slot)
{
    const struct model *model = walk->builder->model;
    return model->piece_params[model->pieces[walk->pair.piece].param + slot - SLOT_GRAD];
}

uint32_t walk_push_grad(struct walk *walk)
{
    const struct model *model = walk->builder->model;
    const uint32_t param = walk_param_of(walk, SLOT_GRAD + walk->pair.n_grad++);
    const struct param_policy *policy = &walk->builder->policy[param];
    const uint64_t bytes = body_times(&walk->too_large, model->params[param].numel,
                                      dtype_bytes((enum dtype)policy->grad));
    return push_bytes(walk, policy->has_grad ? bytes : 0, CLASS_UNSHARDED_GRAD,
                      "gradient of a parameter");
}

/* ---- tape --------------------------------------------------------------------------------- */

static void push_tape(struct walk *walk, enum tape_act act, uint32_t id)
{
    struct body_table *table = walk->table;
    table->tape = arena_grow(walk->builder->arena, table->tape, &walk->builder->cap_tape,
                             table->n_tape + 1, sizeof *table->tape);
    table->tape[table->n_tape++] = (struct tape){.act = (uint8_t)act, .id = id};
}

static void push_op(struct walk *walk, const struct op *op)
{
    struct body_table *table = walk->table;
    uint64_t flops;
    if (op_flops(op, &flops))
        body_add(&walk->too_large, &walk->flops, flops);
    else
        walk->too_large = true;
    table->ops = arena_grow(walk->builder->arena, table->ops, &walk->builder->cap_op,
                            table->n_op + 1, sizeof *table->ops);
    push_tape(walk, TAPE_OP, table->n_op);
    table->ops[table->n_op++] = *op;
}

static void bear_slot(struct walk *walk, uint32_t slot)
{
    assert(!walk->alive[slot]);
    walk->alive[slot] = true;
    walk->born_in[slot] = (uint8_t)walk->phase;
    push_tape(walk, TAPE_ALLOC, slot);
}

/* Whether autograd yields the gradient in this slot in another dtype than its operator does. */
static bool is_cast(const struct walk *walk, uint32_t slot)
{
    if (slot < SLOT_GRAD || slot >= walk_first_inner_slot(walk))
        return false;
    const struct param_policy *policy = &walk->builder->policy[walk_param_of(walk, slot)];
    return policy->grad != policy->compute;
}

/* The operator's own result; the gradient is born when it is cast. */
static void bear_uncast(struct walk *walk, uint32_t slot)
{
    const uint32_t param = walk_param_of(walk, slot);
    const uint64_t bytes =
        body_times(&walk->too_large, walk->builder->model->params[param].numel,
                   dtype_bytes((enum dtype)walk->builder->policy[param].compute));
    assert(walk->n_uncast < BODY_MAX_UNCAST);
    walk->uncast[walk->n_uncast].slot =
        push_bytes(walk, bytes, CLASS_TEMPORARY, "gradient of a parameter, not cast");
    walk->uncast[walk->n_uncast].grad = slot;
    bear_slot(walk, walk->uncast[walk->n_uncast++].slot);
}

/* One kernel a gradient, right behind its operator. */
static void cast_grads(struct walk *walk)
{
    for (uint32_t i = 0; i < walk->n_uncast; i++) {
        const uint32_t from = walk->uncast[i].slot, to = walk->uncast[i].grad;
        const struct slot *slots = &walk->table->slots[walk->pair.slot];
        struct op op = {.kind = OP_TO,
                        .pass = PASS_WGRAD,
                        .kernels = 1,
                        .bytes = slots[from].bytes + slots[to].bytes};
        bear_slot(walk, to);
        walk_name_cast(walk, from, to, &op);
        push_op(walk, &op);
        walk->alive[from] = false;
        push_tape(walk, TAPE_FREE, from);
    }
    walk->n_uncast = 0;
}

static void bear(struct walk *walk, struct cell *cell, uint8_t tensor)
{
    if (cell->slot == NO_SLOT || cell->slot >= walk_first_inner_slot(walk))
        cell->slot = walk_push_slot(walk, tensor, CLASS_TEMPORARY);
    if (is_cast(walk, cell->slot))
        bear_uncast(walk, cell->slot);
    else
        bear_slot(walk, cell->slot);
}

void walk_bear_grads(struct walk *walk)
{
    for (uint32_t slot = SLOT_GRAD; slot < walk_first_inner_slot(walk); slot++)
        if (walk->table->slots[walk->pair.slot + slot].bytes > 0)
            bear_slot(walk, slot);
}

/* What backward makes and nobody wants is not made. */
static void bear_all(struct walk *walk, const struct step *step)
{
    const uint8_t *born = step->row->born;
    if (step->row->over) {
        const struct cell *place = walk_cell(walk, step->part, step->row->over);
        if (!walk_keeps(walk, place))
            walk_cell(walk, step->part, *born++)->slot = place->slot;
    }
    for (; *born; born++) {
        struct cell *cell = walk_cell(walk, step->part, *born);
        if (walk->phase == BACKWARD && !cell->wanted)
            continue;
        bear(walk, cell, *born);
        walk->in_cache[cell->slot] = step->cached;
    }
}

static void take_from_cache(struct walk *walk, const struct step *step)
{
    for (const uint8_t *born = step->row->born; *born; born++)
        walk->in_cache[walk_cell(walk, step->part, *born)->slot] = false;
}

/*
 * The caller's: the output, the gradients, that of the output where it becomes the input's, and what
 * a variable of the training loop holds: what the model itself is given, and logits for metrics.
 */
static bool is_handed_on(const struct walk *walk, uint32_t slot)
{
    return (slot == SLOT_IN && (walk->pair.piece == 0 || walk->recipe->in_outlives)) ||
           slot == SLOT_OUT || slot == SLOT_D_IN || (slot == SLOT_D_OUT && walk->pair.d_in_place) ||
           (slot >= SLOT_GRAD && slot < walk_first_inner_slot(walk));
}

static bool is_inner(const struct walk *walk, uint32_t slot)
{
    return slot >= walk_first_inner_slot(walk);
}

static void free_slot(struct walk *walk, uint32_t slot, bool of_stopped_frame)
{
    struct slot *is = &walk->table->slots[walk->pair.slot + slot];
    const bool crosses = walk->born_in[slot] != walk->phase;
    walk->alive[slot] = false;
    push_tape(walk, TAPE_FREE, slot);
    if (is_inner(walk, slot) && is->memory_class == CLASS_TEMPORARY && crosses && !of_stopped_frame)
        is->memory_class = CLASS_ACTIVATION;
}

void walk_drop(struct walk *walk, uint32_t slot)
{
    free_slot(walk, slot, false);
}

/* What the recompute did not get to goes with the region, which the last saved tensor holds. */
static void empty_cache(struct walk *walk)
{
    const uint32_t n = walk->pair.n_slot;
    for (uint32_t slot = walk_first_inner_slot(walk); slot < n; slot++)
        if (walk->alive[slot] && walk->born_in[slot] != BACKWARD && !walk->in_cache[slot])
            return;
    for (uint32_t slot = walk_first_inner_slot(walk); slot < n; slot++)
        if (walk->alive[slot] && walk->in_cache[slot])
            free_slot(walk, slot, false);
}

static bool is_stopped_at(const struct walk *walk, uint8_t tensor)
{
    const struct body_recipe *recipe = walk->recipe;
    return recipe->ac != AC_NONE && tensor == recipe->stopped_at && !walk_recomputes_all(walk);
}

static void let_go(struct walk *walk, uint32_t part, uint8_t tensor, uint32_t after)
{
    const struct cell *cell = walk_cell(walk, part, tensor);
    const uint32_t slot = cell->slot;
    const bool stays = walk->phase == BACKWARD ? cell->last != after : walk_keeps(walk, cell);
    if (stays || slot == NO_SLOT || !walk->alive[slot] || is_handed_on(walk, slot))
        return;
    free_slot(walk, slot, is_stopped_at(walk, tensor));
    if (walk->phase == BACKWARD && walk->born_in[slot] != BACKWARD)
        empty_cache(walk);
}

uint32_t walk_uncast(const struct walk *walk, uint32_t slot)
{
    for (uint32_t i = 0; i < walk->n_uncast; i++)
        if (walk->uncast[i].grad == slot)
            return walk->uncast[i].slot;
    return slot;
}

/* ---- operators ---------------------------------------------------------------------------- */

static enum op_pass row_pass(const struct walk *walk, const struct body_row *row)
{
    if (walk->phase == BACKWARD)
        return row->weight_grad ? PASS_WGRAD : PASS_DGRAD;
    return walk->phase == RECOMPUTE ? PASS_RECOMPUTE : PASS_FORWARD;
}

/* A step's share of its operator, which is its gradient of an activation if it has any. */
static void add_share(struct walk *walk, const struct body_row *row, struct op *op)
{
    const uint64_t *dims = walk->builder->dims;
    const enum op_pass pass = row_pass(walk, row);
    if (op->kernels == 0)
        *op =
            (struct op){.kind = row->kind, .m = dims[row->m], .n = dims[row->n], .k = dims[row->k]};
    if (op->kernels == 0 || pass == PASS_DGRAD)
        op->pass = (uint8_t)pass;
    op->kernels = (uint16_t)(op->kernels + 1 + row->more_kernels);
    for (int i = 0; i < BODY_MOVED; i++)
        body_add(&walk->too_large, &op->bytes, extent_bytes(walk, &row->moved[i]));
}

static void run(struct walk *walk, const struct step *first, const struct step *end)
{
    struct op op = {.kernels = 0};
    if (walk->phase == RECOMPUTE && first->cached) {
        take_from_cache(walk, first);
        return;
    }
    for (const struct step *step = first; step < end; step++)
        if (step->runs)
            bear_all(walk, step);
    for (const struct step *step = first; step < end; step++)
        if (step->runs && step->row->kind != BODY_NO_OP) {
            add_share(walk, step->row, &op);
            walk_name_operands(walk, step, &op);
        }
    if (op.kernels > 0)
        push_op(walk, &op);
    cast_grads(walk);
}

enum { NAMED_LISTS = 4 };

/* All tensors that a step names. */
static const uint8_t *named_list(const struct step *step, int list)
{
    const struct body_row *row = step->row;
    const uint8_t *const lists[NAMED_LISTS] = {row->dies, step->reads, row->changes, row->born};
    return lists[list];
}

/* Forward's tables say where variables end; backward's are cut, so that all names count. */
static void end_tensors(struct walk *walk, const struct steps *steps, uint32_t first, uint32_t end)
{
    const int n_list = walk->phase == BACKWARD ? NAMED_LISTS : 1;
    for (int list = 0; list < n_list; list++)
        for (uint32_t i = first; i < end; i++) {
            const struct step *step = &steps->at[i];
            const uint8_t *tensor = named_list(step, list);
            for (; step->runs && *tensor; tensor++)
                let_go(walk, step->part, *tensor, first);
        }
}

/* Later steps overwrite what earlier ones have found. */
static void find_last(struct walk *walk, const struct steps *steps)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < steps->n; i++) {
        const struct step *step = &steps->at[i];
        if (!step->row->also)
            first = i;
        for (int list = 0; step->runs && list < NAMED_LISTS; list++)
            for (const uint8_t *tensor = named_list(step, list); *tensor; tensor++)
                walk_cell(walk, step->part, *tensor)->last = first;
    }
}

void walk_write(struct walk *walk, const struct steps *steps, uint32_t stop)
{
    if (walk->phase == BACKWARD)
        find_last(walk, steps);
    for (uint32_t first = 0, end; first < steps->n; first = end) {
        end = steps_next(steps, first);
        if (first < stop)
            run(walk, &steps->at[first], &steps->at[end]);
        end_tensors(walk, steps, first, end);
    }
}
