/*
 * See body_make.h. Models are made by hand, so that no reader of models is needed here.
 */
#include "tests/body_make.h"

#include "src/arch/arch.h"
#include "tests/tap.h"

const struct profile profiles[PROFILE_N] = {
    [EAGER] = {"eager", OPS_TORCH_EAGER, NORM_COMPOSITE},
    [EAGERFUSED] = {"eagerfused", OPS_TORCH_EAGER, NORM_FUSED},
    [COMPILE] = {"compile", OPS_TORCH_COMPILE, NORM_FUSED},
};
const char *const ac_names[AC_N] = {[AC_NONE] = "none", [AC_FULL] = "full"};

const struct dims llama8b = {.layers = 1,
                             .hidden = 4096,
                             .intermediate = 14336,
                             .heads = 32,
                             .kv_heads = 8,
                             .head_dim = 128,
                             .vocab = 128256};
const struct dims llama7b = {.layers = 1,
                             .hidden = 4096,
                             .intermediate = 11008,
                             .heads = 32,
                             .kv_heads = 32,
                             .head_dim = 128,
                             .vocab = 32000};

struct body_table bodies_of(const struct dims *dims, uint64_t batch, uint64_t seq,
                            const struct profile *profile, enum checkpointing ac,
                            struct arena *arena)
{
    const struct body_options options = {batch, seq, DTYPE_BF16, profile->ops, profile->norm, ac};
    return default_bodies(&arch_llama, dims, &options, arena);
}

const struct param_policy *default_policy(const struct model *model, struct arena *arena)
{
    const struct policy_options options = policy_options_default();
    struct param_policy *policy;
    struct err err = {0};
    if (policy_resolve(model, &options, arena, &policy, &err))
        tap_bail(err.text);
    return policy;
}

struct body_table default_bodies(const struct arch *arch, const struct dims *dims,
                                 const struct body_options *options, struct arena *arena)
{
    struct model model;
    struct body_table table;
    struct err err = {0};
    if (arch->build(dims, arena, &model, &err))
        tap_bail(err.text);
    model.name = "by hand";
    model.arch = arch;
    model.dims = *dims;
    if (body_table_build(&model, default_policy(&model, arena), options, arena, &table, &err))
        tap_bail(err.text);
    return table;
}

const struct body_pair *pair_of(const struct body_table *table, enum body_kind kind)
{
    for (uint32_t i = 0; i < table->n_pair; i++)
        if (table->pairs[i].kind == kind)
            return &table->pairs[i];
    return NULL;
}

const struct body *body_of(const struct body_table *table, enum body_kind kind, bool backward)
{
    const struct body_pair *pair = pair_of(table, kind);
    return &table->bodies[backward ? pair->backward : pair->forward];
}

const struct slot *slot_of(const struct body_table *table, enum body_kind kind, uint32_t slot)
{
    return &table->slots[pair_of(table, kind)->slot + slot];
}

static const struct op *next_op(const struct body_table *table, const struct tape *tape)
{
    while (tape->act != TAPE_OP)
        tape++;
    return &table->ops[tape->id];
}

static void list_body(struct events *events, const struct body_table *table, enum body_kind kind,
                      bool backward)
{
    const struct body *body = body_of(table, kind, backward);
    const struct op *last = NULL;
    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *tape = &table->tape[body->tape + i];
        if (tape->act == TAPE_OP) {
            const struct op *op = &table->ops[tape->id];
            if (op->kind != OP_ADD || op->pass != PASS_DGRAD)
                last = op;
            continue;
        }
        bool alloc = tape->act == TAPE_ALLOC;
        if (events->n == MAX_EVENTS)
            tap_bail("a body has more events than the test can hold");
        events->at[events->n++] =
            (struct event){alloc, backward, tape->id, slot_of(table, kind, tape->id)->bytes,
                           alloc ? next_op(table, tape) : last};
    }
}

struct events events_of(const struct body_table *table, enum body_kind kind)
{
    struct events events = {.n = 0};
    list_body(&events, table, kind, false);
    events.n_forward = events.n;
    list_body(&events, table, kind, true);
    return events;
}

struct extremes extremes_of(const struct events *events, bool backward, bool with_input)
{
    struct extremes sum = {0};
    for (int i = 0; i < events->n; i++) {
        const struct event *event = &events->at[i];
        if (event->backward != backward || (event->slot == SLOT_IN && !with_input))
            continue;
        sum.net += event->alloc ? (long long)event->bytes : -(long long)event->bytes;
        sum.rise = sum.net > sum.rise ? sum.net : sum.rise;
    }
    return sum;
}
