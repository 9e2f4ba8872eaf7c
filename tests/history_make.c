/*
 * Not a test: a history of three runs made by hand, for tests that are no C: simulated, real, and
 * real but failed.
 *
 * history_make FILE
 */
#include <stdio.h>

#include "db/store.h"
#include "tests/run_make.h"

int main(int argc, char **argv)
{
    void (*const makers[])(struct run * run) = {run_by_hand, run_by_hand_real, run_by_hand_failed};
    struct store *store = NULL;
    struct err err = {.text = ""};
    if (argc != 2)
        return STATUS_USAGE;
    enum status status = store_open(argv[1], &store, &err);
    for (size_t i = 0; i < sizeof makers / sizeof *makers && status == STATUS_OK; i++) {
        struct run run;
        int64_t id;
        makers[i](&run);
        status = store_put(store, &run, &id, &err);
    }
    if (status)
        fprintf(stderr, "%s\n", err.text);
    store_close(store);
    return (int)status;
}
