/*
 * Times from text: microseconds in any spelling become the nearest ns, without a double on the way.
 */
#include "traces/trace_json.h"

#include <inttypes.h>

#include "tests/tap.h"
#include "traces/chrome_event.h"

static bool us_of(const char *text, int64_t *ns)
{
    struct json_scan scan = json_scan_of(text, strlen(text));
    struct json_span span;
    return json_scan_value(&scan, &span) && json_scan_done(&scan) && json_span_us(&span, ns);
}

static void test_times(void)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"0", 0},
        {"1", 1000},
        {"0.001", 1},
        {"-0.001", -1},
        {"0.0005", 1},
        {"0.0004999", 0},
        {"1.5e3", 1500000},
        {"15E-1", 1500},
        {"0e999", 0},
        {"1e-400", 0},
        {"\"1.001\"", 1001},
        {"1712195406752834.123", 1712195406752834123}, /* no double holds it */
        {"9223372036854775.807", INT64_MAX},
        {"-9223372036854775.807", -INT64_MAX},
        {"0.30000000000000004", 300},
        {"1.0000000000000000000000000000000000001", 1000},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t ns = -7;
        us_of(good[i].text, &ns);
        is_int(ns, good[i].ns, "%s us", good[i].text);
    }
    static const char *const bad[] = {
        "9223372036854775.808",
        "1e400",
        "1e17",
        "\"\"",
        "\"1us\"",
        "null",
        "[1]",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "0x10",
        "NaN",
        "-",
        "--1",
        "",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t ns;
        ok(!us_of(bad[i], &ns), "'%s' is no time", bad[i]);
    }
}

static void test_round_trip(uint64_t *state)
{
    struct chrome_event event;
    int wrong = 0;
    event_init(&event);
    for (int i = 0; i < 20000; i++) {
        const int64_t want = (int64_t)(tap_random(state) >> tap_below(state, 64)) >> 1;
        int64_t got = -7;
        size_t length;
        event_begin(&event);
        event_us(&event, "ts", i % 2 ? want : -want);
        const char *line = event_print(&event, &length);
        struct json_scan scan = json_scan_of(line, length);
        struct json_span key, value;
        json_scan_open(&scan, '{');
        if (!json_scan_member(&scan, &key, &value) || !json_span_us(&value, &got) ||
            got != (i % 2 ? want : -want)) {
            tap_note("%" PRId64 " is written as %s", want, line);
            wrong++;
        }
    }
    event_release(&event);
    is_int(wrong, 0, "times that are written are read back to the ns");
}

static void test_depth(void)
{
    char deep[400];
    struct json_span span;
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    struct json_scan scan = json_scan_of(deep, sizeof(deep));
    ok(!json_scan_value(&scan, &span), "brackets two hundred deep are refused");
    scan = json_scan_of(deep + 160, 80);
    ok(json_scan_value(&scan, &span), "brackets forty deep are not");
}

int main(void)
{
    uint64_t state = tap_seed(20261129);
    test_times();
    test_round_trip(&state);
    test_depth();
    return tap_done();
}
