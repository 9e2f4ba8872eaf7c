/*
 * Idle intervals of stream C; see stalls.h. Invariant: the parts of a stall sum to its length.
 */
#include "sim/stalls.h"

#include <stdlib.h>

const char *stall_cause_name(enum stall_cause cause)
{
    static const char *const names[] = {
#define X(id, name, words) name,
        STALL_CAUSES(X)
#undef X
    };
    return names[cause];
}

const char *stall_cause_words(enum stall_cause cause)
{
    static const char *const all[] = {
#define X(id, name, words) words,
        STALL_CAUSES(X)
#undef X
    };
    return all[cause];
}

struct search {
    const struct causes *causes;
    struct arena *arena;
    struct stalls *out;
    struct path path; /* through the interval that is looked at */
    uint32_t last;    /* the span that the step ends with */
    int64_t end_ns;
};

/*
 * A host that is late at ns and stood still since_ns or later lost its lead there: *holder, which it
 * is at, becomes what it waited for.
 */
static enum stall_cause cause_on_host(const struct causes *causes, int64_t ns, int64_t since_ns,
                                      uint32_t *holder)
{
    const struct host_stop *stop = causes_stop(causes, ns);

    if (!stop || stop->ns < since_ns)
        return STALL_HOST;
    if (stop->cause.span != NO_SPAN)
        *holder = stop->cause.span;
    return stop->cause.kind == CAUSE_DRAIN ? STALL_ALLOCATOR : STALL_HOST_WAIT;
}

static enum stall_cause cause_on_device(const struct causes *causes, const struct path_piece *piece)
{
    const struct task *task = &causes->program->tasks[causes->spans[piece->span].task];

    if (piece->held == CAUSE_DRAIN)
        return STALL_ALLOCATOR;
    if (piece->held == CAUSE_HOST_WAIT)
        return STALL_HOST_WAIT;
    if (piece->held == CAUSE_COMM)
        return STALL_COMMUNICATOR;
    if (task->comm == COMM_NONE)
        return STALL_COPY;
    return task->kind == TASK_ALL_GATHER ? STALL_ALL_GATHER : STALL_REDUCE;
}

/* What queues behind a wait of the host, or behind another collective, has that for its cause. */
static bool is_handed_on(enum stall_cause cause)
{
    return cause == STALL_COMMUNICATOR || cause == STALL_HOST_WAIT || cause == STALL_ALLOCATOR;
}

/* From the piece nearest to the stall's end back to its begin. */
static void part(const struct search *search, struct stall *stall)
{
    enum stall_cause cause = STALL_COPY;
    int64_t longest_ns[STALL_CAUSE_N] = {0};
    uint32_t holders[STALL_CAUSE_N] = {0};

    for (uint32_t i = search->path.n; i-- > 0;) {
        const struct path_piece *piece = &search->path.at[i];
        const int64_t ns = piece->end_ns - piece->begin_ns;
        uint32_t holder = piece->span;
        if (piece->on_host)
            cause = cause_on_host(search->causes, piece->end_ns, stall->begin_ns, &holder);
        else if (!is_handed_on(cause))
            cause = cause_on_device(search->causes, piece);
        stall->parts_ns[cause] += ns;
        if (ns > longest_ns[cause]) {
            longest_ns[cause] = ns;
            holders[cause] = holder;
        }
    }
    for (unsigned c = 1; c < STALL_CAUSE_N; c++)
        if (stall->parts_ns[c] > stall->parts_ns[stall->cause])
            stall->cause = (uint8_t)c;
    stall->holder = holders[stall->cause];
}

static void add_stall(struct search *search, const struct stall *stall)
{
    struct stalls *out = search->out;

    out->at = arena_grow(search->arena, out->at, &out->cap, out->n + 1, sizeof *out->at);
    out->at[out->n++] = *stall;
    out->idle_ns += stall->end_ns - stall->begin_ns;
    for (unsigned c = 0; c < STALL_CAUSE_N; c++)
        out->by_cause_ns[c] += stall->parts_ns[c];
}

/* Nothing runs on C from begin_ns on; span comes next, or with NO_SPAN the end of the step. */
static void add_gap(struct search *search, int64_t begin_ns, uint32_t span)
{
    const struct causes *causes = search->causes;
    struct stall stall = {.begin_ns = begin_ns, .end_ns = search->end_ns, .span = span};

    if (span != NO_SPAN)
        stall.end_ns = causes->spans[span].start_ns;
    if (begin_ns >= stall.end_ns)
        return;
    search->path.n = 0;
    if (span != NO_SPAN)
        path_to_start(causes, span, begin_ns, search->arena, &search->path);
    else
        path_to_end(causes, search->last, begin_ns, search->arena, &search->path);
    part(search, &stall);
    add_stall(search, &stall);
}

/* A body that ended only because its last kernel was issued late; up to begin_ns it is another
   step's. */
static void add_inside(struct search *search, uint32_t id, int64_t begin_ns)
{
    const struct span *span = &search->causes->spans[id];
    struct stall stall = {
        .begin_ns = span->worked_ns > begin_ns ? span->worked_ns : begin_ns,
        .end_ns = span->end_ns,
        .span = id,
        .holder = id,
        .inside = true,
    };

    if (stall.begin_ns >= stall.end_ns)
        return;
    stall.cause = cause_on_host(search->causes, span->launched_ns, span->start_ns, &stall.holder);
    stall.parts_ns[stall.cause] = stall.end_ns - stall.begin_ns;
    add_stall(search, &stall);
}

static int compare_stalls(const void *a, const void *b)
{
    const struct stall *x = a, *y = b;
    const int64_t x_ns = x->end_ns - x->begin_ns, y_ns = y->end_ns - y->begin_ns;

    if (x_ns != y_ns)
        return x_ns > y_ns ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

void stalls_find(const struct causes *causes, uint32_t step, struct arena *arena,
                 struct stalls *out)
{
    struct search search = {.causes = causes, .arena = arena, .out = out};
    int64_t free_ns = causes_end_ns(causes, step - 1);

    *out = (struct stalls){0};
    search.last = causes_last(causes, step);
    search.end_ns = causes_end_ns(causes, step);
    for (uint32_t i = 0; i < causes->n_span; i++) {
        const struct span *span = &causes->spans[i];
        if (span->step != step || causes->program->tasks[span->task].stream != STREAM_C)
            continue;
        add_gap(&search, free_ns, i);
        add_inside(&search, i, free_ns);
        free_ns = span->end_ns > free_ns ? span->end_ns : free_ns;
    }
    add_gap(&search, free_ns, NO_SPAN);
    if (out->n > 0)
        qsort(out->at, out->n, sizeof *out->at, compare_stalls);
}
