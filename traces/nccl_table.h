/*
 * Tests of an nccl-tests output, put together from its comments and rows; for nccl_tests.c.
 *
 * A test begins with what is said of it and ends where something is said of the next, or a table
 * begins. Which collective it is and of how many ranks is settled at its end, because where nothing
 * says so its rows do: busbw is algbw times (n - 1) / n, of an all-reduce twice that.
 */
#ifndef TRACES_NCCL_TABLE_H
#define TRACES_NCCL_TABLE_H

#include <stdbool.h>

#include "traces/nccl_tests.h"

enum { NCCL_MAX_WORDS = 64, NCCL_MAX_HOSTS = 4096 };

struct nccl_words {
    char *at[NCCL_MAX_WORDS]; /* of one line */
    int n;
};

/* Where a row has its numbers; -1: nowhere. */
struct nccl_columns {
    int n; /* 0: not known yet */
    int size, redop, date;
    int time[NCCL_BLOCK_N], algbw[NCCL_BLOCK_N], busbw[NCCL_BLOCK_N], wrong[NCCL_BLOCK_N];
};

/* What was said and seen of the test that is being read. */
struct nccl_open_test {
    const char *name;               /* of the collective; NULL: not said */
    uint32_t ranks, nodes;          /* said; 0: not */
    uint32_t n_listed, n_host;      /* ranks of its list, and hosts */
    bool reduces;                   /* redop is not 'none' */
    double least_ratio, most_ratio; /* busbw / algbw, as exactly as rows are printed */
    char date[NCCL_DATE_BYTES];
};

struct nccl_table {
    struct nccl_test *tests;
    struct nccl_row *rows; /* of all tests; those of the open one begin at first_row */
    uint64_t *hosts;       /* of the open test, hashed */
    struct nccl_columns columns;
    struct nccl_open_test open;
    uint32_t n_test, n_row, first_row, line;
    bool in_place_first;
};

struct nccl_table *nccl_table_new(struct arena *arena);

/* Each: STATUS_INPUT with the line. A comment comes without its '#'. */
enum status nccl_table_comment(struct nccl_table *table, const struct nccl_words *words,
                               struct err *err);
enum status nccl_table_row(struct nccl_table *table, const struct nccl_words *words,
                           struct err *err);
enum status nccl_table_end(struct nccl_table *table, struct err *err);

#endif
