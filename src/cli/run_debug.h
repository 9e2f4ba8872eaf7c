/*
 * `run --debug`: a list of words that make a run harder on itself. Words alone; who acts on them is
 * gpu/execute.c, gpu/host_queue.c and, for no-verify, prepare.c.
 */
#ifndef SRC_CLI_RUN_DEBUG_H
#define SRC_CLI_RUN_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

#include "src/err.h"

struct run_debug {
    bool poison, verify;
    uint64_t jitter_seed;
    int64_t alloc_bias_bytes, die_rank, hang_rank; /* ranks: -1 for none */
};

/* words NULL: none. STATUS_USAGE with the one that is none. */
enum status run_debug_parse(const char *words, struct run_debug *out, struct err *err);

#endif
