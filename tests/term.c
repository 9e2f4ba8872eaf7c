/*
 * Names as they are printed: what is too long is cut at its beginning, and not within a word or a number
 * of it where it has several.
 */
#include "src/cli/term.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

/* n times the part, then the end. */
static void make_name(const char *part, unsigned n, const char *end, char out[512])
{
    *out = '\0';
    for (unsigned i = 0; i < n; i++)
        strcat(out, part);
    strcat(out, end);
}

static void test_cuts(void)
{
    static const struct {
        const char *part;
        unsigned n;
        const char *end, *want, *what;
    } cases[] = {
        {"x", 80, "", "x", "what fits stays"},
        {"12x34k ", 12, "norm", "... 12x34k ", "units of a search are cut between words"},
        {"folder12/", 12, "config.json", ".../folder12/", "a path between folders"},
        {"model.layers.12,", 7, "lm_head", "...,model.layers.12,", "a list between modules"},
        {"block*123;", 12, "whole", "...;block*123;", "plans between each other"},
        {"1", 90, "", "...1", "what is one word within it"},
        {"1", 90, "/", "...1", "though it ends with a border"},
        {"1", 90, " \xc3\xa4", "... \xc3\xa4", "the last word may be all that is left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[512], buffer[TERM_NAME_BYTES];
        make_name(cases[i].part, cases[i].n, cases[i].end, name);
        term_name(name, buffer);
        ok(strncmp(buffer, cases[i].want, strlen(cases[i].want)) == 0 &&
               term_columns(buffer) <= TERM_NAME_COLUMNS,
           "%s: %.24s", cases[i].what, buffer);
    }
}

/* Whatever is cut off, what is left is an end of the name, and begins with a border. */
static void test_every_length(void)
{
    static const char part[] = "12x3k 4+norm/5,";
    char name[512], buffer[TERM_NAME_BYTES];
    unsigned bad = 0;

    for (unsigned n = 81; n < 81 + sizeof part; n++) {
        make_name(part, 16, "", name);
        const char *from = name + strlen(name) - n;
        term_name(from, buffer);
        bad += strncmp(buffer, "...", 3) != 0 || !strchr(" /,", buffer[3]) ||
               strcmp(buffer + 3, from + n - strlen(buffer + 3)) != 0;
    }
    is_int(bad, 0, "names of every length are cut at a border");
}

int main(void)
{
    test_cuts();
    test_every_length();
    return tap_done();
}
