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
    [NATIVE] = {"native", OPS_NATIVE, NORM_FUSED},
};
const char *const ac_names[AC_N] = {[AC_NONE] = "none", [AC_FULL] = "full", [AC_OP] = "op"};

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
const struct dims small_llama = {.layers = 2,
                                 .hidden = 64,
                                 .intermediate = 160,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 16,
                                 .vocab = 256};
const struct dims small_gpt = {.layers = 2,
                               .hidden = 64,
                               .intermediate = 256,
                               .heads = 4,
                               .kv_heads = 4,
                               .head_dim = 16,
                               .vocab = 256,
                               .positions = 256,
                               .tied = true};
const struct dims small_kda = {.layers = 2,
                               .hidden = 64,
                               .intermediate = 160,
                               .heads = 2,
                               .kv_heads = 2,
                               .head_dim = 32,
                               .vocab = 256};

struct body_table bodies_of(const struct dims *dims, uint64_t batch, uint64_t seq,
                            const struct profile *profile, enum checkpointing ac,
                            struct arena *arena)
{
    const struct body_options options = {batch,        seq,           DTYPE_BF16,
                                         profile->ops, profile->norm, .ac = ac};
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

struct model model_of(const struct arch *arch, const struct dims *dims, struct arena *arena)
{
    struct model model;
    struct err err = {0};
    if (arch->build(dims, arena, &model, &err))
        tap_bail(err.text);
    model.name = "by hand";
    model.arch = arch;
    model.dims = *dims;
    return model;
}

struct body_table bodies_with(const struct model *model, const struct param_policy *policy,
                              const struct body_options *options, struct arena *arena)
{
    struct body_table table;
    struct err err = {0};
    if (body_table_build(model, policy, options, arena, &table, &err))
        tap_bail(err.text);
    return table;
}

struct body_table default_bodies(const struct arch *arch, const struct dims *dims,
                                 const struct body_options *options, struct arena *arena)
{
    const struct model model = model_of(arch, dims, arena);
    return bodies_with(&model, default_policy(&model, arena), options, arena);
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

static void list_body(struct events *events, const struct body_table *table,
                      const struct body_pair *pair, bool backward)
{
    const struct body *body = &table->bodies[backward ? pair->backward : pair->forward];
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
            (struct event){alloc, backward, tape->id, table->slots[pair->slot + tape->id].bytes,
                           alloc ? next_op(table, tape) : last};
    }
}

struct events events_of_pair(const struct body_table *table, const struct body_pair *pair)
{
    struct events events = {.n = 0};
    list_body(&events, table, pair, false);
    events.n_forward = events.n;
    list_body(&events, table, pair, true);
    return events;
}

struct events events_of(const struct body_table *table, enum body_kind kind)
{
    return events_of_pair(table, pair_of(table, kind));
}

/* Births and deaths of each slot; false where one of them comes at a wrong moment. */
static bool count_events(const struct body_table *table, const struct body_pair *pair,
                         uint8_t births[MAX_EVENTS], uint8_t deaths[MAX_EVENTS])
{
    const struct events events = events_of_pair(table, pair);
    births[SLOT_IN] = 1;
    for (int i = 0; i < events.n; i++) {
        uint32_t slot = events.at[i].slot;
        if (i == events.n_forward)
            births[SLOT_D_OUT] = pair->has_d_out;
        uint8_t *count = events.at[i].alloc ? births : deaths;
        if (slot >= pair->n_slot || ++count[slot] != 1 || births[slot] != 1 ||
            (events.at[i].alloc && deaths[slot]))
            return false;
    }
    return true;
}

bool pair_is_sound(const struct body_table *table, const struct body_pair *pair, bool tied)
{
    uint8_t births[MAX_EVENTS] = {0}, deaths[MAX_EVENTS] = {0};
    if (!count_events(table, pair, births, deaths))
        return false;
    for (uint32_t slot = SLOT_GRAD; slot < pair->n_slot; slot++) {
        const bool is_grad = slot < SLOT_GRAD + pair->n_grad;
        const bool of_head = tied && pair->kind == BODY_EMBEDDING && slot == SLOT_GRAD;
        const bool born = !is_grad || (table->slots[pair->slot + slot].bytes > 0 && !of_head);
        if (births[slot] != born || deaths[slot] != !is_grad)
            return false;
    }
    const bool d_out_dies =
        pair->has_d_out && !pair->d_in_place && table->slots[pair->slot + SLOT_D_OUT].bytes > 0;
    return deaths[SLOT_OUT] == 0 && deaths[SLOT_D_IN] == 0 && deaths[SLOT_D_OUT] == d_out_dies &&
           births[SLOT_D_IN] == (pair->has_d_in && !pair->d_in_place) &&
           (pair->has_d_out || table->bodies[pair->backward].n_tape == 0);
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
