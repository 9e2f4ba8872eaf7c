#ifndef TESTS_TINY_H
#define TESTS_TINY_H
/*
 * Tiny programs are written in words; what stands before a section's name is of section steady:
 *
 *     a+  a-       ALLOC, FREE of buffer a; a+t, a-t: by the tape beside it
 *     a@RS         RECORD_STREAM: stream RS uses a
 *     C:ra,wb      a task on stream C that reads a and writes b; ua: both
 *     C:F,ri C:B   forward, backward body of frame 0, with accesses; C:F1: of frame 1
 *     C:X          a forward with the body of a backward; AG:K,wg: a collective
 *     C>AG         AG waits for what C has so far; C>1 records event 1, 1>AG waits for it; C>host
 *     mark         nothing that orders anything
 *     init first steady   the section that follows
 *
 * Buffers are letters: a, b, c, d, e, i, o, p, q and z lie in the pool of C, g in that of AGI, s in
 * that of RS; z has scope RUN. The tape of forward allocates o, that of backward allocates e and
 * the frame's gradient and frees d and i. The gradient is p in frame 0; in frames 1 and 2 it is the
 * first and second member of q, in frame 3 the first again.
 */
#include "src/program_builder.h"

struct tiny {
    struct arena arena;
    struct plan plan;
    struct layout layout;
    struct body_table bodies;
    struct program program;
    struct program_builder build;
    uint32_t buffers[26]; /* by letter */
};

void tiny_init(struct tiny *tiny, const char *text); /* ends the test at a word without meaning */
void tiny_release(struct tiny *tiny);
uint32_t tiny_buffer(const struct tiny *tiny, char letter);

#endif
