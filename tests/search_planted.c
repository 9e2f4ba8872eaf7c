/*
 * Three cases in which a rule of thumb is wrong, and by how much: planted, so that a search that only
 * follows such a rule fails here.
 *
 *     greedy   keep all parameters from forward to backward, and free the largest units first until
 *              it fits: another set of units fits too, and is faster
 *     uneven   no cut into equal units is as fast as one of unequal ones
 *     partly   the best keeps parameters of some units only
 *
 * In each the fastest plan of all does not fit, so that time alone does not tell either. What the best
 * is comes from going through every plan, one by one, without bounds and batches.
 */
#include <string.h>

#include "sim/search.h"
#include "tests/make.h"
#include "tests/tap.h"

struct rig {
    struct made made; /* of units as small as they get */
    struct plan start;
    struct cluster cluster;
    struct space space;
    struct judge *judge;
};

struct planted {
    const char *what;
    struct dims dims;
    uint64_t gpus;
    uint64_t short_mib; /* the limit is so much below the peak of the fastest plan of all */
    /* What the rule of thumb chooses from; NULL: the greedy one. */
    bool (*kind)(const struct rig *, const uint8_t *);
};

static void open_rig(const struct planted *planted, struct rig *rig)
{
    struct plan_options options = plan_options_default();
    struct err err = {0};

    options.gpus = planted->gpus;
    options.units = "piece";
    make_init_dims(&rig->made, &planted->dims, &options);
    options.units = "torchtitan";
    if (plan_resolve(&rig->made.model, &options, &rig->made.arena, &rig->start, &err) !=
            STATUS_OK ||
        cluster_open("h100-sxm", &rig->made.arena, &rig->cluster, &err) != STATUS_OK ||
        space_init(&rig->made.plan, &rig->start, 1u << AXIS_GROUPING | 1u << AXIS_RESHARD,
                   &rig->made.arena, &rig->space, &err) != STATUS_OK)
        tap_bail(err.text);
    rig->judge = judge_new(&rig->cluster, &rig->made.bodies);
}

static void close_rig(struct rig *rig)
{
    judge_free(rig->judge);
    make_release(&rig->made);
}

static struct judged judge(struct rig *rig, const uint8_t *point)
{
    struct arena *arena = judge_arena(rig->judge);
    struct judged judged;
    struct plan plan;
    struct err err = {0};

    arena_reset(arena);
    space_plan(&rig->space, point, arena, &plan);
    if (judge_plan(rig->judge, &plan, &judged, &err) != STATUS_OK)
        tap_bail(err.text);
    return judged;
}

/* ---- plans of a kind -------------------------------------------------------------------------------- */

static bool is_any(const struct rig *rig, const uint8_t *point)
{
    (void)rig;
    (void)point;
    return true;
}

static bool is_even(const struct rig *rig, const uint8_t *point)
{
    return space_runs(&rig->space, point) == 1;
}

/* How many units begin with an atom that keeps. */
static uint32_t n_kept(const struct rig *rig, const uint8_t *point)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < rig->space.n_atom; a++)
        n += (point[POINT_ATOMS + a] & ATOM_KEEPS) != 0;
    return n;
}

static bool keeps_all_or_nothing(const struct rig *rig, const uint8_t *point)
{
    const uint32_t n = n_kept(rig, point);
    return n == 0 || n == space_units(&rig->space, point);
}

/* The fastest within the limit, of those of the kind; step_ns is INT64_MAX where there is none. */
static struct judged fastest(struct rig *rig, uint64_t limit_bytes,
                             bool (*kind)(const struct rig *, const uint8_t *), uint8_t *out)
{
    uint8_t *point = arena_array(&rig->made.arena, uint8_t, rig->space.point_bytes);
    struct judged best = {INT64_MAX, UINT64_MAX};

    space_first(&rig->space, point);
    do {
        if (!kind(rig, point))
            continue;
        const struct judged judged = judge(rig, point);
        if (judged.peak_bytes > limit_bytes || judged.step_ns >= best.step_ns)
            continue;
        best = judged;
        memcpy(out, point, rig->space.point_bytes);
    } while (space_next(&rig->space, point));
    return best;
}

/* The unit that keeps most, of those that still keep anything; n_atom: none does. */
static uint32_t largest_kept(const struct rig *rig, const uint8_t *point)
{
    const struct plan *fine = rig->space.source.fine;
    uint64_t most = 0;
    uint32_t largest = rig->space.n_atom;

    for (uint32_t a = 0; a < rig->space.n_atom; a++) {
        uint64_t elements = 0;
        for (uint32_t i = 0; i < fine->units[a].n_param; i++)
            elements += fine->model->params[fine->unit_params[fine->units[a].param + i]].numel;
        if (!(point[POINT_ATOMS + a] & ATOM_KEEPS) || elements <= most)
            continue;
        most = elements;
        largest = a;
    }
    return largest;
}

/* Keeps all, and then what is largest no longer, until it fits. */
static struct judged greedy(struct rig *rig, uint64_t limit_bytes)
{
    uint8_t *point = arena_array(&rig->made.arena, uint8_t, rig->space.point_bytes);
    struct judged judged;
    uint32_t largest;

    memcpy(point, rig->space.start, rig->space.point_bytes);
    for (uint32_t a = 0; a < rig->space.n_atom; a++)
        point[POINT_ATOMS + a] |= ATOM_KEEPS;
    while ((judged = judge(rig, point)).peak_bytes > limit_bytes &&
           (largest = largest_kept(rig, point)) < rig->space.n_atom)
        point[POINT_ATOMS + largest] &= (uint8_t)~ATOM_KEEPS;
    return judged;
}
/* ---- cases ------------------------------------------------------------------------------------------ */

#define BLOCKS(n, words, tokens)                                                        \
    {                                                                                   \
        .layers = n, .hidden = 4096, .intermediate = 14336, .heads = 32, .kv_heads = 8, \
        .head_dim = 128, .vocab = words, .default_seq = tokens                          \
    }

static const struct planted cases[] = {
    {.what = "greedy", .dims = BLOCKS(3, 32000, 512), .gpus = 8, .short_mib = 81, .kind = NULL},
    {.what = "uneven",
     .dims = BLOCKS(3, 128000, 1024),
     .gpus = 64,
     .short_mib = 1,
     .kind = is_even},
    {.what = "partly",
     .dims = BLOCKS(4, 32000, 1024),
     .gpus = 64,
     .short_mib = 729,
     .kind = keeps_all_or_nothing},
};

static struct search_result search(struct rig *rig, uint64_t limit_bytes, uint64_t exact_points)
{
    struct search_options options = search_options_default();
    struct search_result result;
    struct err err = {0};

    options.limit_bytes = limit_bytes;
    options.exact_points = exact_points;
    if (search_run(&rig->space, &rig->cluster, &rig->made.bodies, &options, &rig->made.arena,
                   &result, &err) != STATUS_OK ||
        result.n == 0)
        tap_bail(err.text);
    return result;
}

static const char *words_of(struct rig *rig, const uint8_t *point)
{
    struct text text;

    text_init(&text);
    space_text(&rig->space, point, &text);
    const char *words = arena_strdup(&rig->made.arena, text.at);
    text_release(&text);
    return words;
}

static void test_case(const struct planted *planted)
{
    static const uint64_t MIB = 1 << 20;
    struct rig rig;

    open_rig(planted, &rig);
    uint8_t *point = arena_array(&rig.made.arena, uint8_t, rig.space.point_bytes);
    const struct judged by_time = fastest(&rig, UINT64_MAX, is_any, point);
    const uint64_t limit_bytes = by_time.peak_bytes - planted->short_mib * MIB;
    const struct judged thumb = planted->kind ? fastest(&rig, limit_bytes, planted->kind, point)
                                              : greedy(&rig, limit_bytes);
    const struct judged best = fastest(&rig, limit_bytes, is_any, point);
    const struct search_result whole = search(&rig, limit_bytes, UINT64_MAX),
                               beam = search(&rig, limit_bytes, 0);

    ok(thumb.peak_bytes <= limit_bytes && (double)thumb.step_ns > 1.02 * (double)best.step_ns,
       "%s: the rule's plan fits, and is %.1f %% slower than %s", planted->what,
       100 * ((double)thumb.step_ns / (double)best.step_ns - 1), words_of(&rig, point));
    ok(best.step_ns > by_time.step_ns, "%s: and the fastest of all does not fit", planted->what);
    is_int((uint64_t)whole.found[0].judged.step_ns, (uint64_t)best.step_ns, "%s: the best is found",
           planted->what);
    is_str(words_of(&rig, whole.found[0].point), words_of(&rig, point),
           "%s: as the plan that it is", planted->what);
    is_int((uint64_t)beam.found[0].judged.step_ns, (uint64_t)best.step_ns,
           "%s: and by the beam alone", planted->what);
    close_rig(&rig);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        test_case(&cases[i]);
    return tap_done();
}
