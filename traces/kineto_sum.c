/*
 * Records to numbers: sort by what is asked for, then one pass.
 */
#include <stdlib.h>
#include <string.h>

#include "traces/kineto_inner.h"
#include "traces/trace_tracks.h"

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* ---- spreads --------------------------------------------------------------------------------------- */

struct duration {
    uint32_t group;
    int64_t ns;
};

struct durations {
    struct duration *at;
    size_t n, cap;
};

static void add(struct durations *durations, uint32_t group, int64_t ns)
{
    durations->at =
        trace_grow(durations->at, durations->n, &durations->cap, sizeof(*durations->at));
    durations->at[durations->n++] = (struct duration){group, ns};
}

static int by_group_and_time(const void *a, const void *b)
{
    const struct duration *x = a, *y = b;
    return x->group != y->group ? ORDER(x->group, y->group) : ORDER(x->ns, y->ns);
}

static struct kineto_spread spread_of(const struct duration *sorted, size_t n)
{
    struct kineto_spread spread = {.n = n,
                                   .least_ns = sorted[0].ns,
                                   .low_ns = sorted[(n - 1) / 10].ns,
                                   .mid_ns = sorted[(n - 1) / 2].ns,
                                   .high_ns = sorted[n - 1 - (n - 1) / 10].ns,
                                   .most_ns = sorted[n - 1].ns};
    for (size_t i = 0; i < n; i++)
        spread.sum_ns = kineto_add_ns(spread.sum_ns, sorted[i].ns);
    return spread;
}

/* The spread of each group into its place of an array of structs; then the durations are gone. */
static void spread(struct durations *durations, void *first, size_t stride)
{
    if (durations->n > 0)
        qsort(durations->at, durations->n, sizeof(*durations->at), by_group_and_time);
    for (size_t i = 0, end; i < durations->n; i = end) {
        const uint32_t group = durations->at[i].group;
        for (end = i; end < durations->n && durations->at[end].group == group;)
            end++;
        const struct kineto_spread made = spread_of(durations->at + i, end - i);
        memcpy((char *)first + group * stride, &made, sizeof(made));
    }
    free(durations->at);
    *durations = (struct durations){0};
}

/* ---- operations of the GPU ------------------------------------------------------------------------- */

static int by_stream_and_time(const void *a, const void *b)
{
    const struct kineto_gpu *x = a, *y = b;
    if (x->stream != y->stream)
        return ORDER(x->stream, y->stream);
    return x->begin_ns != y->begin_ns ? ORDER(x->begin_ns, y->begin_ns)
                                      : ORDER(x->dur_ns, y->dur_ns);
}

static void count_op(struct kineto_stream *stream, const struct kineto_gpu *gpu)
{
    const bool first = stream->n_kernel + stream->n_copy + stream->n_set == 0;
    const int64_t end_ns = gpu->begin_ns + gpu->dur_ns;
    const int64_t covered_ns = first ? gpu->begin_ns : stream->end_ns;
    stream->n_copy += gpu->work == KINETO_COPY;
    stream->n_set += gpu->work == KINETO_SET;
    stream->n_kernel += gpu->work != KINETO_COPY && gpu->work != KINETO_SET;
    if (first)
        stream->begin_ns = stream->end_ns = gpu->begin_ns;
    if (end_ns <= covered_ns)
        return;
    stream->busy_ns += end_ns - (gpu->begin_ns > covered_ns ? gpu->begin_ns : covered_ns);
    stream->end_ns = end_ns;
}

static int by_device(const void *a, const void *b)
{
    const struct kineto_stream *x = a, *y = b;
    return x->device != y->device ? ORDER(x->device, y->device) : ORDER(x->stream, y->stream);
}

static void sum_streams(struct kineto_state *state, struct kineto *out)
{
    out->n_stream = state->streams.n;
    out->streams = arena_array(state->arena, struct kineto_stream, out->n_stream);
    for (uint32_t i = 0; i < out->n_stream; i++) {
        const struct kineto_stream_key *key = state->streams.keys[i];
        out->streams[i].device = key->device;
        out->streams[i].stream = key->stream;
    }
    if (state->n_gpu > 0)
        qsort(state->gpu, state->n_gpu, sizeof(*state->gpu), by_stream_and_time);
    for (size_t i = 0; i < state->n_gpu; i++)
        count_op(&out->streams[state->gpu[i].stream], &state->gpu[i]);
    if (out->n_stream > 0)
        qsort(out->streams, out->n_stream, sizeof(*out->streams), by_device);
}

static void sum_works(const struct kineto_state *state, struct kineto *out)
{
    struct durations durations = {0};
    for (size_t i = 0; i < state->n_gpu; i++) {
        add(&durations, state->gpu[i].work, state->gpu[i].dur_ns);
        out->n_unlaunched += state->gpu[i].launch == KINETO_NONE;
    }
    spread(&durations, out->works, sizeof(*out->works));
}

/* Most time first, then by name. */
static int by_sum(const void *a, const void *b)
{
    const struct kineto_kernel *x = a, *y = b;
    const int order = ORDER(y->spread.sum_ns, x->spread.sum_ns);
    return order ? order : strcmp(x->name, y->name);
}

static void sum_kernels(const struct kineto_state *state, struct kineto *out)
{
    struct kineto_kernel *all = arena_array(state->arena, struct kineto_kernel, state->names.n);
    struct durations durations = {0};
    for (size_t i = 0; i < state->n_gpu; i++) {
        const struct kineto_gpu *gpu = &state->gpu[i];
        all[gpu->name].name = kineto_name(state, gpu->name);
        all[gpu->name].work = (enum kineto_work)gpu->work;
        add(&durations, gpu->name, gpu->dur_ns);
    }
    spread(&durations, &all->spread, sizeof(*all));
    for (uint32_t i = 0; i < state->names.n; i++) {
        if (all[i].name)
            all[out->n_kernel++] = all[i];
    }
    out->kernels = all;
    if (out->n_kernel > 0)
        qsort(all, out->n_kernel, sizeof(*all), by_sum);
}

/* ---- collectives ------------------------------------------------------------------------------------ */

static struct kineto_collective collective_of(const struct kineto_state *state, uint32_t id)
{
    const struct kineto_collective_key *key = state->collectives.keys[id];
    return (struct kineto_collective){
        .kind = kineto_collective_kind_name(key->kind),
        .group = kineto_name(state, key->group),
        .list = kineto_name(state, key->list),
        .dtype = kineto_name(state, key->dtype),
        .ranks = (uint32_t)key->ranks,
        .elements = key->elements,
        .bytes = key->bytes,
    };
}

static int by_begin(const void *a, const void *b)
{
    const struct kineto_call *x = a, *y = b;
    return x->begin_ns != y->begin_ns ? ORDER(x->begin_ns, y->begin_ns)
                                      : ORDER(x->collective, y->collective);
}

static void sum_collectives(const struct kineto_state *state, struct kineto *out)
{
    struct durations durations = {0};
    out->n_collective = state->collectives.n;
    out->collectives = arena_array(state->arena, struct kineto_collective, out->n_collective);
    for (uint32_t i = 0; i < out->n_collective; i++)
        out->collectives[i] = collective_of(state, i);
    for (size_t i = 0; i < state->n_gpu; i++)
        out->n_call += state->gpu[i].work == KINETO_COLLECTIVE;
    out->calls = arena_array(state->arena, struct kineto_call, out->n_call);
    out->n_call = 0;
    for (size_t i = 0; i < state->n_gpu; i++) {
        const struct kineto_gpu *gpu = &state->gpu[i];
        if (gpu->work != KINETO_COLLECTIVE)
            continue;
        out->calls[out->n_call++] =
            (struct kineto_call){gpu->collective, gpu->begin_ns, gpu->dur_ns};
        add(&durations, gpu->collective, gpu->dur_ns);
    }
    if (out->n_call > 0)
        qsort(out->calls, out->n_call, sizeof(*out->calls), by_begin);
    if (out->n_collective > 0)
        spread(&durations, &out->collectives->spread, sizeof(*out->collectives));
}

/* ---- the host ---------------------------------------------------------------------------------------- */

static void sum_launches(const struct kineto_state *state, struct kineto *out)
{
    struct durations spans = {0}, intervals = {0};
    const struct kineto_launch *last = NULL;
    for (size_t i = 0; i < state->n_launch; i++) {
        const struct kineto_launch *launch = state->order[i];
        if (!launch->of_kernel)
            continue;
        add(&spans, 0, launch->dur_ns);
        if (last && last->thread == launch->thread)
            add(&intervals, 0, launch->begin_ns - last->begin_ns);
        last = launch;
    }
    spread(&spans, &out->launch, sizeof(out->launch));
    spread(&intervals, &out->interval, sizeof(out->interval));
}

static void sum_products(const struct kineto_state *state, struct kineto *out)
{
    struct durations durations = {0};
    out->n_product = state->products.n;
    out->products = arena_array(state->arena, struct kineto_product, out->n_product);
    for (uint32_t i = 0; i < out->n_product; i++) {
        const struct kineto_product_key *key = state->products.keys[i];
        out->products[i] = (struct kineto_product){.op = (enum kineto_op)key->op,
                                                   .dtype = kineto_name(state, key->dtype),
                                                   .batch = key->batch,
                                                   .m = key->m,
                                                   .n = key->n,
                                                   .k = key->k,
                                                   .causal = key->causal};
    }
    for (size_t i = 0; i < state->n_scope; i++) {
        const struct kineto_scope *scope = &state->scopes[i];
        if (scope->kind == SCOPE_PRODUCT && scope->gpu_ns > 0)
            add(&durations, scope->id, scope->gpu_ns);
    }
    if (out->n_product > 0)
        spread(&durations, &out->products->spread, sizeof(*out->products));
}

/* A range inside one of its name is the same range: PyTorch marks some transfers as their wrapper. */
static bool is_again(const struct kineto_scope *scope, const struct kineto_scope *last)
{
    return last && last->thread == scope->thread && last->end_ns >= scope->end_ns;
}

static void add_range(struct kineto_range *range, const struct kineto_scope *scope)
{
    range->n_kernel += scope->n_kernel;
    range->gpu_ns = kineto_add_ns(range->gpu_ns, scope->gpu_ns);
    range->collective_ns = kineto_add_ns(range->collective_ns, scope->collective_ns);
}

/* Of each name: the last range, and where the name is in the answer. */
struct seen {
    const struct kineto_scope *last;
    uint32_t place;
};

static void sum_ranges(const struct kineto_state *state, struct kineto *out)
{
    struct seen *seen = arena_array(state->arena, struct seen, state->names.n);
    struct durations durations = {0};
    out->ranges = arena_array(state->arena, struct kineto_range, state->names.n);
    for (size_t i = 0; i < state->n_scope; i++) {
        const struct kineto_scope *scope = &state->scopes[i];
        if (scope->kind != SCOPE_RANGE || is_again(scope, seen[scope->id].last))
            continue;
        struct seen *of = &seen[scope->id];
        if (!of->last) {
            out->ranges[out->n_range].name = kineto_name(state, scope->id);
            of->place = out->n_range++;
        }
        of->last = scope;
        add_range(&out->ranges[of->place], scope);
        add(&durations, of->place, scope->end_ns - scope->begin_ns);
    }
    if (out->n_range > 0)
        spread(&durations, &out->ranges->host, sizeof(*out->ranges));
}

void kineto_sum(struct kineto_state *state, struct kineto *out)
{
    out->n_event = state->n_event;
    out->n_gpu = state->n_gpu;
    out->n_discarded = state->n_discarded;
    sum_streams(state, out);
    sum_works(state, out);
    sum_kernels(state, out);
    sum_collectives(state, out);
    sum_launches(state, out);
    sum_products(state, out);
    sum_ranges(state, out);
}
