/*
 * Names as lines of Python: which of them become a loop, how numbers are said in it, and what is done
 * with letters that Python would read otherwise. That the code yields the names again is held by
 * emit_torch.sh.
 */
#include "src/cli/emit_python.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

enum { MAX_ITEMS = 8, MAX_WORDS = 6 };

/* Items are separated by '|', their words by ' '; what follows a '!' is the tail. */
static const struct {
    const char *what, *items, *want;
} cases[] = {
    {"no item is no line", "", ""},
    {"what has no number stands alone", "wte|wpe", "    f(\"wte\")\n    f(\"wpe\")\n"},
    {"two lines are no loop", "h.0|h.1", "    f(\"h.0\")\n    f(\"h.1\")\n"},
    {"three are", "h.0|h.1|h.2", "    for i in range(3):\n        f(f\"h.{i}\")\n"},
    {"which begins anywhere", "h.5.a|h.6.a|h.7.a",
     "    for i in range(5, 8):\n        f(f\"h.{i}.a\")\n"},
    {"with a step", "h.0 h.1|h.2 h.3|h.4 h.5",
     "    for i in range(0, 6, 2):\n        f(f\"h.{i}\", f\"h.{i + 1}\")\n"},
    {"a number below the first", "h.1 h.0|h.3 h.2|h.5 h.4",
     "    for i in range(1, 7, 2):\n        f(f\"h.{i}\", f\"h.{i - 1}\")\n"},
    {"two lines that repeat", "h.0.a|h.0.b|h.1.a|h.1.b",
     "    for i in range(2):\n        f(f\"h.{i}.a\")\n        f(f\"h.{i}.b\")\n"},
    {"another step ends it", "h.0|h.1|h.2|h.4",
     "    for i in range(3):\n        f(f\"h.{i}\")\n    f(\"h.4\")\n"},
    {"another tail is another line", "h.0!, x|h.1|h.2!, x|h.3",
     "    for i in range(0, 4, 2):\n        f(f\"h.{i}\", x)\n        f(f\"h.{i + 1}\")\n"},
    {"words in a row are a range", "h.3 h.4 h.5 n",
     "    f(*(f\"h.{j}\" for j in range(3, 6)), \"n\")\n"},
    {"also in a loop", "h.0 h.1 h.2|h.3 h.4 h.5|h.6 h.7 h.8",
     "    for i in range(0, 9, 3):\n        f(*(f\"h.{j}\" for j in range(i, i + 3)))\n"},
    {"only the first number counts", "h.0.m.0|h.0.m.1|h.0.m.2",
     "    f(\"h.0.m.0\")\n    f(\"h.0.m.1\")\n    f(\"h.0.m.2\")\n"},
    {"a number with zeros before it is a name", "h.00|h.01|h.02",
     "    f(\"h.00\")\n    f(\"h.01\")\n    f(\"h.02\")\n"},
    {"quotes and backslashes", "a\"b\\c", "    f(\"a\\\"b\\\\c\")\n"},
    {"control characters", "a\nb", "    f(\"a\\x0ab\")\n"},
    {"braces of a name in a loop", "{h}.0|{h}.1|{h}.2",
     "    for i in range(3):\n        f(f\"{{h}}.{i}\")\n"},
    {"and where there is none", "{h}.0", "    f(\"{h}.0\")\n"},
};

static uint32_t parse(char *text, const char *words[MAX_ITEMS][MAX_WORDS],
                      struct emit_item items[MAX_ITEMS])
{
    uint32_t n = 0;
    for (char *item; text && *text && (item = strsep(&text, "|"));) {
        char *names = strsep(&item, "!");
        items[n] = (struct emit_item){.words = words[n], .tail = item ? item : ""};
        for (char *word; (word = strsep(&names, " "));)
            words[n][items[n].n++] = word;
        n++;
    }
    return n;
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct emit_item items[MAX_ITEMS];
        const char *words[MAX_ITEMS][MAX_WORDS];
        char typed[128];
        struct arena arena;
        struct text out;

        snprintf(typed, sizeof typed, "%s", cases[i].items);
        arena_init(&arena);
        text_init(&out);
        const uint32_t n = parse(typed, words, items);
        emit_items(items, n, "f(", ")", &arena, &out);
        const char *got = out.at ? out.at : "";
        if (!ok(strcmp(got, cases[i].want) == 0, "%s", cases[i].what))
            printf("# got %s\n", got);
        text_release(&out);
        arena_release(&arena);
    }
    return tap_done();
}
