/*
 * Sort and sweep: an operation finds its launch by correlation, a launch the scopes of its thread
 * that it is in by time. Both are times of the host, so that the two clocks are never compared.
 *
 * A launch may start many operations (graphs), an operation may have none (the edge of the window).
 */
#include <stdlib.h>
#include <string.h>

#include "traces/kineto_inner.h"
#include "traces/trace_tracks.h"

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int by_correlation(const void *a, const void *b)
{
    const struct kineto_launch *x = a, *y = b;
    const int order = ORDER(x->correlation, y->correlation);
    return order ? order : ORDER(x->begin_ns, y->begin_ns);
}

static int by_key(const void *a, const void *b)
{
    const uint64_t *key = a;
    const struct kineto_launch *launch = b;
    return ORDER(*key, launch->correlation);
}

/* By their names, each of which is looked at once. */
static void find_works(struct kineto_state *state)
{
    uint8_t *works =
        arena_alloc(state->arena, state->names.n); /* 1 + what it is; 0: not known yet */
    for (size_t i = 0; i < state->n_gpu; i++) {
        struct kineto_gpu *gpu = &state->gpu[i];
        if (gpu->work != KINETO_OTHER)
            continue;
        if (works[gpu->name] == 0)
            works[gpu->name] = (uint8_t)(1 + kineto_work_of(kineto_name(state, gpu->name)));
        gpu->work = works[gpu->name] - 1;
    }
}

static void find_launches(struct kineto_state *state)
{
    if (state->n_launch == 0)
        return;
    qsort(state->launches, state->n_launch, sizeof(*state->launches), by_correlation);
    for (size_t i = 0; i < state->n_gpu; i++) {
        struct kineto_gpu *gpu = &state->gpu[i];
        struct kineto_launch *launch =
            gpu->correlation == 0 ? NULL
                                  : bsearch(&gpu->correlation, state->launches, state->n_launch,
                                            sizeof(*state->launches), by_key);
        if (!launch)
            continue;
        gpu->launch = (uint32_t)(launch - state->launches);
        launch->n_kernel++;
        launch->gpu_ns = kineto_add_ns(launch->gpu_ns, gpu->dur_ns);
        if (gpu->work == KINETO_COLLECTIVE)
            launch->collective_ns = kineto_add_ns(launch->collective_ns, gpu->dur_ns);
    }
}

/* ---- forward and backward of units --------------------------------------------------------------- */

/* Hooks of FSDP with a unit's own computation between them. */
static const struct {
    const char *before, *behind, *between;
} hooks[] = {
    {"FSDP::pre_forward", "FSDP::post_forward", "FSDP::forward"},
    {"FSDP::pre_backward", "FSDP::post_backward_accumulate", "FSDP::backward"},
};
enum { HOOK_N = sizeof(hooks) / sizeof(hooks[0]) };

/* The rest of a name that begins with the hook's: " (UNIT)" or nothing; else NULL. */
static const char *unit_of(const char *name, const char *hook)
{
    const size_t length = strlen(hook);
    return !strncmp(name, hook, length) && (name[length] == '\0' || name[length] == ' ')
               ? name + length
               : NULL;
}

static int by_thread(const void *a, const void *b)
{
    const struct kineto_scope *x = a, *y = b;
    const int order = ORDER(x->thread, y->thread);
    if (order)
        return order;
    if (x->begin_ns != y->begin_ns)
        return ORDER(x->begin_ns, y->begin_ns);
    if (x->end_ns != y->end_ns)
        return ORDER(y->end_ns, x->end_ns);
    return x->kind != y->kind ? ORDER(x->kind, y->kind) : ORDER(x->id, y->id);
}

/* Where a unit's hook ended that is not closed yet. */
struct open_hook {
    bool open;
    uint32_t thread;
    int64_t end_ns;
};

static void step_hook(struct kineto_state *state, const struct kineto_scope *scope, unsigned hook,
                      struct open_hook *open, struct kineto_ids *units)
{
    const char *name = kineto_name(state, scope->id);
    const char *before = unit_of(name, hooks[hook].before);
    const char *unit = before ? before : unit_of(name, hooks[hook].behind);
    if (!unit)
        return;
    struct open_hook *of = &open[kineto_id(units, unit, strlen(unit))];
    if (!before && of->open && of->thread == scope->thread && of->end_ns <= scope->begin_ns) {
        const char *text = arena_printf(state->arena, "%s%s", hooks[hook].between, unit);
        const struct kineto_scope between = {
            .begin_ns = of->end_ns,
            .end_ns = scope->begin_ns,
            .thread = scope->thread,
            .id = kineto_id(&state->names, text, strlen(text)),
            .kind = SCOPE_RANGE,
        };
        kineto_add_scope(state, &between);
    }
    *of = (struct open_hook){before != NULL, scope->thread, scope->end_ns};
}

/* The first n scopes are those of the file. There are no more units than names. */
static void add_units(struct kineto_state *state, unsigned hook, size_t n)
{
    struct open_hook *open = calloc(state->names.n + 1, sizeof(*open));
    struct kineto_ids units = {.arena = state->arena};
    if (!open)
        err_out_of_memory((state->names.n + 1) * sizeof(*open));
    for (size_t i = 0; i < n; i++) {
        const struct kineto_scope scope = state->scopes[i];
        if (scope.kind == SCOPE_RANGE)
            step_hook(state, &scope, hook, open, &units);
    }
    free(open);
}

/* ---- scopes --------------------------------------------------------------------------------------- */

static int by_thread_and_time(const void *a, const void *b)
{
    const struct kineto_launch *x = *(struct kineto_launch *const *)a;
    const struct kineto_launch *y = *(struct kineto_launch *const *)b;
    if (x->thread != y->thread)
        return ORDER(x->thread, y->thread);
    return x->begin_ns != y->begin_ns ? ORDER(x->begin_ns, y->begin_ns)
                                      : ORDER(x->correlation, y->correlation);
}

static void order_launches(struct kineto_state *state)
{
    const size_t bytes = (state->n_launch + 1) * sizeof(*state->order);
    state->order = malloc(bytes);
    if (!state->order)
        err_out_of_memory(bytes);
    for (size_t i = 0; i < state->n_launch; i++)
        state->order[i] = &state->launches[i];
    qsort(state->order, state->n_launch, sizeof(*state->order), by_thread_and_time);
}

/* The scopes that the launches so far have entered and not left. */
struct open_scopes {
    uint32_t *at;
    size_t n, cap;
};

static void enter(struct open_scopes *open, uint32_t scope)
{
    open->at = trace_grow(open->at, open->n, &open->cap, sizeof(*open->at));
    open->at[open->n++] = scope;
}

static void leave(struct open_scopes *open, const struct kineto_scope *scopes,
                  const struct kineto_launch *launch)
{
    size_t n = 0;
    for (size_t i = 0; i < open->n; i++) {
        const struct kineto_scope *scope = &scopes[open->at[i]];
        if (scope->thread == launch->thread && launch->begin_ns < scope->end_ns)
            open->at[n++] = open->at[i];
    }
    open->n = n;
}

/* Innermost last, so that the last collective is the one that is meant. */
static void count_launch(struct kineto_scope *scopes, const struct open_scopes *open,
                         struct kineto_launch *launch)
{
    for (size_t i = 0; i < open->n; i++) {
        struct kineto_scope *scope = &scopes[open->at[i]];
        scope->n_kernel += launch->n_kernel;
        scope->gpu_ns = kineto_add_ns(scope->gpu_ns, launch->gpu_ns);
        scope->collective_ns = kineto_add_ns(scope->collective_ns, launch->collective_ns);
        if (scope->kind == SCOPE_COLLECTIVE)
            launch->collective = scope->id;
    }
}

static void find_scopes(struct kineto_state *state)
{
    struct open_scopes open = {0};
    size_t next = 0;
    for (size_t i = 0; i < state->n_launch; i++) {
        struct kineto_launch *launch = state->order[i];
        for (; next < state->n_scope; next++) {
            const struct kineto_scope *scope = &state->scopes[next];
            if (scope->thread > launch->thread ||
                (scope->thread == launch->thread && scope->begin_ns > launch->begin_ns))
                break;
            if (scope->thread == launch->thread && launch->begin_ns < scope->end_ns)
                enter(&open, (uint32_t)next);
        }
        leave(&open, state->scopes, launch);
        count_launch(state->scopes, &open, launch);
    }
    free(open.at);
}

/* Sizes that a kernel's event lacks are those of the operator around its launch. */
static void name_collectives(struct kineto_state *state)
{
    for (size_t i = 0; i < state->n_gpu; i++) {
        struct kineto_gpu *gpu = &state->gpu[i];
        if (gpu->work != KINETO_COLLECTIVE || gpu->collective != KINETO_NONE)
            continue;
        if (gpu->launch != KINETO_NONE)
            gpu->collective = state->launches[gpu->launch].collective;
        if (gpu->collective == KINETO_NONE)
            gpu->collective = kineto_collective_unsized(state, kineto_name(state, gpu->name));
    }
}

static void sort_scopes(struct kineto_state *state)
{
    if (state->n_scope > 0)
        qsort(state->scopes, state->n_scope, sizeof(*state->scopes), by_thread);
}

void kineto_join(struct kineto_state *state)
{
    const size_t n_scope = state->n_scope;
    find_works(state);
    find_launches(state);
    sort_scopes(state);
    for (unsigned hook = 0; hook < HOOK_N; hook++)
        add_units(state, hook, n_scope);
    sort_scopes(state);
    order_launches(state);
    find_scopes(state);
    name_collectives(state);
}
