#ifndef TESTS_BODY_MAKE_H
#define TESTS_BODY_MAKE_H
/*
 * Bodies of a llama of given sizes, and the births and deaths of one pair as a list.
 */
#include "src/body.h"

enum { MAX_EVENTS = 512 };

/* The four ways to run a block; the last two do not ask how the norm would be run. */
enum { EAGER, EAGERFUSED, COMPILE, NATIVE, PROFILE_N };
struct profile {
    const char *name; /* as in the names of the golden files */
    enum ops_profile ops;
    enum norm_kind norm;
};
extern const struct profile profiles[PROFILE_N];
extern const char *const ac_names[AC_N];
extern const struct dims llama8b, llama7b; /* one layer of each */
extern const struct dims small_llama, small_gpt, small_kda;

/* Ends the test where the bodies cannot be made. */
struct body_table bodies_of(const struct dims *dims, uint64_t batch, uint64_t seq,
                            const struct profile *profile, enum checkpointing ac,
                            struct arena *arena);

struct model model_of(const struct arch *arch, const struct dims *dims, struct arena *arena);
struct body_table bodies_with(const struct model *model, const struct param_policy *policy,
                              const struct body_options *options, struct arena *arena);

/* With these names, dtypes and gradients that nobody chose. */
struct body_table default_bodies(const struct arch *arch, const struct dims *dims,
                                 const struct body_options *options, struct arena *arena);
const struct param_policy *default_policy(const struct model *model, struct arena *arena);

/* The first pair of the kind; NULL where none is of it. */
const struct body_pair *pair_of(const struct body_table *table, enum body_kind kind);
const struct body *body_of(const struct body_table *table, enum body_kind kind, bool backward);
const struct slot *slot_of(const struct body_table *table, enum body_kind kind, uint32_t slot);

struct event {
    bool alloc, backward;
    uint32_t slot;
    uint64_t bytes;
    const struct op *op; /* for which it is born, after which it dies */
};

/*
 * Forward's events, then backward's. A sum of gradients in place births nothing and is passed over
 * as the operator after which something dies: the node that made the summand is named.
 */
struct events {
    struct event at[MAX_EVENTS];
    int n_forward, n;
};
struct events events_of(const struct body_table *table, enum body_kind kind);
struct events events_of_pair(const struct body_table *table, const struct body_pair *pair);

/*
 * Each slot is born and dies once, in this order; only the boundary is left, with the gradients of
 * all parameters that have one. tied: that of the embedding is the head's.
 */
bool pair_is_sound(const struct body_table *table, const struct body_pair *pair, bool tied);

/* Bytes over the events of one body. */
struct extremes {
    long long net, rise;
};
struct extremes extremes_of(const struct events *events, bool backward, bool with_input);

#endif
