/*
 * A recipe on its way to tapes. Internal to src/body_*.c.
 *
 * A cell is a tensor of one part, a slot is what a cell is bound to: the boundary's and the
 * gradients' once and for all, any other anew at each birth, so that a recompute has slots of its
 * own. A step is a row that holds in a phase. body_autograd.c finds which steps run and where
 * tensors end, body_tape.c writes that down, body_operands.c says what operators compute with,
 * body_builder.c has the pairs made.
 */
#ifndef SRC_BODY_WALK_H
#define SRC_BODY_WALK_H

#include "src/body_builder.h"

#define NO_SLOT UINT32_MAX
enum { BODY_MAX_STEPS = 192, BODY_MAX_SLOTS = 4 * BODY_MAX_TENSORS };

/* REGION: forward that keeps its input, and what the cache does */
enum phase { FORWARD, REGION, RECOMPUTE, BACKWARD };

struct cell {
    uint32_t slot;
    uint32_t last; /* the operator of backward that names it last, by its first step */
    bool wanted;   /* a step of backward that runs reads it, or it is what backward is for */
    bool made;     /* by a step of backward that runs, whatever forward made under that name */
    bool held;     /* saved though no step reads it */
};

struct step {
    const struct body_row *row;
    uint8_t part;
    bool runs;
    bool cached;                  /* selective checkpointing keeps its results, and runs it once */
    uint8_t reads[BODY_ARGS + 8]; /* the row's USES, and what it reads of its operands */
};

struct steps {
    struct step at[BODY_MAX_STEPS];
    uint32_t n;
};

enum { BODY_MAX_UNCAST = 8 };

struct walk {
    struct body_builder *builder;
    struct body_table *table;
    const struct body_recipe *recipe;
    struct body_pair pair;
    struct cell cells[BODY_MAX_PARTS][BODY_MAX_TENSORS];
    bool alive[BODY_MAX_SLOTS], in_cache[BODY_MAX_SLOTS];
    uint8_t born_in[BODY_MAX_SLOTS]; /* enum phase */
    enum phase phase;
    /* Gradients of the present operator that have to be cast: what it yields, what that becomes. */
    struct {
        uint32_t slot, grad;
    } uncast[BODY_MAX_UNCAST];
    uint32_t n_uncast;
    uint64_t slot_bytes, flops;
    bool too_large; /* sizes are checked as they are made, and asked about once, at the end */
};

static inline bool tensors_have(const uint8_t *tensors, uint16_t tensor)
{
    while (*tensors && *tensors != tensor)
        tensors++;
    return *tensors != NO_TENSOR;
}

static inline uint32_t walk_first_inner_slot(const struct walk *walk)
{
    return SLOT_GRAD + walk->pair.n_grad;
}

/* A compiled block leaves out what nobody needs, wherever it is said to stop. */
bool walk_recomputes_all(const struct walk *walk);

/* One tensor may go by several names: between parts, and by a part's own list. */
struct cell *walk_cell(struct walk *walk, uint32_t part, uint8_t tensor);

/* Outside of backward: whether the cell's tensor outlives its variable. */
bool walk_keeps(const struct walk *walk, const struct cell *cell);

/* The steps of the present phase, all running. */
void walk_list_steps(struct walk *walk, struct steps *out);

/* The step that starts the next operator. */
uint32_t steps_next(const struct steps *steps, uint32_t at);

/* Of backward's steps, lets those run that a gradient is made with, and marks what they want. */
void walk_find_wanted(struct walk *walk, struct steps *backward);
void walk_hold(struct walk *walk, const struct steps *backward);

/* The step from which on a recompute bears nothing that is saved. */
uint32_t walk_find_stop(struct walk *walk, const struct steps *recompute);

/* All gradients that there are, as backward starts. */
void walk_bear_grads(struct walk *walk);

/* The operands of a row's operator, behind those of all others. */
void walk_name_operands(struct walk *walk, const struct step *step, struct op *op);
/* Of profile native: the same of a gradient's cast. */
void walk_name_cast(struct walk *walk, uint32_t from, uint32_t grad, struct op *op);
/* The gradient that the operator yields in this slot, not cast yet; or the slot itself. */
uint32_t walk_uncast(const struct walk *walk, uint32_t slot);
/* Of the gradient in this slot. */
uint32_t walk_param_of(const struct walk *walk, uint32_t slot);

/* Writes the present phase: births and operators up to stop, deaths to the end. */
void walk_write(struct walk *walk, const struct steps *steps, uint32_t stop);

/* The end of an inner slot that no step names any more. */
void walk_drop(struct walk *walk, uint32_t slot);

/* A slot of the pair; its index. */
uint32_t walk_push_slot(struct walk *walk, uint8_t tensor, enum memory_class memory_class);
/* The next gradient of the piece: its size is the parameter's, in the dtype of its policy. */
uint32_t walk_push_grad(struct walk *walk);

/* A product, or 0 and *too_large. */
uint64_t body_times(bool *too_large, uint64_t a, uint64_t b);
void body_add(bool *too_large, uint64_t *sum, uint64_t term);

#endif
