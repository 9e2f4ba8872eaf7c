/*
 * The queues once more, each by itself; see causes.h.
 *
 * All times are known now, so that a stream is replayed without the others: an event that was
 * waited for holds the id of its record until every stream has said what its records followed.
 */
#include "sim/causes.h"

#include "sim/engine_inner.h"

/* What the time of a stream or of a record goes back to. */
enum origin_kind { ORIGIN_HOST, ORIGIN_SPAN, ORIGIN_RECORD };
struct origin {
    uint32_t id; /* in spans or in records */
    uint8_t kind;
};

struct replay {
    const struct engine *engine;
    struct origin *records;   /* by record */
    struct origin *starts;    /* by span */
    uint32_t *before_on_comm; /* by span: the collective before it, or NO_SPAN */
    struct cause *causes;
};

static void link_collectives(struct replay *replay)
{
    for (uint32_t c = 0; c < COMM_N; c++) {
        const struct comm_queue *comm = &replay->engine->comms[c];
        for (uint32_t i = 0; i < comm->n; i++)
            replay->before_on_comm[comm->spans[i]] = i > 0 ? comm->spans[i - 1] : NO_SPAN;
    }
}

static bool is_collective(const struct engine *engine, uint32_t span)
{
    return engine->program->tasks[engine->spans[span].task].comm != COMM_NONE;
}

/* The stream was free at free_ns because of origin. Where nothing else held it the host did. */
static void find_start(struct replay *replay, uint32_t id, int64_t free_ns, struct origin origin)
{
    const struct span *spans = replay->engine->spans;
    const uint32_t before =
        is_collective(replay->engine, id) ? replay->before_on_comm[id] : NO_SPAN;

    if (spans[id].start_ns == free_ns)
        replay->starts[id] = origin;
    else if (before != NO_SPAN && spans[id].start_ns == spans[before].end_ns)
        replay->causes[id] = (struct cause){.span = before, .kind = CAUSE_COMM};
}

static void replay_stream(struct replay *replay, enum stream stream)
{
    const struct engine *engine = replay->engine;
    const struct queue *queue = &engine->queues[stream];
    struct origin origin = {.kind = ORIGIN_HOST};
    int64_t free_ns = 0;

    for (uint32_t i = 0; i < queue->n; i++) {
        const uint32_t op = queue->items[i] & ITEM_OP, id = queue->items[i] >> ITEM_OP_BITS;
        if (item_is_task(queue->items[i])) {
            find_start(replay, id, free_ns, origin);
            free_ns = engine->spans[id].end_ns;
            origin = (struct origin){.id = id, .kind = ORIGIN_SPAN};
        } else if (op == ITEM_RECORD) {
            const bool issued_late = engine->records[id].ns > free_ns;
            replay->records[id] = issued_late ? (struct origin){.kind = ORIGIN_HOST} : origin;
        } else if (engine->records[id].ns > free_ns) {
            free_ns = engine->records[id].ns;
            origin = (struct origin){.id = id, .kind = ORIGIN_RECORD};
        }
    }
}

/* Through all records that only hand on what they waited for. */
static struct cause resolved(const struct replay *replay, struct origin origin,
                             enum cause_kind by_record)
{
    const bool by_event = origin.kind == ORIGIN_RECORD;

    while (origin.kind == ORIGIN_RECORD)
        origin = replay->records[origin.id];
    if (origin.kind == ORIGIN_HOST)
        return (struct cause){.span = NO_SPAN, .kind = CAUSE_HOST};
    return (struct cause){.span = origin.id, .kind = by_event ? by_record : CAUSE_STREAM};
}

static void resolve_starts(struct replay *replay)
{
    for (uint32_t i = 0; i < replay->engine->n_span; i++)
        if (replay->causes[i].kind != CAUSE_COMM)
            replay->causes[i] = resolved(replay, replay->starts[i], CAUSE_EVENT);
}

/* Of all that was issued when the host stood still, what ended then. */
static struct cause drained(const struct engine *engine, const struct stop *stop)
{
    uint32_t i = 0;

    if (stop->was_late)
        return (struct cause){.span = NO_SPAN, .kind = CAUSE_DRAIN};
    while (engine->spans[i].end_ns != stop->waited_ns)
        i++;
    return (struct cause){.span = i, .kind = CAUSE_DRAIN};
}

static struct host_stop *find_stops(const struct replay *replay, struct arena *arena)
{
    const struct engine *engine = replay->engine;
    struct host_stop *stops = arena_array(arena, struct host_stop, engine->n_stop);

    for (uint32_t i = 0; i < engine->n_stop; i++) {
        const struct stop *stop = &engine->stops[i];
        const struct origin record = {.id = stop->record, .kind = ORIGIN_RECORD};
        stops[i].waited_ns = stop->waited_ns;
        stops[i].ns = stop->ns;
        stops[i].cause = stop->record == NO_RECORD ? drained(engine, stop)
                                                   : resolved(replay, record, CAUSE_HOST_WAIT);
    }
    return stops;
}

void causes_find(const struct engine *engine, struct arena *arena, struct causes *out)
{
    struct replay replay = {
        .engine = engine,
        .records = arena_array(arena, struct origin, engine->n_record),
        .starts = arena_array(arena, struct origin, engine->n_span),
        .before_on_comm = arena_array(arena, uint32_t, engine->n_span),
        .causes = arena_array(arena, struct cause, engine->n_span),
    };

    link_collectives(&replay);
    for (uint32_t s = 0; s < STREAM_N; s++)
        replay_stream(&replay, (enum stream)s);
    resolve_starts(&replay);
    *out = (struct causes){
        .program = engine->program,
        .spans = engine->spans,
        .starts = replay.causes,
        .stops = find_stops(&replay, arena),
        .n_span = engine->n_span,
        .n_stop = engine->n_stop,
    };
}

uint32_t causes_last(const struct causes *causes, uint32_t step)
{
    const struct span *spans = causes->spans;
    uint32_t last = NO_SPAN;

    for (uint32_t i = 0; i < causes->n_span; i++)
        if (spans[i].step == step && (last == NO_SPAN || spans[i].end_ns > spans[last].end_ns))
            last = i;
    return last;
}

int64_t causes_end_ns(const struct causes *causes, uint32_t step)
{
    const uint32_t last = causes_last(causes, step);
    return last == NO_SPAN ? 0 : causes->spans[last].end_ns;
}

const struct host_stop *causes_stop(const struct causes *causes, int64_t ns)
{
    uint32_t low = 0, high = causes->n_stop;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (causes->stops[middle].ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &causes->stops[low - 1] : NULL;
}

uint32_t causes_issued(const struct causes *causes, int64_t ns)
{
    uint32_t low = 0, high = causes->n_span;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (causes->spans[middle].launch_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}
