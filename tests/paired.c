/*
 * What is uncertain about the difference of two plans: the arithmetic on shifts made by hand, and
 * what shifts real programs have.
 */
#include "sim/paired.h"

#include "tests/make.h"
#include "tests/tap.h"

/* ---- by hand --------------------------------------------------------------------------------- */

static const struct {
    const char *what;
    struct paired_shift a, b;
    int64_t want;
} shifts[] = {
    {"equal shifts cancel, however large",
     {{{-400, 900}, {-5, 70}, {0, 0}, {-1, 2}}},
     {{{-400, 900}, {-5, 70}, {0, 0}, {-1, 2}}},
     0},
    {"one group: the larger end", {{{-10, 20}}}, {{{-13, 24}}}, 4},
    {"one group: the other end", {{{-10, 20}}}, {{{-19, 24}}}, 9},
    {"groups are independent", {{{0, 3}, {0, 0}}}, {{{0, 0}, {0, 4}}}, 5},
    {"of all four", {{{0, 1}, {0, 1}, {0, 1}, {0, 1}}}, {{{0, 0}}}, 2},
    {"rounded up", {{{0, 1}, {0, 1}}}, {{{0, 0}}}, 2},
};

static void test_uncertainty(void)
{
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        is_int(paired_uncertainty_ns(&shifts[i].a, &shifts[i].b), shifts[i].want, "%s",
               shifts[i].what);
        is_int(paired_uncertainty_ns(&shifts[i].b, &shifts[i].a), shifts[i].want,
               "and the other way round");
    }
}

static const struct {
    const char *what;
    int64_t a[SPREAD_N], b[SPREAD_N], apart_by_comm; /* at the slow end */
    bool tie;
} ties[] = {
    {"5 % apart, nothing uncertain", {900, 1000, 1100}, {950, 1050, 1150}, 0, false},
    {"5 % apart, less uncertain", {900, 1000, 1100}, {950, 1050, 1150}, 49, false},
    {"5 % apart, as much uncertain", {900, 1000, 1100}, {950, 1050, 1150}, 50, true},
    {"less than 1 % apart", {900, 1000, 1100}, {905, 1009, 1105}, 0, true},
    {"1 % apart", {900, 1000, 1100}, {905, 1010, 1115}, 0, false},
    {"another order at the slow end", {900, 1000, 1200}, {950, 1050, 1190}, 0, true},
    {"equal at the fast end", {900, 1000, 1100}, {900, 1050, 1150}, 0, true},
    {"the same", {900, 1000, 1100}, {900, 1000, 1100}, 0, true},
};

static void test_ties(void)
{
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++) {
        const struct paired_shift a = {{{0}}};
        struct paired_shift b = {{{0}}};
        b.ns[PAIRED_COMMUNICATION][PAIRED_SLOW] = ties[i].apart_by_comm;
        is_int(paired_tie(ties[i].a, &a, ties[i].b, &b), ties[i].tie, "%s: %s", ties[i].what,
               ties[i].tie ? "a tie" : "no tie");
        is_int(paired_tie(ties[i].b, &b, ties[i].a, &a), ties[i].tie, "from either side");
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

struct priced {
    struct made made;
    struct prices prices[SPREAD_N];
    int64_t step_ns[SPREAD_N];
    struct paired_shift shift;
};

static void price_plan(struct priced *p, const struct cluster *cluster,
                       const struct plan_options *options)
{
    struct step_time time;
    struct err err = {0};

    make_init(&p->made, "llama3-8b", 4, options);
    for (int s = 0; s < SPREAD_N; s++) {
        if (cost_price(cluster, (enum spread)s, &p->made.program, &p->made.arena, &p->prices[s],
                       &err) ||
            simulate(&p->made.program, &p->prices[s], NULL, &p->made.arena, &time, NULL, &err))
            tap_bail(err.text);
        p->step_ns[s] = time.step_ns;
    }
    if (paired_simulate(&p->made.program, p->prices, NULL, &p->shift, &err))
        tap_bail(err.text);
}

/* No group alone reaches farther than all at once, and one GPU has no communication. */
static void test_shifts(const struct cluster *cluster)
{
    struct plan_options options = plan_options_default();
    struct priced eight, one;

    price_plan(&eight, cluster, &options);
    options.gpus = 1;
    price_plan(&one, cluster, &options);
    for (int g = 0; g < PAIRED_GROUP_N; g++) {
        const int64_t *ns = eight.shift.ns[g];
        ok(ns[PAIRED_FAST] <= 0 && ns[PAIRED_SLOW] >= 0, "%s: %lld to %+lld ns",
           paired_group_name((enum paired_group)g), (long long)ns[PAIRED_FAST],
           (long long)ns[PAIRED_SLOW]);
        ok(ns[PAIRED_FAST] >= eight.step_ns[SPREAD_LOW] - eight.step_ns[SPREAD_MID] &&
               ns[PAIRED_SLOW] <= eight.step_ns[SPREAD_HIGH] - eight.step_ns[SPREAD_MID],
           "inside of low and high");
    }
    ok(eight.shift.ns[PAIRED_COMPUTE][PAIRED_SLOW] > 0, "compute moves a step");
    is_int(one.shift.ns[PAIRED_COMMUNICATION][PAIRED_SLOW], 0, "one GPU does not communicate");
    make_release(&eight.made);
    make_release(&one.made);
}

/* Two plans with the same products: their difference is known far better than their times. */
static void test_cancels(const struct cluster *cluster)
{
    struct plan_options options = plan_options_default();
    struct priced a, b;

    options.batch = 4;
    price_plan(&a, cluster, &options);
    options.reshard = RESHARD_NO;
    price_plan(&b, cluster, &options);
    const int64_t uncertain = paired_uncertainty_ns(&a.shift, &b.shift);
    ok(uncertain * 10 < a.step_ns[SPREAD_HIGH] - a.step_ns[SPREAD_LOW],
       "what is shared cancels: %lld ns of %lld are left", (long long)uncertain,
       (long long)(a.step_ns[SPREAD_HIGH] - a.step_ns[SPREAD_LOW]));
    is_int(paired_uncertainty_ns(&a.shift, &a.shift), 0, "a plan against itself is certain");
    make_release(&a.made);
    make_release(&b.made);
}

int main(void)
{
    struct arena arena;
    struct cluster h100;
    struct err err = {0};

    arena_init(&arena);
    if (cluster_open("h100-sxm", &arena, &h100, &err))
        tap_bail(err.text);
    test_uncertainty();
    test_ties();
    test_shifts(&h100);
    test_cancels(&h100);
    arena_release(&arena);
    return tap_done();
}
