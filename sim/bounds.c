/*
 * Lower bounds from the prices of units; see bounds.h for what they are and why they hold.
 */
#include "sim/bounds.h"

#include <string.h>

#include "sim/unit_cost.h"

enum { MAX_ATOMS = 1024 }; /* the table of ranges grows with the square of it */
#define UNKNOWN UINT32_MAX

struct root {
    struct root *next;
    const bool *inside; /* by atom */
    bool keeps;
    struct unit_cost cost;
};

struct bounds {
    const struct space *space;
    struct judge *judge;
    struct arena *arena;
    unsigned on;
    double contention; /* c/(1+c) */
    uint32_t *class;   /* by atom: the first one like it */
    uint32_t
        *of_range[2]; /* in units, by first atom, number of atoms less one and whether it keeps */
    struct unit_cost *units;
    uint32_t n_unit, cap_unit;
    struct root *roots;
    struct unit_cost rest; /* what belongs to no unit: inputs, loss, optimizer */
    uint64_t lasting_bytes;
};

/* ---- units by the atoms that they are made of ---------------------------------------------------- */

/* Groups of a plan in which the atoms inside are one unit, or the root, and all others are alone. */
static void group(const struct space *space, const bool *inside, bool in_root, uint16_t *group_of)
{
    uint16_t n = 0;
    bool open = false;

    for (uint32_t a = 0; a < space->n_atom; a++) {
        const bool root = plan_is_root(space->source.fine, a) || (in_root && inside[a]);
        n += !root && !(inside[a] && open);
        group_of[a] = root ? MERGE_ROOT : (uint16_t)(n - 1);
        open = inside[a] && !root;
    }
}

/* The unit of the atoms inside; NO_UNIT where there are none. */
static uint16_t unit_inside(const struct space *space, const struct plan *plan, const bool *inside,
                            const uint16_t *group_of)
{
    for (uint32_t a = 0; a < space->n_atom; a++)
        if (inside[a])
            return group_of[a] == MERGE_ROOT ? 0 : (uint16_t)(group_of[a] + plan->has_root);
    return NO_UNIT;
}

/* Zeros, which is no bound, where a plan is too large to be judged. */
static struct unit_cost cost_of(struct bounds *b, const bool *inside, bool in_root, bool keeps)
{
    const struct space *space = b->space;
    struct arena *scratch = judge_arena(b->judge);
    struct unit_cost cost = {0};
    struct judged judged;
    struct plan plan;

    arena_reset(scratch);
    uint16_t *group_of = arena_take(scratch, space->n_atom * sizeof *group_of);
    group(space, inside, in_root, group_of);
    plan_merge(&space->source, group_of, scratch, &plan);
    const uint16_t unit = unit_inside(space, &plan, inside, group_of);
    if (unit != NO_UNIT)
        plan.units[unit].reshard_after_forward = !keeps;
    if (judge_plan(b->judge, &plan, &judged, NULL) == STATUS_OK)
        unit_cost_read(judge_program(b->judge), judge_prices(b->judge), unit, &cost);
    return cost;
}

static uint32_t *place_of(struct bounds *b, uint32_t first, uint32_t n, bool keeps)
{
    return &b->of_range[keeps][(size_t)first * b->space->n_atom + n - 1];
}

/* The first range of atoms that are like these, one by one. */
static uint32_t first_like(const struct bounds *b, uint32_t first, uint32_t n)
{
    uint32_t like = 0;
    while (like < first && memcmp(&b->class[like], &b -> class[first], n * sizeof *b->class) != 0)
        like++;
    return like;
}

static const struct unit_cost *range_cost(struct bounds *b, uint32_t first, uint32_t n, bool keeps)
{
    uint32_t *place = place_of(b, first, n, keeps);

    if (*place == UNKNOWN) {
        const uint32_t like = first_like(b, first, n);
        uint32_t *known = place_of(b, like, n, keeps);
        if (*known == UNKNOWN) {
            bool *inside = arena_array(b->arena, bool, b->space->n_atom);
            memset(inside + like, true, n);
            b->units =
                arena_grow(b->arena, b->units, &b->cap_unit, b->n_unit + 1, sizeof *b->units);
            b->units[b->n_unit] = cost_of(b, inside, false, keeps);
            *known = b->n_unit++;
        }
        *place = *known;
    }
    return &b->units[*place];
}

/* Roots are few: they differ in which of the ends are in them. */
static const struct unit_cost *root_cost(struct bounds *b, const bool *inside, bool keeps)
{
    const uint32_t n = b->space->n_atom;

    for (struct root *root = b->roots; root; root = root->next)
        if (root->keeps == keeps && memcmp(root->inside, inside, n) == 0)
            return &root->cost;
    struct root *root = arena_array(b->arena, struct root, 1);
    *root = (struct root){.next = b->roots,
                          .inside = memcpy(arena_array(b->arena, bool, n), inside, n),
                          .keeps = keeps,
                          .cost = cost_of(b, inside, true, keeps)};
    b->roots = root;
    return &root->cost;
}

/* ---- a point ------------------------------------------------------------------------------------ */

/* What is added up over the units of a point, in forward order. */
struct sums {
    int64_t compute_ns, comm_ns[COMM_N], gather_ns, finish_ns;
    bool begun;
    int64_t left_bytes, out_bytes; /* of forward so far; the last output in it */
    int64_t kept_bytes, reduced_bytes;
    int64_t peak_bytes; /* the highest, less the reduced gradients of all units so far */
};

static void add_times(struct sums *sums, const struct unit_cost *unit)
{
    sums->compute_ns += unit->compute_ns;
    for (unsigned c = 0; c < COMM_N; c++)
        sums->comm_ns[c] += unit->comm_ns[c];
    if (!sums->begun)
        sums->gather_ns = unit->gather_ns;
    if (!sums->begun || (unit->may_finish && unit->finish_ns < sums->finish_ns))
        sums->finish_ns = unit->finish_ns;
    sums->begun = true;
}

/* Units that may finish are reduced at the very end, when what forward left is gone. */
static void add_peak(struct sums *sums, const struct unit_cost *unit)
{
    int64_t alive = (int64_t)unit->packing_bytes;

    if (!unit->may_finish) {
        alive += sums->left_bytes - sums->out_bytes + sums->kept_bytes;
        sums->reduced_bytes += (int64_t)unit->reduced_bytes;
    }
    if (unit->packing_bytes > 0 && alive - sums->reduced_bytes > sums->peak_bytes)
        sums->peak_bytes = alive - sums->reduced_bytes;
}

static void leave(struct sums *sums, const struct unit_cost *unit)
{
    sums->left_bytes += (int64_t)unit->left_bytes;
    sums->out_bytes = (int64_t)unit->out_bytes;
}

/* A unit of neighbours; one that is scattered leaves nothing that is known to stay. */
static void add_range(struct bounds *b, struct sums *sums, const uint8_t *point, uint32_t first,
                      uint32_t n)
{
    const bool keeps = space_keeps(b->space, point, first);
    const struct unit_cost *unit = range_cost(b, first, n, keeps);

    add_times(sums, unit);
    add_peak(sums, unit);
    if (b->space->source.joins[first])
        leave(sums, unit);
    if (keeps)
        sums->kept_bytes += (int64_t)unit->full_bytes;
}

/* The root is gathered first and reduced last. */
static void add_root(struct bounds *b, struct sums *sums, const uint8_t *point)
{
    const uint8_t *atoms = point + POINT_ATOMS;
    bool inside[MAX_ATOMS], keeps = false;
    uint32_t n = 0;

    for (uint32_t a = 0; a < b->space->n_atom; a++) {
        inside[a] = atoms[a] & ATOM_ROOT;
        if (inside[a] && n++ == 0)
            keeps = space_keeps(b->space, point, a);
    }
    if (n == 0)
        return;
    const struct unit_cost *root = root_cost(b, inside, keeps);
    add_times(sums, root);
    sums->peak_bytes = (int64_t)root->packing_bytes;
    if (keeps)
        sums->kept_bytes = (int64_t)root->full_bytes;
}

static struct sums add_up(struct bounds *b, const uint8_t *point)
{
    const uint8_t *atoms = point + POINT_ATOMS;
    struct sums sums = {0};

    add_root(b, &sums, point);
    for (uint32_t a = 0, n; a < b->space->n_atom; a += n) {
        for (n = 1; a + n < b->space->n_atom && atoms[a + n] & ATOM_JOINS;)
            n++;
        if (!(atoms[a] & ATOM_ROOT))
            add_range(b, &sums, point, a, n);
        else if (b->space->source.joins[a])
            leave(&sums, range_cost(b, a, 1, false));
    }
    add_times(&sums, &b->rest);
    sums.peak_bytes += sums.reduced_bytes + (int64_t)b->lasting_bytes;
    return sums;
}

/* Of all communicators the one that is busy longest. */
static int64_t busiest_ns(const struct sums *sums)
{
    int64_t most = 0;
    for (unsigned c = 0; c < COMM_N; c++)
        most = sums->comm_ns[c] > most ? sums->comm_ns[c] : most;
    return most;
}

/* Down to whole nanoseconds, and one more for what the engine rounds. */
static struct judged bound(const struct bounds *b, const struct sums *sums, int64_t idle_ns)
{
    const int64_t comm_ns = busiest_ns(sums), beside_ns = comm_ns > idle_ns ? comm_ns - idle_ns : 0;
    const int64_t slowed_ns = (int64_t)((double)beside_ns * b->contention) - 1;
    const int64_t compute_ns = sums->compute_ns + idle_ns + slowed_ns;
    struct judged out = {0};

    if (b->on >> BOUND_COMPUTE & 1)
        out.step_ns = compute_ns;
    if (b->on >> BOUND_COMM & 1 && comm_ns > out.step_ns)
        out.step_ns = comm_ns;
    if (b->on >> BOUND_MEMORY & 1)
        out.peak_bytes = (uint64_t)sums->peak_bytes;
    return out;
}

struct judged bounds_of(struct bounds *bounds, const uint8_t *point)
{
    if (!bounds->on)
        return (struct judged){0};
    const struct sums sums = add_up(bounds, point);
    return bound(bounds, &sums, sums.gather_ns + sums.finish_ns);
}

/*
 * Fewer units launch less and gather in fewer, longer messages, and what is kept is not gathered
 * again; so the least of everything is all that can be joined in one unit, kept.
 */
struct judged bounds_of_space(struct bounds *bounds)
{
    const struct space *space = bounds->space;
    struct sums sums = {0};

    if (!bounds->on)
        return (struct judged){0};
    for (uint32_t a = 0, n; a < space->n_atom; a += n) {
        for (n = 1; a + n < space->n_atom && space->source.joins[a] && space->source.joins[a + n];)
            n++;
        add_times(&sums, range_cost(bounds, a, n, true));
    }
    add_times(&sums, &bounds->rest);
    sums.peak_bytes = (int64_t)bounds->lasting_bytes;
    return bound(bounds, &sums, 0);
}

/* ---- what is known before any point -------------------------------------------------------------- */

/* Of every byte and price: the fine units' parameters, bodies and flags. */
static bool is_like(const struct bounds *b, uint32_t x, uint32_t y)
{
    const struct plan *fine = b->space->source.fine;
    const struct program *program = judge_program(b->judge);
    const struct unit *a = &fine->units[x], *c = &fine->units[y];
    const uint32_t n = a->last_segment - a->first_segment;

    if (!b->space->source.joins[x] || !b->space->source.joins[y] ||
        program->layout->units[x]->shape != program->layout->units[y]->shape ||
        a->input_has_grad != c->input_has_grad || a->has_backward != c->has_backward ||
        n != c->last_segment - c->first_segment)
        return false;
    for (uint32_t i = 0; i <= n; i++) {
        const struct segment *p = &fine->segments[a->first_segment + i],
                             *q = &fine->segments[c->first_segment + i];
        if (p->kind != q->kind ||
            segment_pair(program->bodies, p) != segment_pair(program->bodies, q))
            return false;
    }
    return true;
}

/* Of the fine plan, which is what the judge has judged last. */
static void classify(struct bounds *b)
{
    for (uint32_t a = 0; a < b->space->n_atom; a++) {
        uint32_t like = 0;
        while (like < a && !is_like(b, like, a))
            like++;
        b->class[a] = like;
    }
}

/* What no unit has: the rest of a step, and all that lives for the run. */
static bool read_fine_plan(struct bounds *b)
{
    struct judged judged;
    struct summary summary;

    arena_reset(judge_arena(b->judge));
    if (judge_plan(b->judge, b->space->source.fine, &judged, NULL) != STATUS_OK)
        return false;
    const struct program *program = judge_program(b->judge);
    const struct prices *prices = judge_prices(b->judge);
    unit_cost_read(program, prices, NO_UNIT, &b->rest);
    b->rest.gather_ns = b->rest.finish_ns = 0;
    b->contention = (double)prices->contention_permille / (1000 + prices->contention_permille);
    summary_of(program, &summary);
    b->lasting_bytes = summary.end_bytes[SECTION_INIT];
    classify(b);
    return true;
}

/* Casts at borders are some unit's task whose neighbours are not. */
static bool has_bounds(const struct space *space)
{
    return space->n_atom <= MAX_ATOMS && space->source.fine->options.output_dtype == DTYPE_N;
}

struct bounds *bounds_new(const struct space *space, struct judge *judge, unsigned on,
                          struct arena *arena)
{
    const size_t n_range = (size_t)space->n_atom * space->n_atom;
    struct bounds *b = arena_array(arena, struct bounds, 1);

    *b = (struct bounds){.space = space, .judge = judge, .arena = arena};
    if (!on || !has_bounds(space))
        return b;
    b->class = arena_array(arena, uint32_t, space->n_atom);
    for (unsigned keeps = 0; keeps < 2; keeps++) {
        b->of_range[keeps] = arena_take(arena, n_range * sizeof(uint32_t));
        memset(b->of_range[keeps], 0xff, n_range * sizeof(uint32_t));
    }
    if (read_fine_plan(b))
        b->on = on;
    return b;
}
