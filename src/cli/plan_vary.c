/*
 * Words of --search to axes and lists; see plan_vary.h.
 */
#include "src/cli/plan_vary.h"

#include "src/cli/prepare.h"
#include "src/plan_ranks.h"

/* What is a list whatever the other options are. */
static const struct {
    enum option_id option;
    const char *values;
} listed[SEARCH_WORD_N] = {
    [SEARCH_AC] = {OPTION_AC, "none,op,every:2,full"},
    [SEARCH_ALLOCATOR] = {OPTION_ALLOCATOR, "caching,expandable"},
    [SEARCH_ARRANGE] = {OPTION_ARRANGE, "native,by-dtype,precast"},
    [SEARCH_HOLD] = {OPTION_REDUCE_INPUTS, "1,2,3"},
    [SEARCH_COMM] = {OPTION_SEPARATE_REDUCE_COMM, "no,yes"},
};

/* What a search alone knows. --jobs is not among them: no answer depends on it. */
static const enum option_id of_search[] = {OPTION_JUDGE, OPTION_FIXED, OPTION_MAX_UNITS,
                                           OPTION_KEEP};

static enum status refuse_without_search(const struct options *options, struct err *err)
{
    for (size_t i = 0; i < sizeof of_search / sizeof *of_search; i++)
        if (option_given(options, of_search[i]))
            return err_set(err, STATUS_USAGE,
                           "--%s is for a search, and --units alone compares the plans that it "
                           "names; leave it out, or say with --search what to vary",
                           option_table[of_search[i]].name);
    return STATUS_OK;
}

static bool any_given(const struct options *options, enum option_id a, enum option_id b)
{
    return option_given(options, a) || option_given(options, b);
}

static unsigned free_axes(const struct options *options)
{
    unsigned axes = AXES_ALL;

    if (any_given(options, OPTION_RESHARD, OPTION_NO_RESHARD))
        axes &= ~(1u << AXIS_RESHARD);
    if (any_given(options, OPTION_PREFETCH, OPTION_PREFETCH_BACKWARD))
        axes &= ~(1u << AXIS_PREFETCH);
    return axes;
}

/* before, then all that divide the number, from least up to below end. */
static const char *divisors(const char *before, uint64_t number, uint64_t least, uint64_t end,
                            struct arena *arena)
{
    const char *list = before;

    for (uint64_t d = least; d < end && d <= number; d++)
        if (number % d == 0)
            list = arena_printf(arena, "%s%s%llu", list, *list ? "," : "", (unsigned long long)d);
    return list;
}

static uint64_t nodes_of(const struct options *options)
{
    return option_given(options, OPTION_NODES)
               ? option_number(options, OPTION_NODES)
               : plan_ranks_nodes(option_number(options, OPTION_GPUS));
}

static void set_list(struct options *options, enum option_id id, const char *list)
{
    if (!option_given(options, id) && *list)
        options_set(options, id, 1, list);
}

/* Replicas of whole nodes, fewer of which would be cut. */
static void list_replicas(struct options *options, struct arena *arena)
{
    const uint64_t nodes = nodes_of(options);

    set_list(options, OPTION_REPLICAS, divisors("", nodes, 1, nodes + 1, arena));
}

/* Groups that share a node, and the node where there are several. */
static void list_reshard(struct options *options, struct arena *arena)
{
    const uint64_t nodes = nodes_of(options),
                   per_node = option_number(options, OPTION_GPUS) / nodes;

    set_list(options, OPTION_RESHARD,
             divisors("auto", per_node, 2, nodes > 1 ? per_node + 1 : per_node, arena));
}

static enum status count_of(const struct options *options, enum option_id id, uint64_t *out,
                            struct err *err)
{
    struct options scratch = *options;

    if (options_take(&scratch, id, option_text(options, id), NULL) != STATUS_OK)
        return err_set(err, STATUS_USAGE, "--search batch needs one value of --%s, not '%.80s'",
                       option_table[id].name, option_text(options, id));
    *out = option_number(&scratch, id);
    return STATUS_OK;
}

/* Of the sequences of a GPU in a step every even share. */
static enum status list_batches(struct options *options, struct arena *arena, uint64_t *sequences,
                                struct err *err)
{
    uint64_t batch = 0, accum = 0, product;
    enum status status = count_of(options, OPTION_BATCH, &batch, err);

    if (status == STATUS_OK)
        status = count_of(options, OPTION_ACCUM, &accum, err);
    if (status != STATUS_OK)
        return status;
    if (__builtin_mul_overflow(batch, accum, &product) || product > PLAN_MAX_ACCUM)
        return err_set(err, STATUS_USAGE,
                       "--search batch shares at most %d sequences of a GPU and step, not those of "
                       "--batch %llu --accum %llu",
                       PLAN_MAX_ACCUM, (unsigned long long)batch, (unsigned long long)accum);
    *sequences = product;
    options_set(options, OPTION_BATCH, 1, divisors("", product, 1, product + 1, arena));
    return STATUS_OK;
}

enum status plan_vary(struct options *options, struct arena *arena, struct plan_found *out,
                      struct err *err)
{
    const bool asked = option_given(options, OPTION_SEARCH);
    const unsigned words = (unsigned)option_number(options, OPTION_SEARCH);

    *out = (struct plan_found){.on = asked || !option_given(options, OPTION_UNITS)};
    if (!out->on)
        return refuse_without_search(options, err);
    out->axes = asked ? words & AXES_ALL : free_axes(options);
    out->objective = (enum objective)option_number(options, OPTION_JUDGE);
    out->halves = words >> SEARCH_SPLIT & 1;
    prepare_units(options); /* of the list: beside FSDP1 other systems start from its units too */
    for (unsigned word = 0; word < SEARCH_WORD_N; word++)
        if (words >> word & 1 && listed[word].values)
            set_list(options, listed[word].option, listed[word].values);
    if (words >> SEARCH_REPLICAS & 1)
        list_replicas(options, arena);
    if (words >> SEARCH_INT_RESHARD & 1)
        list_reshard(options, arena);
    return words >> SEARCH_BATCH & 1 ? list_batches(options, arena, &out->sequences, err)
                                     : STATUS_OK;
}

enum status plan_vary_lists(const struct options *options, const struct plan_found *asked,
                            struct arena *arena, struct plan_lists *out, struct err *err)
{
    const enum status status = plan_lists_read(options, arena, out, err);

    if (status == STATUS_OK && asked->sequences > 0)
        plan_lists_share(out, OPTION_BATCH, OPTION_ACCUM, asked->sequences, arena);
    return status;
}
