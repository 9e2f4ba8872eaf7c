/*
 * Tables in CSV: what is read, and what is refused with its line.
 */
#include <string.h>

#include "src/csv.h"
#include "src/text.h"
#include "tests/tap.h"

static struct arena arena;

/* All fields, "|" between those of a row and "/" between rows, the header first. */
static void join(const struct csv *csv, struct text *out)
{
    text_init(out);
    for (uint32_t c = 0; c < csv->n_column; c++)
        text_add(out, "%s%s", c ? "|" : "", csv->columns[c]);
    for (uint32_t i = 0; i < csv->n_row * csv->n_column; i++)
        text_add(out, "%s%s", i % csv->n_column ? "|" : "/", csv->fields[i]);
}

static void test_good(void)
{
    static const struct {
        const char *what, *text, *joined;
        uint32_t last_line;
    } cases[] = {
        {"lines", "a,b\n1,2\n3,4\n", "a|b/1|2/3|4", 3},
        {"a last line without an end", "a,b\n1,2", "a|b/1|2", 2},
        {"carriage returns", "a,b\r\n1,2\r\n", "a|b/1|2", 2},
        {"empty fields", "a,b\n,\n", "a|b/|", 2},
        {"one column, an empty field", "a\n\n", "a/", 2},
        {"quotes", "a,b\n\"x, y\",\"say \"\"z\"\"\"\n", "a|b/x, y|say \"z\"", 2},
        {"an empty field in quotes", "a,b\n\"\",2\n", "a|b/|2", 2},
        {"a line break in quotes", "a,b\n\"1\n2\",3\n4,5\n", "a|b/1\n2|3/4|5", 4},
        {"blanks stay", "a,b\n 1 ,2\n", "a|b/ 1 |2", 2},
        {"a header alone", "a,b\n", "a|b", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        struct text joined;
        struct csv csv;
        if (!is_int(csv_parse(cases[i].text, "t.csv", &arena, &csv, &err), STATUS_OK, "%s (%s)",
                    cases[i].what, err.text))
            continue;
        join(&csv, &joined);
        is_str(joined.at, cases[i].joined, "%s: the fields", cases[i].what);
        if (csv.n_row > 0)
            is_int(csv.lines[csv.n_row - 1], cases[i].last_line, "%s: the last row's line",
                   cases[i].what);
        text_release(&joined);
    }
}

static void test_bad(void)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"", "t.csv: line 1: the file is empty"},
        {"a,b\n1\n", "t.csv: line 2: 1 fields, the header has 2"},
        {"a,b\n1,2\n1,2,3\n", "t.csv: line 3: 3 fields, the header has 2"},
        {"a,b\n1,2\n\n", "t.csv: line 3: 1 fields, the header has 2"},
        {"a,a\n1,2\n", "t.csv: line 1: column 'a' is there twice"},
        {"a,\n1,2\n", "t.csv: line 1: column 2 has no name"},
        {"a,b\n\"1,2\n", "t.csv: line 2: a quote is opened and never closed"},
        {"a,b\n\"1\"x,2\n", "t.csv: line 2: text behind a closing quote"},
        {"a,b\n1\"2\",3\n", "t.csv: line 2: a quote inside a field"},
        {"a,b\r1,2\r", "t.csv: line 1: a carriage return without a line feed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        struct csv csv;
        is_int(csv_parse(cases[i].text, "t.csv", &arena, &csv, &err), STATUS_INPUT, "%s",
               cases[i].told);
        ok(!strncmp(err.text, cases[i].told, strlen(cases[i].told)), "that is told (got '%s')",
           err.text);
    }
}

/* Any text is read, or refused in one line. */
static void test_random(void)
{
    static const char signs[] = "ab,,\"\"\n\r x1";
    uint64_t state = tap_seed(3);
    uint32_t silent = 0, read = 0;

    for (int round = 0; round < 3000; round++) {
        char text[24] = "";
        struct err err = {0};
        struct csv csv;
        for (size_t i = 0, n = tap_below(&state, sizeof text); i < n; i++)
            text[i] = signs[tap_below(&state, sizeof signs - 1)];
        if (csv_parse(text, "t.csv", &arena, &csv, &err) == STATUS_OK)
            read++;
        else
            silent += err.status != STATUS_INPUT || strchr(err.text, '\n') || !*err.text;
        arena_reset(&arena);
    }
    is_int(silent, 0, "a text that is refused says why");
    ok(read > 0 && read < 3000, "both happened (%u of 3000 were read)", read);
}

int main(void)
{
    struct err err = {0};
    struct csv csv;

    arena_init(&arena);
    test_good();
    test_bad();
    test_random();
    is_int(csv_read("no-such-file.csv", &arena, &csv, &err), STATUS_INPUT, "no file is told");
    arena_release(&arena);
    return tap_done();
}
