/*
 * The picture of time and memory: two drawn from rows made by hand, and what holds for any.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/plan_plot.h"
#include "src/cli/plan_rank.h"
#include "tests/tap.h"

enum { MAX_ROWS = 60 };

static const struct term plain = {"", "", "", "", "", "", false};
static const struct term utf8 = {"", "", "", "", "", "", true};
static const uint64_t GIB = UINT64_C(1) << 30;

static struct plan_row make_row(int64_t ms, uint64_t gib, uint64_t limit_gib)
{
    return (struct plan_row){.step_ns = {ms * 900000, ms * 1000000, ms * 1100000},
                             .tokens = 1,
                             .total_bytes = gib * GIB,
                             .n_unit = 1,
                             .fits = gib <= limit_gib};
}

static char *draw_in(unsigned columns, struct plan_row *rows, uint32_t n, uint64_t limit_gib,
                     const struct term *term)
{
    struct text out;
    text_init(&out);
    plan_rows_rank(rows, n);
    const struct plan_plot plot = {rows, n, limit_gib * GIB, columns};
    plan_plot_text(&plot, term, &out);
    return out.at;
}

static char *draw(struct plan_row *rows, uint32_t n, uint64_t limit_gib, const struct term *term)
{
    return draw_in(TERM_PAGE_COLUMNS, rows, n, limit_gib, term);
}

/* On the front, beside it, in one place, behind the limit and far above. */
static void test_some_fit(void)
{
    enum { LIMIT = 80 };
    static const struct {
        int64_t ms;
        uint64_t gib;
    } points[] = {{1000, 70}, {1010, 60}, {1040, 40}, {1015, 65},
                  {1015, 65}, {1020, 90}, {2000, 99}};
    struct plan_row rows[sizeof points / sizeof *points];
    uint32_t n = sizeof points / sizeof *points;
    for (uint32_t i = 0; i < n; i++)
        rows[i] = make_row(points[i].ms, points[i].gib, LIMIT);
    char *picture = draw(rows, n, LIMIT, &plain);
    is_golden(picture, "plan-picture.txt");
    free(picture);
    picture = draw(rows, n, LIMIT, &utf8);
    ok(strstr(picture, "●1") && strstr(picture, "┃") && strstr(picture, "↑7"),
       "a terminal that shows UTF-8 gets dots and lines");
    free(picture);
}

/* The limit is far to the left, one plan far to the right. */
static void test_none_fits(void)
{
    enum { LIMIT = 40 };
    struct plan_row rows[] = {make_row(1000, 110, LIMIT), make_row(1010, 120, LIMIT),
                              make_row(990, 150, LIMIT), make_row(1005, 5000, LIMIT)};
    char *picture = draw(rows, 4, LIMIT, &plain);
    is_golden(picture, "plan-picture-none.txt");
    free(picture);
}

static void test_too_few(void)
{
    struct plan_row rows[] = {make_row(1000, 10, 80), {.refused = "a reason"}};
    ok(!draw(rows, 2, 80, &plain), "one plan makes no picture");
}

/* Each line short and printable; in ASCII a byte is a column. */
static bool is_page(unsigned columns, const char *picture)
{
    size_t column = 0;
    for (const char *at = picture; *at; at++) {
        column = *at == '\n' ? 0 : column + 1;
        bool blank_end = *at == ' ' && at[1] == '\n';
        if (column > columns || blank_end || (*at != '\n' && (*at < ' ' || *at > '~'))) {
            tap_note("column %zu of: %.120s", column, at - column);
            return false;
        }
    }
    return true;
}

static void test_any(void)
{
    uint64_t state = tap_seed(20261129);
    bool good = true;
    for (unsigned i = 0; i < 300 && good; i++) {
        struct plan_row rows[MAX_ROWS];
        uint32_t n = 2 + (uint32_t)tap_below(&state, MAX_ROWS - 2);
        uint64_t limit = 1 + tap_below(&state, 300);
        uint64_t slowest = 1 + tap_below(&state, 1u << tap_below(&state, 30));
        uint64_t largest = 1 + tap_below(&state, 1u << tap_below(&state, 20));
        for (uint32_t k = 0; k < n; k++) {
            rows[k] = make_row(1 + (int64_t)tap_below(&state, slowest),
                               1 + tap_below(&state, largest), limit);
            rows[k].refused = tap_below(&state, 10) ? NULL : "a reason";
        }
        unsigned columns =
            PLAN_PLOT_LEAST_COLUMNS +
            (unsigned)tap_below(&state, TERM_PAGE_COLUMNS - PLAN_PLOT_LEAST_COLUMNS + 1);
        char *picture = draw_in(columns, rows, n, limit, &plain);
        good = !picture || is_page(columns, picture);
        free(picture);
    }
    ok(good, "whatever is drawn is a page of ASCII, no wider than it may be");
}

int main(void)
{
    test_some_fit();
    test_none_fits();
    test_too_few();
    test_any();
    return tap_done();
}
