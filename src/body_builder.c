/*
 * Walks a recipe's rows and writes tapes.
 *
 * A cell is a tensor of one part, a slot is what a cell is bound to: the boundary's and the
 * gradients' once and for all, any other anew at each birth, so that a recompute has slots of its
 * own. Sizes are checked as they are made; the first that is too large spoils the pair, which is
 * asked about once, at its end. Nothing here knows a family.
 */
#include "src/body_builder.h"

#include <assert.h>

#define NO_SLOT UINT32_MAX
#define MAX_SIZE (UINT64_C(1) << 62)

enum phase { FORWARD, REGION, RECOMPUTE, BACKWARD }; /* REGION: forward that keeps its input only */

struct cell {
    uint32_t slot;
    bool saved; /* backward lets go of it */
    bool late;  /* and does so in a late row */
};

struct walk {
    struct body_builder *builder;
    struct body_table *table;
    const struct body_recipe *recipe;
    struct body_pair pair;
    struct cell cells[BODY_MAX_PARTS][BODY_MAX_TENSORS];
    bool alive[BODY_MAX_SLOTS], of_backward[BODY_MAX_SLOTS];
    enum phase phase;
    const struct body_row *stop; /* where a recompute ends */
    bool stopped;                /* from here on variables end, nothing runs */
    uint64_t slot_bytes, flops;
    bool too_large;
};

static uint64_t times(bool *too_large, uint64_t a, uint64_t b)
{
    uint64_t product;
    if (!__builtin_mul_overflow(a, b, &product) && product <= MAX_SIZE)
        return product;
    *too_large = true;
    return 0;
}

static void add(bool *too_large, uint64_t *sum, uint64_t term)
{
    if (term > MAX_SIZE - *sum)
        *too_large = true;
    else
        *sum += term;
}

enum status body_builder_init(struct body_builder *builder, const struct model *model,
                              const struct param_policy *policy, struct arena *arena,
                              struct body_table *table, struct err *err)
{
    const struct dims *dims = &model->dims;
    *builder = (struct body_builder){.model = model,
                                     .policy = policy,
                                     .table = table,
                                     .arena = arena,
                                     .repeated = dims->heads != dims->kv_heads,
                                     .biased = dims->bias};
    uint64_t batch = table->options.batch;
    bool too_large = false;
    builder->dims[DIM_ONE] = 1;
    builder->dims[DIM_T] = times(&too_large, batch, table->options.seq);
    builder->dims[DIM_H] = dims->hidden;
    builder->dims[DIM_Q] = times(&too_large, dims->heads, dims->head_dim);
    builder->dims[DIM_KV] = times(&too_large, dims->kv_heads, dims->head_dim);
    builder->dims[DIM_QKV] = builder->dims[DIM_Q];
    add(&too_large, &builder->dims[DIM_QKV], times(&too_large, 2, builder->dims[DIM_KV]));
    builder->dims[DIM_F] = dims->intermediate;
    builder->dims[DIM_NH] = dims->heads;
    builder->dims[DIM_V] = dims->vocab;
    builder->dims[DIM_BH] = times(&too_large, batch, dims->heads);
    builder->dims[DIM_S] = table->options.seq;
    builder->dims[DIM_D] = dims->head_dim;
    builder->dims[DIM_P] = dims->positions;
    if (too_large)
        return err_set(err, STATUS_INPUT,
                       "batch times sequence or heads passes 2^62, use a smaller batch");
    return STATUS_OK;
}

static uint64_t extent_bytes(struct walk *walk, const struct extent *extent)
{
    const uint64_t *dims = walk->builder->dims;
    uint64_t bytes = times(&walk->too_large, dims[extent->a], dims[extent->b]);
    return times(&walk->too_large, bytes, extent->each);
}

static void push_tape(struct walk *walk, enum tape_act act, uint32_t id)
{
    struct body_table *table = walk->table;
    table->tape = arena_grow(walk->builder->arena, table->tape, &walk->builder->cap_tape,
                             table->n_tape + 1, sizeof *table->tape);
    table->tape[table->n_tape++] = (struct tape){.act = (uint8_t)act, .id = id};
}

static uint32_t push_bytes(struct walk *walk, uint64_t bytes, enum memory_class memory_class)
{
    struct body_table *table = walk->table;
    add(&walk->too_large, &walk->slot_bytes, bytes);
    assert(walk->pair.n_slot < BODY_MAX_SLOTS);
    table->slots = arena_grow(walk->builder->arena, table->slots, &walk->builder->cap_slot,
                              table->n_slot + 1, sizeof *table->slots);
    table->slots[table->n_slot++] =
        (struct slot){.bytes = bytes, .memory_class = (uint8_t)memory_class};
    return walk->pair.n_slot++;
}

static uint32_t push_slot(struct walk *walk, uint8_t tensor, enum memory_class memory_class)
{
    const struct body_tensor *is = &walk->builder->tensors[tensor];
    if (tensor == NO_TENSOR)
        return push_bytes(walk, 0, memory_class);
    return push_bytes(walk, extent_bytes(walk, &is->size),
                      is->logits ? CLASS_LOGITS : memory_class);
}

/* The next gradient of the piece: its size is the parameter's, in the dtype of its policy. */
static uint32_t push_grad(struct walk *walk)
{
    const struct model *model = walk->builder->model;
    const uint32_t at = model->pieces[walk->pair.piece].param + walk->pair.n_grad++;
    const uint32_t param = model->piece_params[at];
    const struct param_policy *policy = &walk->builder->policy[param];
    const uint64_t bytes =
        times(&walk->too_large, model->params[param].numel, dtype_bytes((enum dtype)policy->grad));
    return push_bytes(walk, policy->has_grad ? bytes : 0, CLASS_UNSHARDED_GRAD);
}

static uint32_t first_inner_slot(const struct walk *walk)
{
    return SLOT_GRAD + walk->pair.n_grad;
}

/* One tensor may go by several names: between parts, and where heads are not repeated. */
static struct cell *find_cell(struct walk *walk, uint32_t part, uint8_t tensor)
{
    const struct body_recipe *recipe = walk->recipe;
    if (recipe->unrepeated && !walk->builder->repeated)
        for (const struct body_same *same = recipe->unrepeated; same->name; same++)
            if (same->name == tensor) {
                tensor = same->is;
                break;
            }
    const uint8_t *boundary = recipe->parts[part]->boundary;
    if (part > 0 && tensor == boundary[SLOT_IN])
        tensor = recipe->parts[--part]->boundary[SLOT_OUT];
    else if (part + 1 < recipe->n_part && tensor == boundary[SLOT_D_OUT])
        tensor = recipe->parts[++part]->boundary[SLOT_D_IN];
    assert(tensor != NO_TENSOR && tensor < BODY_MAX_TENSORS);
    return &walk->cells[part][tensor];
}

/* What must hold for a row, in the terms of its field when. */
static bool row_holds(const struct walk *walk, const struct body_row *row)
{
    unsigned facts = walk->builder->repeated ? WHEN_REPEATED : WHEN_UNREPEATED;
    facts |= walk->phase == RECOMPUTE ? WHEN_RECOMPUTE : WHEN_FORWARD;
    if (walk->builder->biased)
        facts |= WHEN_BIASED;
    if (walk->table->options.batch > 1)
        facts |= WHEN_BATCHED;
    return (row->when & ~facts) == 0;
}

static bool dies_here(const struct walk *walk, const struct cell *cell, bool late)
{
    switch (walk->phase) {
    case FORWARD:
    case RECOMPUTE:
        return !cell->saved;
    case REGION:
        return cell->slot != SLOT_IN;
    case BACKWARD:
        break;
    }
    return late || !cell->late;
}

static void bear(struct walk *walk, uint32_t part, uint8_t tensor)
{
    struct cell *cell = find_cell(walk, part, tensor);
    if (cell->slot == NO_SLOT || cell->slot >= first_inner_slot(walk))
        cell->slot = push_slot(walk, tensor, CLASS_TEMPORARY);
    assert(!walk->alive[cell->slot]);
    walk->alive[cell->slot] = true;
    walk->of_backward[cell->slot] = walk->phase == BACKWARD;
    push_tape(walk, TAPE_ALLOC, cell->slot);
}

static void let_go(struct walk *walk, uint32_t part, uint8_t tensor, bool late)
{
    const struct cell *cell = find_cell(walk, part, tensor);
    uint32_t slot = cell->slot;
    if (slot == NO_SLOT || !walk->alive[slot] || slot == SLOT_OUT || slot == SLOT_D_IN ||
        !dies_here(walk, cell, late))
        return;
    walk->alive[slot] = false;
    push_tape(walk, TAPE_FREE, slot);

    bool crosses = walk->phase == BACKWARD && !walk->of_backward[slot];
    bool stopped_at = walk->recipe->ac == AC_FULL && tensor == walk->recipe->stopped_at;
    struct slot *is = &walk->table->slots[walk->pair.slot + slot];
    if (slot >= first_inner_slot(walk) && is->memory_class == CLASS_TEMPORARY && crosses &&
        !stopped_at)
        is->memory_class = CLASS_ACTIVATION;
}

static enum op_pass row_pass(const struct walk *walk, const struct body_row *row)
{
    if (walk->phase == BACKWARD)
        return row->weight_grad ? PASS_WGRAD : PASS_DGRAD;
    return walk->phase == RECOMPUTE ? PASS_RECOMPUTE : PASS_FORWARD;
}

static void push_op(struct walk *walk, const struct body_row *row)
{
    const uint64_t *dims = walk->builder->dims;
    struct op op = {.kind = row->kind,
                    .pass = (uint8_t)row_pass(walk, row),
                    .kernels = (uint16_t)(1 + row->more_kernels),
                    .m = dims[row->m],
                    .n = dims[row->n],
                    .k = dims[row->k]};
    for (int i = 0; i < 2; i++)
        add(&walk->too_large, &op.bytes, extent_bytes(walk, &row->moved[i]));
    uint64_t flops;
    if (op_flops(&op, &flops))
        add(&walk->too_large, &walk->flops, flops);
    else
        walk->too_large = true;

    struct body_table *table = walk->table;
    table->ops = arena_grow(walk->builder->arena, table->ops, &walk->builder->cap_op,
                            table->n_op + 1, sizeof *table->ops);
    push_tape(walk, TAPE_OP, table->n_op);
    table->ops[table->n_op++] = op;
}

static void walk_row(struct walk *walk, uint32_t part, const struct body_row *row, bool late)
{
    if (!row_holds(walk, row))
        return;
    if (walk->phase == RECOMPUTE && row == walk->stop)
        walk->stopped = true;
    if (!walk->stopped) {
        const uint8_t *born = row->born;
        if (row->over) {
            const struct cell *place = find_cell(walk, part, row->over);
            if (dies_here(walk, place, late))
                find_cell(walk, part, *born++)->slot = place->slot;
        }
        for (; *born; born++)
            bear(walk, part, *born);
        if (row->kind != BODY_NO_OP)
            push_op(walk, row);
    }
    for (const uint8_t *dies = row->dies; *dies; dies++)
        let_go(walk, part, *dies, late);
}

static void walk_late(struct walk *walk, bool backward)
{
    uint32_t n_part = walk->recipe->n_part;
    bool more = true;
    for (uint32_t i = 0; more; i++) {
        more = false;
        for (uint32_t p = 0; p < n_part; p++) {
            uint32_t at = backward ? n_part - 1 - p : p;
            const struct body_part *part = walk->recipe->parts[at];
            const struct body_rows *late =
                backward ? &part->late_backward[walk->recipe->ac] : &part->late_forward;
            if (i < late->n) {
                walk_row(walk, at, &late->row[i], true);
                more = true;
            }
        }
    }
}

static void walk_lists(struct walk *walk, uint32_t part, const struct body_rows lists[BODY_LISTS])
{
    for (int list = 0; list < BODY_LISTS; list++)
        for (uint32_t i = 0; i < lists[list].n; i++)
            walk_row(walk, part, &lists[list].row[i], false);
}

static void walk_forward(struct walk *walk, enum phase phase)
{
    walk->phase = phase;
    for (uint32_t p = 0; p < walk->recipe->n_part; p++)
        walk_lists(walk, p, walk->recipe->parts[p]->forward);
    walk_late(walk, false);
    walk->stopped = false;
}

static void walk_backward(struct walk *walk)
{
    walk->phase = BACKWARD;
    for (uint32_t p = walk->recipe->n_part; p-- > 0;)
        walk_lists(walk, p, walk->recipe->parts[p]->backward);
    walk_late(walk, true);
}

static void mark_saved(struct walk *walk, uint32_t part, const struct body_rows *rows, bool late)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        if (!row_holds(walk, &rows->row[i]))
            continue;
        for (const uint8_t *dies = rows->row[i].dies; *dies; dies++) {
            struct cell *cell = find_cell(walk, part, *dies);
            cell->saved = true;
            cell->late |= late;
        }
    }
}

static void find_saved(struct walk *walk)
{
    walk->phase = BACKWARD;
    for (uint32_t p = 0; p < walk->recipe->n_part; p++) {
        const struct body_part *part = walk->recipe->parts[p];
        for (int list = 0; list < BODY_LISTS; list++)
            mark_saved(walk, p, &part->backward[list], false);
        mark_saved(walk, p, &part->late_backward[walk->recipe->ac], true);
    }
}

/* The last product of the last part. */
static const struct body_row *find_stop(const struct body_recipe *recipe)
{
    const struct body_part *last = recipe->parts[recipe->n_part - 1];
    const struct body_row *stop = NULL;
    for (int list = 0; list < BODY_LISTS; list++)
        for (uint32_t i = 0; i < last->forward[list].n; i++)
            if (last->forward[list].row[i].kind == OP_MM)
                stop = &last->forward[list].row[i];
    return stop;
}

/* The slots that are not born anew: the boundary, then gradients in the order of the pieces. */
static void bind_boundary(struct walk *walk)
{
    const struct body_recipe *recipe = walk->recipe;
    for (int p = 0; p < BODY_MAX_PARTS; p++)
        for (int t = 0; t < BODY_MAX_TENSORS; t++)
            walk->cells[p][t].slot = NO_SLOT;

    for (uint32_t slot = 0; slot < SLOT_GRAD; slot++) {
        uint32_t part = slot == SLOT_IN || slot == SLOT_D_IN ? 0 : recipe->n_part - 1;
        uint8_t tensor = recipe->parts[part]->boundary[slot];
        push_slot(walk, tensor,
                  slot == SLOT_IN || slot == SLOT_OUT ? CLASS_ACTIVATION : CLASS_TEMPORARY);
        walk->cells[part][tensor].slot = slot;
        walk->alive[slot] = slot == SLOT_IN || slot == SLOT_D_OUT;
    }
    for (uint32_t p = 0; p < recipe->n_part; p++)
        for (const uint8_t *grad = recipe->parts[p]->grads; *grad; grad++)
            walk->cells[p][*grad].slot = push_grad(walk);
}

static uint32_t body_begin(struct walk *walk)
{
    struct body_table *table = walk->table;
    table->bodies = arena_grow(walk->builder->arena, table->bodies, &walk->builder->cap_body,
                               table->n_body + 1, sizeof *table->bodies);
    table->bodies[table->n_body] = (struct body){.op = table->n_op, .tape = table->n_tape};
    return table->n_body++;
}

/* Returns whether the body frees its pair's SLOT_IN. */
static bool body_end(struct walk *walk, uint32_t at)
{
    struct body *body = &walk->table->bodies[at];
    body->n_op = walk->table->n_op - body->op;
    body->n_tape = walk->table->n_tape - body->tape;
    if (!walk->too_large)
        body_summarize(walk->table, &walk->pair, body);
    bool in_dies = false;
    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *entry = &walk->table->tape[body->tape + i];
        in_dies |= entry->act == TAPE_FREE && entry->id == SLOT_IN;
    }
    return in_dies;
}

static enum status add_pair(struct body_builder *builder, const struct body_recipe *recipe,
                            uint32_t piece, struct err *err)
{
    struct body_table *table = builder->table;
    struct walk walk = {
        .builder = builder,
        .table = table,
        .recipe = recipe,
        .pair = {.kind = (uint8_t)recipe->kind, .slot = table->n_slot, .piece = piece},
    };
    bind_boundary(&walk);
    find_saved(&walk);
    walk.stop = find_stop(recipe);

    walk.pair.forward = body_begin(&walk);
    walk_forward(&walk, recipe->ac == AC_FULL ? REGION : FORWARD);
    walk.pair.in_dies_in_forward = body_end(&walk, walk.pair.forward);

    walk.pair.backward = body_begin(&walk);
    if (recipe->ac == AC_FULL)
        walk_forward(&walk, RECOMPUTE);
    walk_backward(&walk);
    walk.pair.in_dies_in_backward = body_end(&walk, walk.pair.backward);

    walk.pair.has_d_in = recipe->parts[0]->boundary[SLOT_D_IN] != NO_TENSOR;
    walk.pair.d_in_place = walk.pair.has_d_in && !walk.alive[SLOT_D_IN];
    if (walk.too_large)
        return err_set(err, STATUS_INPUT,
                       "body too large: '%s' passes 2^62 bytes or operations, "
                       "use a smaller batch or a shorter sequence",
                       body_kind_name(recipe->kind));

    table->pairs = arena_grow(builder->arena, table->pairs, &builder->cap_pair, table->n_pair + 1,
                              sizeof *table->pairs);
    table->pairs[table->n_pair++] = walk.pair;
    return STATUS_OK;
}

/* Two pieces whose parameters have the same sizes and gradients, one by one. */
static bool same_grads(const struct body_builder *builder, uint32_t a, uint32_t b, uint32_t n_grad)
{
    const struct model *model = builder->model;
    const uint32_t *of_a = &model->piece_params[model->pieces[a].param];
    const uint32_t *of_b = &model->piece_params[model->pieces[b].param];
    for (uint32_t i = 0; i < n_grad; i++) {
        const struct param_policy *p = &builder->policy[of_a[i]], *q = &builder->policy[of_b[i]];
        if (model->params[of_a[i]].numel != model->params[of_b[i]].numel ||
            p->has_grad != q->has_grad || p->grad != q->grad)
            return false;
    }
    return true;
}

/* Of the pairs from first on, one that serves the piece; NO_PAIR where none does. */
static uint32_t find_pair(const struct body_builder *builder, uint32_t first, uint32_t piece)
{
    const struct body_table *table = builder->table;
    for (uint32_t i = first; i < table->n_pair; i++)
        if (same_grads(builder, table->pairs[i].piece, piece, table->pairs[i].n_grad))
            return i;
    return NO_PAIR;
}

static bool is_of(const struct model *model, uint32_t piece, enum body_kind kind)
{
    return kind == BODY_BLOCK ? body_piece_starts_block(model, piece)
                              : model->pieces[piece].kind == kind;
}

enum status body_builder_add(struct body_builder *builder, const struct body_recipe *recipe,
                             struct err *err)
{
    struct body_table *table = builder->table;
    uint32_t *of = recipe->kind == BODY_BLOCK ? table->of_block : table->of_piece;
    const uint32_t first = table->n_pair;
    enum status status = STATUS_OK;

    if (recipe->kind == BODY_LOSS) {
        table->of_loss = first;
        return add_pair(builder, recipe, 0, err);
    }
    for (uint32_t i = 0; i < builder->model->n_piece && !status; i++) {
        if (!is_of(builder->model, i, recipe->kind))
            continue;
        of[i] = find_pair(builder, first, i);
        if (of[i] == NO_PAIR) {
            of[i] = table->n_pair;
            status = add_pair(builder, recipe, i, err);
        }
    }
    return status;
}
