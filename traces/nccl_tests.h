/*
 * What nccl-tests prints, read line by line: which collective, over how many ranks, how long.
 *
 * Takes what people publish: lines as mpirun and srun mark them, tables of any version, several tests
 * in one file, logs in between, headers cut off. It fits nothing. What a file does not say is derived
 * from its rows, or is an error; nothing is guessed. Tests of what FSDP does not send are left out.
 */
#ifndef TRACES_NCCL_TESTS_H
#define TRACES_NCCL_TESTS_H

#include <stdint.h>

#include "src/arena.h"
#include "src/err.h"

enum { NCCL_MAX_ROWS = 1 << 14, NCCL_MAX_TESTS = 256, NCCL_DATE_BYTES = 11 };

enum nccl_block { NCCL_OUT_OF_PLACE, NCCL_IN_PLACE, NCCL_BLOCK_N };

struct nccl_row {
    uint64_t bytes;               /* of the whole message, as the first column has it; never 0 */
    double seconds[NCCL_BLOCK_N]; /* 0: not measured */
    uint32_t line;                /* of the file, from 1 */
};

struct nccl_test {
    uint8_t kind; /* TASK_ALL_GATHER, TASK_REDUCE_SCATTER or TASK_ALL_REDUCE */
    uint32_t ranks;
    uint32_t nodes;             /* 0: the file does not say */
    char date[NCCL_DATE_BYTES]; /* of the first row, as 2026-11-30 (-S); empty where none has one */
    const struct nccl_row *rows;
    uint32_t n_row; /* at least 1 */
};

struct nccl_tests {
    const struct nccl_test *tests;
    uint32_t n_test; /* at least 1 */
};

/* STATUS_INPUT with file and line. Everything belongs to the arena. */
enum status nccl_tests_read(const char *path, struct arena *arena, struct nccl_tests *out,
                            struct err *err);

#endif
