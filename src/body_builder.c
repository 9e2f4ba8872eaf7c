/*
 * Makes the pairs of a table: one for each recipe and each set of gradients that its pieces have.
 *
 * Sizes that are too large spoil a pair, which is asked about once, at its end. Nothing here knows
 * a family.
 */
#include "src/body_builder.h"

#include "src/body_walk.h"

/* The first piece with a parameter that has a gradient; past the last where none has. */
static uint32_t find_first_grad(const struct model *model, const struct param_policy *policy)
{
    uint32_t piece = 0;
    for (; piece < model->n_piece; piece++) {
        const uint32_t *params = &model->piece_params[model->pieces[piece].param];
        for (uint32_t i = 0; i < model->pieces[piece].n_param; i++)
            if (policy[params[i]].has_grad)
                return piece;
    }
    return piece;
}

/* The last may be shorter. */
static uint64_t chunks_of(uint64_t seq)
{
    return seq / DELTA_CHUNK + (seq % DELTA_CHUNK != 0);
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
                                     .first_grad = find_first_grad(model, policy)};
    uint64_t batch = table->options.batch;
    bool too_large = false;
    builder->dims[DIM_ONE] = 1;
    builder->dims[DIM_T] = body_times(&too_large, batch, table->options.seq);
    builder->dims[DIM_H] = dims->hidden;
    builder->dims[DIM_Q] = body_times(&too_large, dims->heads, dims->head_dim);
    builder->dims[DIM_KV] = body_times(&too_large, dims->kv_heads, dims->head_dim);
    builder->dims[DIM_QKV] = builder->dims[DIM_Q];
    body_add(&too_large, &builder->dims[DIM_QKV], body_times(&too_large, 2, builder->dims[DIM_KV]));
    builder->dims[DIM_F] = dims->intermediate;
    builder->dims[DIM_GATE_UP] = body_times(&too_large, 2, dims->intermediate);
    builder->dims[DIM_NH] = dims->heads;
    builder->dims[DIM_V] = dims->vocab;
    builder->dims[DIM_BH] = body_times(&too_large, batch, dims->heads);
    builder->dims[DIM_S] = table->options.seq;
    builder->dims[DIM_D] = dims->head_dim;
    builder->dims[DIM_P] = dims->positions;
    builder->dims[DIM_C] = body_times(&too_large, DELTA_CHUNK, dims->heads);
    builder->dims[DIM_STATE] =
        body_times(&too_large, builder->dims[DIM_Q], dims->head_dim) / DELTA_CHUNK;
    builder->dims[DIM_CHUNKS] = body_times(&too_large, batch, chunks_of(table->options.seq));
    builder->dims[DIM_STATES] = body_times(&too_large, builder->dims[DIM_Q], dims->head_dim);
    builder->dims[DIM_R] = model->lora_rank;
    if (too_large)
        return err_set(err, STATUS_INPUT,
                       "batch times sequence or heads passes 2^62, use a smaller batch");
    return STATUS_OK;
}

/* ---- one pair ----------------------------------------------------------------------------- */

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
        if (slot == SLOT_D_IN && !walk->pair.has_d_in)
            tensor = NO_TENSOR;
        walk_push_slot(walk, tensor,
                       slot == SLOT_IN || slot == SLOT_OUT ? CLASS_ACTIVATION : CLASS_TEMPORARY);
        if (tensor != NO_TENSOR && !(slot == SLOT_D_IN && walk->pair.d_in_place))
            walk_cell(walk, part, tensor)->slot = slot;
    }
    for (uint32_t p = 0; p < recipe->n_part; p++)
        for (const uint8_t *grad = recipe->parts[p]->grads; *grad; grad++)
            walk->cells[p][*grad].slot = walk_push_grad(walk);
    if (recipe->parts[0]->all_grads)
        while (walk->pair.n_grad < walk->builder->model->pieces[walk->pair.piece].n_param)
            walk_push_grad(walk);
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

/* Where anything has a gradient, it is computed from that of the output. */
static bool has_d_out(const struct walk *walk)
{
    bool has = walk->pair.has_d_in;
    for (uint32_t i = 0; i < walk->pair.n_grad; i++)
        has |= walk->table->slots[walk->pair.slot + SLOT_GRAD + i].bytes > 0;
    return has;
}

/* A checkpointed block of which backward needs no tensor is no region, and saves nothing. */
static bool makes_region(struct walk *walk)
{
    struct steps recompute;
    if (walk->recipe->ac == AC_NONE)
        return false;
    walk->phase = RECOMPUTE;
    walk_list_steps(walk, &recompute);
    return walk_find_stop(walk, &recompute) > 0 ||
           walk_cell(walk, 0, walk->recipe->parts[0]->boundary[SLOT_IN])->wanted;
}

bool walk_recomputes_all(const struct walk *walk)
{
    const struct body_options *options = &walk->table->options;
    return options->full_recompute && !body_blocks_compile(walk->builder->model, options->ops);
}

/* To the end, where the output is made again that the next block has been given long ago. */
static void write_whole(struct walk *walk, const struct steps *steps)
{
    const uint32_t last = walk->recipe->n_part - 1;
    struct cell *out = walk_cell(walk, last, walk->recipe->parts[last]->boundary[SLOT_OUT]);

    out->slot = NO_SLOT;
    walk_write(walk, steps, steps->n);
    walk_drop(walk, out->slot);
    out->slot = SLOT_OUT;
}

static void write_recompute(struct walk *walk)
{
    struct steps steps;

    walk->phase = RECOMPUTE;
    walk_list_steps(walk, &steps);
    if (walk_recomputes_all(walk))
        write_whole(walk, &steps);
    else
        walk_write(walk, &steps, walk_find_stop(walk, &steps));
}

static void write_bodies(struct walk *walk)
{
    struct steps steps, backward;
    walk->phase = BACKWARD;
    walk_list_steps(walk, &backward);
    walk_find_wanted(walk, &backward);
    const bool region = makes_region(walk);
    if (region)
        walk_hold(walk, &backward);

    walk->pair.forward = body_begin(walk);
    walk->phase = region ? REGION : FORWARD;
    walk_list_steps(walk, &steps);
    walk_write(walk, &steps, steps.n);
    walk->pair.in_dies_in_forward = body_end(walk, walk->pair.forward);

    walk->pair.backward = body_begin(walk);
    if (region)
        write_recompute(walk);
    walk->phase = BACKWARD;
    if (walk->recipe->parts[0]->all_grads)
        walk_bear_grads(walk);
    walk_write(walk, &backward, backward.n);
    walk->pair.in_dies_in_backward = body_end(walk, walk->pair.backward);
}

/* Whether the input of a piece, or of the loss behind them all, was computed from what is trained. */
static bool wants_d_in(const struct body_builder *builder, const struct body_recipe *recipe,
                       uint32_t piece)
{
    return recipe->parts[0]->boundary[SLOT_D_IN] != NO_TENSOR && builder->first_grad < piece;
}

static enum status add_pair(struct body_builder *builder, const struct body_recipe *recipe,
                            uint32_t piece, struct err *err)
{
    struct body_table *table = builder->table;
    const uint8_t *boundary = recipe->parts[0]->boundary;
    const bool has_d_in = wants_d_in(builder, recipe, piece);
    struct walk walk = {
        .builder = builder,
        .table = table,
        .recipe = recipe,
        .pair = {.kind = (uint8_t)recipe->kind,
                 .slot = table->n_slot,
                 .piece = piece,
                 .has_d_in = has_d_in,
                 .d_in_place = has_d_in && boundary[SLOT_D_IN] == boundary[SLOT_D_OUT]},
    };
    bind_boundary(&walk);
    walk.pair.has_d_out = has_d_out(&walk);
    walk.alive[SLOT_IN] = true;
    walk.alive[SLOT_D_OUT] = walk.pair.has_d_out;
    write_bodies(&walk);
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

/* ---- which pairs -------------------------------------------------------------------------- */

/* Two pieces whose parameters have the same sizes, dtypes and gradients, one by one. */
static bool same_grads(const struct body_builder *builder, uint32_t a, uint32_t b, uint32_t n_grad)
{
    const struct model *model = builder->model;
    const uint32_t *of_a = &model->piece_params[model->pieces[a].param];
    const uint32_t *of_b = &model->piece_params[model->pieces[b].param];
    for (uint32_t i = 0; i < n_grad; i++) {
        const struct param_policy *p = &builder->policy[of_a[i]], *q = &builder->policy[of_b[i]];
        if (model->params[of_a[i]].numel != model->params[of_b[i]].numel ||
            p->has_grad != q->has_grad || p->grad != q->grad || p->compute != q->compute)
            return false;
    }
    return true;
}

/* Of the pairs from first on, one that serves the piece; NO_PAIR where none does. */
static uint32_t find_pair(const struct body_builder *builder, const struct body_recipe *recipe,
                          uint32_t first, uint32_t piece)
{
    const struct body_table *table = builder->table;
    const bool has_d_in = wants_d_in(builder, recipe, piece);
    for (uint32_t i = first; i < table->n_pair; i++)
        if (table->pairs[i].has_d_in == has_d_in && (table->pairs[i].piece == 0) == (piece == 0) &&
            same_grads(builder, table->pairs[i].piece, piece, table->pairs[i].n_grad))
            return i;
    return NO_PAIR;
}

/* A block that is checkpointed has no halves. */
static bool is_of(const struct body_builder *builder, uint32_t piece,
                  const struct body_recipe *recipe)
{
    const struct piece *is = &builder->model->pieces[piece];
    if (recipe->kind == BODY_BLOCK ? !body_piece_starts_block(builder->model, piece)
                                   : is->kind != recipe->kind)
        return false;
    const bool in_block = is->kind == BODY_ATTENTION || is->kind == BODY_MLP;
    return !in_block || body_options_ac(&builder->table->options, is->layer) == recipe->ac;
}

enum status body_builder_add(struct body_builder *builder, const struct body_recipe *recipe,
                             struct err *err)
{
    struct body_table *table = builder->table;
    uint32_t *of = recipe->kind == BODY_BLOCK ? table->of_block : table->of_piece;
    uint32_t *outside = recipe->kind == BODY_LOSS     ? &table->of_loss
                        : recipe->kind == BODY_METRIC ? &table->of_metric
                                                      : NULL;
    const uint32_t first = table->n_pair;
    enum status status = STATUS_OK;

    if (outside) {
        *outside = first;
        return add_pair(builder, recipe, builder->model->n_piece, err);
    }
    for (uint32_t i = 0; i < builder->model->n_piece && !status; i++) {
        if (!is_of(builder, i, recipe))
            continue;
        of[i] = find_pair(builder, recipe, first, i);
        if (of[i] == NO_PAIR) {
            of[i] = table->n_pair;
            status = add_pair(builder, recipe, i, err);
        }
    }
    return status;
}
