#ifndef TESTS_CLOSURE_H
#define TESTS_CLOSURE_H
/*
 * Is a program safe? By brute force, for holding src/verify.c against it; shares no code with that.
 *
 * The walk init, first, steady, steady becomes a graph with one node for each thing a stream does
 * and an edge for each rule of order. Whether one node happens before another is looked up in the
 * graph's transitive closure. Every life of every buffer is listed with its uses, and so is every
 * pair of tasks that must be ordered:
 *   - two uses of one life of a buffer, one of them a write
 *   - a use of what was freed, and the first write of every life in that pool that begins later;
 *     but for uses behind which the allocator itself lets an event at the FREE (RECORD_STREAM)
 * A body has a life of its own, which it allocates, writes and frees at its LAUNCH; from forward to
 * backward its frame keeps another. What is broken regardless of order (dead buffers, double frees,
 * tapes that disagree) is counted.
 */
#include "src/program.h"

#define CLOSURE_NONE UINT32_MAX

struct closure_node {
    uint32_t task;     /* or CLOSURE_NONE */
    uint32_t instr;
    uint32_t edges[4]; /* from, or CLOSURE_NONE: its stream, its communicator, the host, a RECORD */
};

struct closure_use {
    uint32_t node;
    bool reads, writes;
};

struct closure_life {
    uint32_t buffer; /* NO_BUFFER: of a body */
    uint32_t pool, born, died /* times */;
    bool by_body;
    uint32_t users;          /* bits of streams that were recorded */
    uint32_t seen[STREAM_N]; /* their last nodes at the FREE */
    struct closure_use *uses;
    uint32_t n_use;
};

struct closure {
    const struct program *program;
    struct closure_node *nodes;
    struct closure_life *lives;
    uint64_t *before;   /* per node the set of nodes that happen before it */
    uint64_t *need;     /* per node the set of nodes that must happen before it */
    uint32_t n_node, n_life, n_word, cap_node, cap_life;
    uint32_t n_broken;  /* rules broken that no order mends */
    uint32_t n_pair;    /* pairs that need an order */
};

/* Nodes, edges, lives and what is broken: closure_walk.c, called by closure_init. */
void closure_walk(struct closure *closure);

void closure_init(struct closure *closure, const struct program *program);
void closure_release(struct closure *closure);

/*
 * Pairs that are not ordered, where the WAIT at this instruction orders nothing (CLOSURE_NONE:
 * all WAITs do).
 */
uint32_t closure_lost(struct closure *closure, uint32_t without);

/* After closure_lost: is a pair of these tasks lost, over this buffer (NO_BUFFER: a body's)? */
bool closure_is_lost(const struct closure *closure, uint32_t first, uint32_t second,
                     uint32_t buffer);

/* All of it for one program: nothing broken, nothing lost. */
bool closure_says_safe(const struct program *program);

#endif
