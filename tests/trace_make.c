/*
 * Not a test: writes the trace of a random run, for readers that are not in C.
 *
 * trace_make SEED FILE
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/tap.h"
#include "tests/trace_run.h"
#include "traces/chrome.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return STATUS_USAGE;
    uint64_t state = strtoull(argv[1], NULL, 10);
    struct arena arena;
    struct err err = {.text = ""};
    const struct chrome_options options = {.rank = 1};
    arena_init(&arena);
    struct run *run = trace_run_random(&arena, &state, 60);
    run->units[0].name = "a \"quoted\" \\ na\x01me \xe5\xb1\xa4";
    const enum status status = chrome_write(run, &options, argv[2], &err);
    if (status)
        fprintf(stderr, "%s\n", err.text);
    arena_release(&arena);
    return (int)status;
}
