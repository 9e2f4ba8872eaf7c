/*
 * The walk back; see critical_path.h. Each turn ends a piece where the one before it begins, or at
 * begin_ns; pieces of no length are passed over.
 */
#include "sim/critical_path.h"

struct walk {
    const struct causes *causes;
    struct arena *arena;
    struct path *path;
    int64_t begin_ns;
};

static void add_piece(const struct walk *walk, struct path_piece piece)
{
    struct path *path = walk->path;

    if (piece.begin_ns < walk->begin_ns)
        piece.begin_ns = walk->begin_ns;
    if (piece.begin_ns >= piece.end_ns)
        return;
    path->at = arena_grow(walk->arena, path->at, &path->cap, path->n + 1, sizeof *path->at);
    path->at[path->n++] = piece;
}

/* What the host issued since then. */
static void walk_issues(const struct walk *walk, int64_t ns, int64_t since_ns)
{
    while (ns > since_ns) {
        const uint32_t issued = causes_issued(walk->causes, ns);
        const int64_t launch_ns = walk->causes->spans[issued].launch_ns;
        add_piece(walk, (struct path_piece){.begin_ns = launch_ns,
                                            .end_ns = ns,
                                            .span = issued,
                                            .held = CAUSE_HOST,
                                            .on_host = true});
        ns = launch_ns;
    }
}

/* What it did with memory was for the task that it issued next. */
static void walk_stop(const struct walk *walk, const struct host_stop *stop)
{
    const uint32_t before = causes_issued(walk->causes, stop->ns), next = before + 1;

    add_piece(walk, (struct path_piece){.begin_ns = stop->waited_ns,
                                        .end_ns = stop->ns,
                                        .span = next < walk->causes->n_span ? next : before,
                                        .held = CAUSE_DRAIN,
                                        .on_host = true});
}

/* The host back to where it last waited for the device; returns what it waited for then. */
static struct cause walk_host(const struct walk *walk, int64_t ns)
{
    const struct host_stop *stop = causes_stop(walk->causes, ns);

    while (stop && stop->ns > walk->begin_ns) {
        walk_issues(walk, ns, stop->ns);
        walk_stop(walk, stop);
        if (stop->cause.span != NO_SPAN || stop->cause.kind != CAUSE_DRAIN)
            return stop->cause;
        ns = stop->waited_ns;
        stop = causes_stop(walk->causes, ns);
    }
    walk_issues(walk, ns, walk->begin_ns);
    return stop ? stop->cause : (struct cause){.span = NO_SPAN};
}

/* A span back to its start, or to the launch of its last kernel where that held it. */
static struct cause walk_span(const struct walk *walk, struct cause held)
{
    const struct span *span = &walk->causes->spans[held.span];
    const bool host_late = span->end_ns > span->worked_ns;

    add_piece(walk, (struct path_piece){
                        .begin_ns = host_late ? span->launched_ns : span->start_ns,
                        .end_ns = span->end_ns,
                        .span = held.span,
                        .held = held.kind,
                    });
    if (host_late)
        return walk_host(walk, span->launched_ns);
    const struct cause start = walk->causes->starts[held.span];
    return start.kind == CAUSE_HOST ? walk_host(walk, span->start_ns) : start;
}

static void walk_back(const struct walk *walk, struct cause held)
{
    while (held.span != NO_SPAN && walk->causes->spans[held.span].end_ns > walk->begin_ns)
        held = walk_span(walk, held);
}

static void reverse(struct path *path, uint32_t from)
{
    for (uint32_t i = from, j = path->n; i + 1 < j; i++) {
        const struct path_piece piece = path->at[i];
        path->at[i] = path->at[--j];
        path->at[j] = piece;
    }
}

void path_to_end(const struct causes *causes, uint32_t span, int64_t begin_ns, struct arena *arena,
                 struct path *path)
{
    const struct walk walk = {causes, arena, path, begin_ns};
    const uint32_t from = path->n;

    walk_back(&walk, (struct cause){.span = span, .kind = CAUSE_STREAM});
    reverse(path, from);
}

void path_to_start(const struct causes *causes, uint32_t span, int64_t begin_ns,
                   struct arena *arena, struct path *path)
{
    const struct walk walk = {causes, arena, path, begin_ns};
    const uint32_t from = path->n;
    struct cause held = causes->starts[span];

    if (held.kind == CAUSE_HOST)
        held = walk_host(&walk, causes->spans[span].start_ns);
    walk_back(&walk, held);
    reverse(path, from);
}

void critical_path(const struct causes *causes, uint32_t step, struct arena *arena,
                   struct path *out)
{
    const int64_t begin_ns = causes_end_ns(causes, step - 1);

    *out = (struct path){0};
    path_to_end(causes, causes_last(causes, step), begin_ns, arena, out);
}

struct path_sums path_sums(const struct causes *causes, const struct path *path)
{
    struct path_sums sums = {{0}, {0}, 0};

    for (uint32_t i = 0; i < path->n; i++) {
        const struct path_piece *piece = &path->at[i];
        const uint8_t kind = causes->program->tasks[causes->spans[piece->span].task].kind;
        const int64_t ns = piece->end_ns - piece->begin_ns;
        if (!piece->on_host)
            sums.device_ns[kind] += ns;
        else if (piece->held == CAUSE_DRAIN)
            sums.memory_ns += ns;
        else
            sums.host_ns[kind] += ns;
    }
    return sums;
}
