/*
 * Plans in order: rows made by hand, and where each of them must stand.
 *
 * Times are in ns and memory in bytes, so small that one sees which is which. A row is told as
 * "low mid high total units", with '!' behind what does not fit, 'x' and a number for what has so many
 * times the tokens in a step, and "refused" for what is refused;
 * an expectation as "NAME RANK MARKS", where NAME is the row's place among those given, '=' is tied
 * with rank 1, '*' is on the front and '>' is the one to take.
 */
#include <stdio.h>
#include <string.h>

#include "src/cli/plan_rank.h"
#include "tests/tap.h"

enum { MAX_ROWS = 8 };

static const struct {
    const char *what;
    const char *rows[MAX_ROWS + 1];
    const char *want;
} cases[] = {
    {"the faster one is first", {"90 200 300 10 1", "80 100 200 10 1"}, "b1>* a2"},
    {"what does not fit stands behind what does, the smaller first",
     {"9 10 11 90 1!", "9 10 11 80 1!", "900 1000 1100 50 1"},
     "c1>* b2 a3"},
    {"the refused are last and have no rank",
     {"refused", "90 100 110 10 1", "refused", "900 1000 1100 90 1!"},
     "b1>* d2 a- c-"},
    {"half a percent apart is a tie", {"900 1000 1100 10 1", "905 1005 1105 20 1"}, "a1>* b2="},
    {"one percent apart is none", {"900 1000 1100 10 1", "910 1010 1110 20 1"}, "a1>* b2"},
    {"nor is far apart in one order", {"900 1000 1100 10 1", "1000 1200 1400 20 1"}, "a1>* b2"},
    {"another order at low is a tie", {"900 1000 1100 10 1", "890 1200 1400 20 1"}, "a1>* b2="},
    {"another order at high is a tie", {"900 1000 1500 10 1", "950 1200 1400 20 1"}, "a1>* b2="},
    {"equal at low alone is a tie", {"900 1000 1100 10 1", "900 1200 1400 20 1"}, "a1>* b2="},
    {"what does not fit is tied with nothing",
     {"900 1000 1100 10 1", "900 1000 1100 90 1!"},
     "a1>* b2"},
    {"ties are with the first, not in a chain",
     {"900 1000 1100 10 1", "907 1007 1107 20 1", "914 1014 1114 30 1"},
     "a1>* b2= c3"},
    {"equal in time: less memory is first", {"9 10 11 20 1", "9 10 11 10 9"}, "b1>* a2="},
    {"equal in both: fewer units are first, and alone on the front",
     {"9 10 11 10 9", "9 10 11 10 1"},
     "b1>* a2="},
    {"equal in all: as they were asked for",
     {"9 10 11 10 1", "9 10 11 10 1", "9 10 11 10 1"},
     "a1>* b2= c3="},
    {"slower and smaller is on the front, slower and larger is not",
     {"100 200 300 50 1", "200 300 400 40 1", "300 400 500 45 1", "400 500 600 30 1"},
     "a1>* b2* c3 d4*"},
    {"as fast and larger is not on the front", {"9 10 11 20 1", "9 10 11 10 1"}, "b1>* a2="},
    {"a tie with fewer units is to be taken where it is smaller",
     {"900 1000 1100 50 9", "905 1005 1105 40 3"},
     "a1* b2>*="},
    {"not where it is larger", {"900 1000 1100 50 9", "905 1005 1105 60 3"}, "a1>* b2="},
    {"not where it has more units", {"900 1000 1100 50 9", "905 1005 1105 40 10"}, "a1>* b2*="},
    {"not where it is slower for sure", {"900 1000 1100 50 9", "950 1050 1150 40 1"}, "a1>* b2*"},
    {"of several the one with the fewest, then the faster",
     {"900 1000 1100 50 9", "903 1003 1103 45 3", "905 1005 1105 40 3"},
     "a1* b2>*= c3*="},
    {"more tokens in a longer step are first where a token takes less time",
     {"900 1000 1100 10 1", "1700 1900 2100 20 1x2", "1900 2100 2300 30 1x2"},
     "b1>* a2* c3"},
    {"a tie is one of times of a token",
     {"900 1000 1100 10 1", "1806 2008 2206 20 1x2", "1800 2000 2400 30 1x2"},
     "a1>* c2= b3="},
    {"where nothing fits nothing is to be taken, and the front is of all",
     {"900 1000 1100 50 1!", "950 1050 1150 40 1!", "refused", "960 1060 1160 45 1!"},
     "b1* d2 a3* c-"},
    {"where all are refused there is no front", {"refused", "refused"}, "a- b-"},
};

/* Its place among those given is kept in n_collective, which nothing here looks at. */
static struct plan_row read_row(const char *words, uint32_t place)
{
    struct plan_row row = {.n_collective = place, .tokens = 1};
    long long low, mid, high, total;
    unsigned long long times;
    char mark = ' ';
    if (!strcmp(words, "refused")) {
        row.refused = "a reason";
        return row;
    }
    const int n = sscanf(words, "%lld %lld %lld %lld %u%c%llu", &low, &mid, &high, &total,
                         &row.n_unit, &mark, &times);
    if (n < 5)
        tap_bail(words);
    row.tokens = n == 7 ? times : 1;
    row.step_ns[SPREAD_LOW] = low;
    row.step_ns[SPREAD_MID] = mid;
    row.step_ns[SPREAD_HIGH] = high;
    row.total_bytes = (uint64_t)total;
    row.fits = mark != '!';
    return row;
}

static void describe(const struct plan_row *rows, uint32_t n, char *out, size_t size)
{
    const struct plan_row *best = plan_rows_best(rows, n);
    size_t length = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        char rank[12] = "-";
        if (rows[i].rank != PLAN_NO_RANK)
            snprintf(rank, sizeof rank, "%u", rows[i].rank);
        length +=
            (size_t)snprintf(out + length, size - length, "%s%c%s%s%s%s", i ? " " : "",
                             'a' + (int)rows[i].n_collective, rank, &rows[i] == best ? ">" : "",
                             rows[i].on_front ? "*" : "", rows[i].tied ? "=" : "");
    }
}

static void test_smallest(void)
{
    struct plan_row rows[] = {read_row("9 10 11 90 1", 0), read_row("90 100 110 40 1", 1),
                              read_row("9 10 11 95 1!", 2), read_row("refused", 3)};
    plan_rows_rank(rows, 4);
    const struct plan_row *smallest = plan_rows_smallest(rows, 4);
    ok(smallest && smallest->n_collective == 1, "the smallest need not be the fastest");
    const struct plan_row *best = plan_rows_best(rows, 4);
    ok(plan_rows_runner_up(rows, 4, best) == &rows[1], "the runner-up is the next that fits");
    ok(!plan_rows_runner_up(rows, 1, best), "one plan has none");
    ok(plan_rows_slower(&rows[1], &rows[0]) == 9, "ten times the time is nine times as much more");
    plan_rows_rank(&rows[3], 1);
    ok(!plan_rows_smallest(&rows[3], 1), "of the refused none is the smallest");
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_row rows[MAX_ROWS];
        char got[200];
        uint32_t n = 0;
        for (; cases[i].rows[n]; n++)
            rows[n] = read_row(cases[i].rows[n], n);
        plan_rows_rank(rows, n);
        describe(rows, n, got, sizeof got);
        is_str(got, cases[i].want, "%s", cases[i].what);
    }
    test_smallest();
    return tap_done();
}
