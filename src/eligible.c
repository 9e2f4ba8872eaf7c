/*
 * The rules; see eligible.h. Each is one function that looks at one unit and names two parameters
 * that contradict each other.
 */
#include "src/eligible.h"

#include <stddef.h>

const char *arrange_name(enum arrange arrange)
{
    static const char *const names[] = {
#define X(id, name) name,
        ARRANGES(X)
#undef X
    };
    return names[arrange];
}

const char *eligible_arrange(enum behavior behavior, enum arrange arrange)
{
    if (arrange != ARRANGE_PRECAST)
        return NULL;
    if (behavior == BEHAVIOR_TORCH_2_11)
        return "torch-2.11 has no units of several compute dtypes, so that nothing is cast before "
               "packing";
    if (behavior == BEHAVIOR_TORCH_2_15)
        return "torch-2.15 has gradients in the reduce dtype already, so that nothing is left to "
               "cast";
    if (behavior == BEHAVIOR_TORCH_2_15_0)
        return "torch-2.15.0 casts gradients while it packs them";
    return NULL;
}

static bool is_of_2_15(enum behavior behavior)
{
    return behavior == BEHAVIOR_TORCH_2_15 || behavior == BEHAVIOR_TORCH_2_15_0;
}

static const struct param_policy *policy_of(const struct eligible_unit *unit, uint32_t i)
{
    return &unit->policy[unit->params[i]];
}

static const char *name_of(const struct eligible_unit *unit, uint32_t i)
{
    return unit->model->params[unit->params[i]].name;
}

/* Where in the policy a dtype stands. */
enum column { COLUMN_STORAGE, COLUMN_COMPUTE, COLUMN_REDUCE };

static enum dtype column_of(const struct param_policy *policy, enum column column)
{
    const uint8_t dtypes[] = {policy->storage, policy->compute, policy->reduce};
    return (enum dtype)dtypes[column];
}

/* What is frozen is stored as it likes and never reduced; but it is gathered with the others. */
static bool counts(const struct param_policy *policy, enum column column)
{
    return policy->trainable || column == COLUMN_COMPUTE;
}

/* The first parameter that counts, and the first that differs from it; false where all agree. */
static bool find_pair(const struct eligible_unit *unit, enum column column, uint32_t *a,
                      uint32_t *b)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < unit->n_param; i++) {
        if (!counts(policy_of(unit, i), column))
            continue;
        if (first == UINT32_MAX)
            first = i;
        if (column_of(policy_of(unit, i), column) == column_of(policy_of(unit, first), column))
            continue;
        *a = first;
        *b = i;
        return true;
    }
    return false;
}

static uint32_t differ(const struct eligible_unit *unit, enum column column, const char *what,
                       const char *why, struct text *out)
{
    uint32_t a, b;
    if (!find_pair(unit, column, &a, &b))
        return 0;
    text_add(out, "%sunit '%s' mixes %s dtypes: '%s' is %s, '%s' is %s; %s",
             out->length ? "\n" : "", unit->name, what, name_of(unit, a),
             dtype_name(column_of(policy_of(unit, a), column)), name_of(unit, b),
             dtype_name(column_of(policy_of(unit, b), column)), why);
    return 1;
}

/* An override keeps what a parameter is stored in; it cannot make more of it. Units by dtype need no
   override: each has a policy of its own. */
static uint32_t casts_up(const struct eligible_unit *unit, struct text *out)
{
    for (uint32_t i = 0; i < unit->n_param; i++) {
        const struct param_policy *p = policy_of(unit, i);
        if (p->compute != DTYPE_FP32 || p->storage == DTYPE_FP32)
            continue;
        text_add(out,
                 "%sunit '%s': '%s' is stored in %s and computes in fp32; PyTorch takes the "
                 "default or the original dtype only, so store it in fp32",
                 out->length ? "\n" : "", unit->name, name_of(unit, i),
                 dtype_name((enum dtype)p->storage));
        return 1;
    }
    return 0;
}

uint32_t eligible_unit(const struct eligible_unit *unit, enum behavior behavior,
                       enum arrange arrange, struct text *out)
{
    const bool one_reduce = behavior == BEHAVIOR_TORCH_2_11 || is_of_2_15(behavior);
    uint32_t n =
        differ(unit, COLUMN_STORAGE, "storage", "the trainable parameters of a unit need one", out);

    if (behavior == BEHAVIOR_TORCH_2_11)
        n += differ(unit, COLUMN_COMPUTE, "compute",
                    "torch-2.11 needs one per unit, so cut it: --arrange by-dtype", out);
    if (one_reduce)
        n += differ(unit, COLUMN_REDUCE, "reduce", "a unit is reduced in one before torch-pr196626",
                    out);
    if (is_of_2_15(behavior) && arrange != ARRANGE_BY_DTYPE)
        n += casts_up(unit, out);
    return n;
}
