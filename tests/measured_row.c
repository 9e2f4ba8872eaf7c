/*
 * Made-up times by size: which are hiccups, and what is filled in where sizes are far apart.
 */
#include "src/cli/measured_row.h"

#include <math.h>

#include "src/cli/collective_fit.h"
#include "tests/tap.h"

enum { MOST = CLUSTER_MAX_POINTS };
static const double MIB = 1048576;

/* ---- hiccups ------------------------------------------------------------------------------------ */

static void test_hiccups(void)
{
    static const struct {
        const char *what;
        double us[6]; /* of 1, 2, 4... MiB; 0: no more */
        const char *hiccups;
    } cases[] = {
        {"times that rise are kept", {10, 20, 40, 80}, "...."},
        {"so are those that stay", {10, 10, 10, 10}, "...."},
        {"one above the next is a hiccup", {10, 30, 20, 40}, ".x.."},
        {"and one above any larger", {10, 50, 60, 45, 100}, ".xx.."},
        {"the first may be one", {90, 20, 30, 40}, "x..."},
        {"the last never is", {10, 20, 30, 90}, "...."},
        {"nor is a large one too fast: noise only adds", {10, 20, 40, 9}, "xxx."},
        {"what repeats differ by is none", {10, 20.5, 20, 40}, "...."},
        {"a little more is", {10, 20.7, 20, 40}, ".x.."},
    };

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct collective_point points[6], kept[6];
        struct measured_row row = {TASK_ALL_GATHER, 8, 1, .points = points};
        char hiccups[7] = "";
        uint32_t want = 0;

        for (; row.n_point < 6 && cases[c].us[row.n_point] > 0; row.n_point++)
            points[row.n_point] = (struct collective_point){ldexp(MIB, (int)row.n_point),
                                                            cases[c].us[row.n_point] * 1e-6};
        const uint32_t n = measured_row_kept(&row, kept);
        for (uint32_t i = 0; i < row.n_point; i++) {
            const bool is_hiccup = measured_row_is_hiccup(&row, i);
            hiccups[i] = is_hiccup ? 'x' : '.';
            want += !is_hiccup && want < n && kept[want].bytes == points[i].bytes;
        }
        is_str(hiccups, cases[c].hiccups, "%s", cases[c].what);
        is_int(n, want, "and all others are kept, in their order");
    }
}

/* ---- gaps --------------------------------------------------------------------------------------- */

/* Steps at 2 and 16 MiB. */
static const struct collective_point curve[] = {
    {1048576, 10e-6}, {2097152, 30e-6}, {4194304, 32e-6}, {8388608, 34e-6}, {16777216, 70e-6}};
enum { CURVE_N = sizeof curve / sizeof *curve };

static struct collective_row stepped(void)
{
    return (struct collective_row){.kind = TASK_ALL_REDUCE,
                                   .ranks = 8,
                                   .a_s = 10e-6,
                                   .bytes_per_s = 1e12,
                                   .shape = curve,
                                   .n_shape = CURVE_N};
}

/* Of curve's sizes those of the mask, each as many times as long and so much longer. */
static uint32_t measure(unsigned mask, double times, double start_us, double us_per_mib,
                        struct collective_point *out)
{
    uint32_t n = 0;

    for (int i = 0; i < CURVE_N; i++)
        if (mask >> i & 1)
            out[n++] = (struct collective_point){
                curve[i].bytes,
                times * curve[i].seconds + (start_us + us_per_mib * curve[i].bytes / MIB) * 1e-6};
    return n;
}

static double us_of(const struct collective_point *points, uint32_t n, double mib)
{
    for (uint32_t i = 0; i < n; i++)
        if (points[i].bytes == mib * MIB)
            return points[i].seconds * 1e6;
    return NAN;
}

/* On a machine that launches as fast and takes so much longer by size, each gap is filled with what is
   left out of it. */
static void test_gaps(double us_per_mib)
{
    const struct collective_row steps = stepped();
    uint32_t right = 0, gaps = 0;

    for (unsigned mask = 17; mask < 32; mask += 2) { /* the first and the last are always there */
        struct collective_point points[CURVE_N], full[CURVE_N], filled[MOST];
        const struct measured_row row = {TASK_ALL_REDUCE,
                                         8,
                                         1,
                                         .points = points,
                                         .n_point =
                                             measure(mask, 1, -us_per_mib, us_per_mib, points),
                                         .steps = &steps};
        const uint32_t n = measured_row_fill(&row, points, row.n_point, filled);
        measure(31, 1, -us_per_mib, us_per_mib, full);
        bool same = n == CURVE_N;
        for (uint32_t i = 0; i < CURVE_N && same; i++)
            same = filled[i].bytes == full[i].bytes &&
                   fabs(filled[i].seconds - full[i].seconds) < 1e-12;
        right += same;
        gaps++;
    }
    is_int(right, gaps, "steps and %g us a MiB more: what is left out is filled in", us_per_mib);
}

static void test_between(void)
{
    static const struct {
        const char *what;
        unsigned mask; /* of curve's sizes */
        double times, start_us;
        double mib, us; /* what has to be there; NAN: that nothing is */
    } cases[] = {
        {"where launches take longer than all of it, so does what is filled in", 17, 0, 90, 4, 90},
        {"a machine ten times as fast is in no size quicker than its quickest", 17, 0.1, 0, 8, 1},
        {"nor slower than a larger message", 9, 0.1, 0, 2, 3.4},
        {"sizes as far apart as they were measured have nothing between", 31, 1, 0, 3, NAN},
        {"nor is there anything before the first", 30, 1, 0, 1, NAN},
        {"or after the last", 15, 1, 0, 16, NAN},
    };
    const struct collective_row steps = stepped();

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct collective_point points[CURVE_N], filled[MOST];
        const struct measured_row row = {
            TASK_ALL_REDUCE,
            8,
            1,
            .points = points,
            .n_point = measure(cases[c].mask, cases[c].times, cases[c].start_us, 0, points),
            .steps = &steps};
        const uint32_t n = measured_row_fill(&row, points, row.n_point, filled);
        const double us = us_of(filled, n, cases[c].mib);
        ok(isnan(cases[c].us) ? isnan(us) : fabs(us - cases[c].us) < 1e-9, "%s: %g us",
           cases[c].what, us);
    }
}

/* Sizes that are no powers of two, and more gaps than anybody measures. */
static void test_sizes(void)
{
    static const struct collective_point odd[] = {{1.5e6, 20e-6}, {2.9e6, 30e-6}, {9e6, 50e-6}};
    const struct collective_row steps = stepped();
    struct measured_row row = {TASK_ALL_REDUCE, 8, 1, .points = odd, .n_point = 3, .steps = &steps};
    struct collective_point filled[MOST], many[MEASURED_MOST_SIZES];

    uint32_t n = measured_row_fill(&row, odd, 3, filled);
    ok(n == 5 && filled[1].bytes == 2.9e6 && filled[2].bytes == 4 * MIB &&
           filled[3].bytes == 8 * MIB,
       "powers of two are filled in where the next size is more than twice as large");
    row.steps = NULL;
    is_int(measured_row_fill(&row, odd, 3, filled), 3, "nothing where nobody tells of steps");

    row.steps = &steps;
    for (uint32_t i = 0; i + 1 < MEASURED_MOST_SIZES; i++)
        many[i] = (struct collective_point){FIT_LEAST_BYTES + i, 20e-6};
    many[MEASURED_MOST_SIZES - 1] = (struct collective_point){ldexp(1, 64), 1};
    n = measured_row_fill(&row, many, MEASURED_MOST_SIZES, filled);
    ok(n > MEASURED_MOST_SIZES + 40 && n <= MOST, "all that can be missing has room: %u points", n);
    uint32_t falls = 0;
    for (uint32_t i = 1; i < n; i++)
        falls += filled[i].bytes <= filled[i - 1].bytes;
    is_int(falls, 0, "in the order of their bytes");
}

/* ---- who tells of steps --------------------------------------------------------------------------- */

static void test_steps(void)
{
    static const struct collective_row rows[] = {
        {TASK_ALL_GATHER, 8, 1, .source = "a formula"},
        {TASK_REDUCE_SCATTER, 8, 1, .shape = curve, .n_shape = CURVE_N, .source = "a shape"},
        {TASK_ALL_REDUCE, 8, 0, .points = curve, .n_point = CURVE_N, .source = "points"},
        {TASK_ALL_REDUCE, 16, 2, .shape = curve, .n_shape = CURVE_N, .source = "two nodes"},
    };
    static const struct {
        uint8_t kind;
        uint32_t ranks, nodes;
        const char *source;
    } cases[] = {
        {TASK_ALL_GATHER, 8, 1, "none"},     {TASK_REDUCE_SCATTER, 8, 1, "a shape"},
        {TASK_ALL_REDUCE, 8, 1, "none"},     {TASK_ALL_REDUCE, 16, 2, "two nodes"},
        {TASK_ALL_REDUCE, 4, 1, "none"},     {TASK_ALL_REDUCE, 16, 1, "none"},
        {TASK_REDUCE_SCATTER, 8, 2, "none"},
    };
    const struct cluster cluster = {.collectives = rows,
                                    .n_collective = sizeof rows / sizeof *rows};

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct measured_row row = {
            .kind = cases[c].kind, .ranks = cases[c].ranks, .nodes = cases[c].nodes};
        const struct collective_row *steps = measured_row_steps(&row, &cluster);
        is_str(steps ? steps->source : "none", cases[c].source, "%s of %u ranks on %u nodes",
               task_kind_name((enum task_kind)row.kind), row.ranks, row.nodes);
    }
}

/* Points may be the very times that are looked at: only a shape is another machine's. */
static void test_points(void)
{
    static const struct collective_point flat[] = {{1048576, 1e-6}, {16777216, 1e-6}};
    const struct collective_row by_shape = stepped();
    struct collective_row by_both = stepped();
    struct collective_point points[CURVE_N], want[MOST], got[MOST];
    struct measured_row row = {
        TASK_ALL_REDUCE,   8, 1, .points = points, .n_point = measure(17, 1, 5, 1, points),
        .steps = &by_shape};
    const uint32_t n = measured_row_fill(&row, points, row.n_point, want);

    by_both.points = flat;
    by_both.n_point = 2;
    row.steps = &by_both;
    bool same = measured_row_fill(&row, points, row.n_point, got) == n;
    for (uint32_t i = 0; i < n; i++)
        same &= got[i].seconds == want[i].seconds;
    ok(same, "points of the row that tells of steps are not asked");
}

int main(void)
{
    test_hiccups();
    test_gaps(0);
    test_gaps(2.5);
    test_gaps(40);
    test_between();
    test_sizes();
    test_steps();
    test_points();
    return tap_done();
}
