#ifndef TESTS_ASKED_H
#define TESTS_ASKED_H
/*
 * Programs for options as one types them, on the toy cluster, of a llama so small that its numbers
 * can be checked by hand.
 */
#include "tests/make.h"

/* One block, hidden 32, MLP 48, 4 heads of 8 and 2 of keys, 64 words; sequences of 8. */
void asked_model(struct arena *arena, struct model *out);

/* "--accum 2 --sync last". The status is the parser's; texts go to arena. */
enum status asked_options(const char *words, struct arena *arena, struct plan_options *out,
                          struct err *err);

/*
 * That model under these options on 4 GPUs, unless they say otherwise. unused: a pattern of
 * parameters that do not reach the loss, or NULL. Ends the test where anything is refused.
 */
void asked_init(struct made *made, const char *words, const char *unused);
/* The same for any sizes of any family. */
void asked_init_family(struct made *made, const char *family, const struct dims *dims,
                       const char *words, const char *unused);

#endif
