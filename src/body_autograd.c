/*
 * What autograd runs of a recipe, and how long it keeps what; the rules are in body_builder.h.
 *
 * Gradients are followed from what is asked for, the parameters' and the input's, back to that of
 * the output: a row of backward runs if it makes or changes something wanted, and then wants what
 * it reads. This finds what PyTorch finds from the leaves on, node by node (requires_grad): a
 * gradient is wanted if and only if its tensor was computed from a leaf that has one.
 */
#include <assert.h>

#include "src/body_walk.h"

/* In the terms of enum row_when. */
static bool holds(const struct walk *walk, uint8_t when)
{
    const struct dims *dims = &walk->builder->model->dims;
    const struct body_options *options = &walk->table->options;
    unsigned facts = dims->heads != dims->kv_heads ? WHEN_REPEATED : WHEN_UNREPEATED;
    facts |= walk->phase == RECOMPUTE ? WHEN_RECOMPUTE : WHEN_FORWARD;
    facts |= options->batch > 1 ? WHEN_BATCHED : WHEN_SINGLE;
    facts |= options->compute == DTYPE_FP32 ? WHEN_UNCAST : WHEN_CAST;
    return (when & ~facts) == 0;
}

struct cell *walk_cell(struct walk *walk, uint32_t part, uint8_t tensor)
{
    const struct body_recipe *recipe = walk->recipe;
    const struct body_same *same = recipe->parts[part]->same;
    for (; same && same->name; same++)
        if (same->name == tensor && holds(walk, same->when))
            tensor = same->is;
    const uint8_t *boundary = recipe->parts[part]->boundary;
    if (part > 0 && tensor == boundary[SLOT_IN])
        tensor = recipe->parts[--part]->boundary[SLOT_OUT];
    else if (part + 1 < recipe->n_part && tensor == boundary[SLOT_D_OUT])
        tensor = recipe->parts[++part]->boundary[SLOT_D_IN];
    assert(tensor != NO_TENSOR && tensor < BODY_MAX_TENSORS);
    return &walk->cells[part][tensor];
}

/* For backward, by autograd or by a region. */
static bool is_saved(const struct cell *cell)
{
    return (cell->wanted && !cell->made) || cell->held;
}

bool walk_keeps(const struct walk *walk, const struct cell *cell)
{
    if (cell->slot != NO_SLOT && walk->in_cache[cell->slot])
        return true;
    return walk->phase == REGION ? cell->slot == SLOT_IN : is_saved(cell);
}

/* ---- steps -------------------------------------------------------------------------------- */

static void list_reads(struct step *step)
{
    const struct body_row *row = step->row;
    uint32_t n = 0;
    for (const uint8_t *tensor = row->uses; *tensor; tensor++)
        step->reads[n++] = *tensor;
    for (const uint16_t *arg = row->args; *arg; arg++)
        if (*arg < BODY_PARAM && !tensors_have(row->born, *arg) &&
            !tensors_have(row->changes, *arg))
            step->reads[n++] = (uint8_t)*arg;
}

static void add_step(const struct walk *walk, struct steps *steps, uint32_t part,
                     const struct body_row *row)
{
    if (!holds(walk, row->when))
        return;
    assert(steps->n < BODY_MAX_STEPS);
    struct step *step = &steps->at[steps->n++];
    *step = (struct step){.row = row, .part = (uint8_t)part, .runs = true};
    list_reads(step);
}

static void add_late(struct walk *walk, struct steps *steps)
{
    const bool backward = walk->phase == BACKWARD;
    const uint32_t n_part = walk->recipe->n_part;
    bool more = true;
    for (uint32_t i = 0; more; i++) {
        more = false;
        for (uint32_t p = 0; p < n_part; p++) {
            const uint32_t at = backward ? n_part - 1 - p : p;
            const struct body_part *part = walk->recipe->parts[at];
            const struct body_rows *late =
                backward ? &part->late_backward[walk->recipe->ac] : &part->late_forward;
            if (i < late->n) {
                add_step(walk, steps, at, &late->row[i]);
                more = true;
            }
        }
    }
}

/* torchtitan's list: attention, and of the products without a bias the first, third, ... */
static void find_cached(const struct walk *walk, struct steps *steps)
{
    const bool biased = walk->builder->model->dims.bias;
    uint32_t n_product = 0;
    for (uint32_t i = 0; i < steps->n; i++) {
        struct step *step = &steps->at[i];
        if (step->row->kind == OP_MM && (!biased || step->row->unbiased))
            step->cached = ++n_product % 2 == 1;
        else
            step->cached = step->row->kind == OP_SDPA;
    }
}

void walk_list_steps(struct walk *walk, struct steps *out)
{
    const bool backward = walk->phase == BACKWARD;
    const uint32_t n_part = walk->recipe->n_part;
    out->n = 0;
    for (uint32_t p = 0; p < n_part; p++) {
        const uint32_t at = backward ? n_part - 1 - p : p;
        const struct body_part *part = walk->recipe->parts[at];
        const struct body_rows *lists = backward ? part->backward : part->forward;
        for (int list = 0; list < BODY_LISTS; list++)
            for (uint32_t i = 0; i < lists[list].n; i++)
                add_step(walk, out, at, &lists[list].row[i]);
    }
    add_late(walk, out);
    if (walk->recipe->ac == AC_OP && (walk->phase == REGION || walk->phase == RECOMPUTE))
        find_cached(walk, out);
}

uint32_t steps_next(const struct steps *steps, uint32_t at)
{
    do
        at++;
    while (at < steps->n && steps->at[at].row->also);
    return at;
}

/* ---- what is wanted ----------------------------------------------------------------------- */

/* The gradients that the pair is there for. */
static void want_results(struct walk *walk)
{
    const struct body_recipe *recipe = walk->recipe;
    if (walk->pair.has_d_in)
        walk_cell(walk, 0, recipe->parts[0]->boundary[SLOT_D_IN])->wanted = true;
    for (uint32_t p = 0; p < recipe->n_part; p++)
        for (const uint8_t *grad = recipe->parts[p]->grads; *grad; grad++) {
            struct cell *cell = &walk->cells[p][*grad];
            cell->wanted = walk->table->slots[walk->pair.slot + cell->slot].bytes > 0;
        }
}

static bool any_wanted(struct walk *walk, uint32_t part, const uint8_t *tensors)
{
    for (; *tensors; tensors++)
        if (walk_cell(walk, part, *tensors)->wanted)
            return true;
    return false;
}

static void want_all(struct walk *walk, uint32_t part, const uint8_t *tensors)
{
    for (; *tensors; tensors++)
        walk_cell(walk, part, *tensors)->wanted = true;
}

void walk_find_wanted(struct walk *walk, struct steps *backward)
{
    want_results(walk);
    for (uint32_t i = backward->n; i-- > 0;) {
        struct step *step = &backward->at[i];
        const struct body_row *row = step->row;
        if (row->kind == BODY_NO_OP)
            continue;
        step->runs =
            any_wanted(walk, step->part, row->born) || any_wanted(walk, step->part, row->changes);
        if (!step->runs)
            continue;
        for (const uint8_t *born = row->born; *born; born++)
            walk_cell(walk, step->part, *born)->made = true;
        want_all(walk, step->part, step->reads);
        want_all(walk, step->part, row->dies);
    }
}

void walk_hold(struct walk *walk, const struct steps *backward)
{
    for (uint32_t i = 0; i < backward->n; i++)
        if (backward->at[i].row->holds)
            for (const uint8_t *tensor = backward->at[i].row->dies; *tensor; tensor++)
                walk_cell(walk, backward->at[i].part, *tensor)->held = true;
}

uint32_t walk_find_stop(struct walk *walk, const struct steps *recompute)
{
    uint32_t stop = 0;
    for (uint32_t i = 0; i < recompute->n; i++) {
        const struct step *step = &recompute->at[i];
        for (const uint8_t *born = step->row->born; *born; born++)
            if (is_saved(walk_cell(walk, step->part, *born)))
                stop = i + 1;
    }
    return stop;
}
