#ifndef TESTS_MAKE_H
#define TESTS_MAKE_H
/*
 * From a few words to a program, for tests: model → plan → layout → bodies → program.
 */
#include "src/program.h"

struct made {
    struct arena arena;
    struct model model;
    struct plan plan;
    struct layout layout;
    struct body_table bodies;
    struct program program;
};

/* Ends the test where anything fails: what is made here is meant to be valid. */
void make_init(struct made *made, const char *model, uint64_t layers,
               const struct plan_options *options);
/* The same with adapters (src/lora.h). */
void make_init_lora(struct made *made, const char *model, uint64_t layers, const char *lora,
                    const struct plan_options *options);
/* The same for a llama of these sizes. */
void make_init_dims(struct made *made, const struct dims *dims, const struct plan_options *options);
/* The same for any family. */
void make_init_family(struct made *made, const char *family, const struct dims *dims,
                      const struct plan_options *options);
/* The rest, of the model that made->model is already, in made->arena. */
void make_finish(struct made *made, const struct plan_options *options);
void make_release(struct made *made);

/* A small llama and options that fit it, drawn from the state. */
struct dims make_random_dims(uint64_t *state);
struct plan_options make_random_options(uint64_t *state, const struct dims *dims);
/* Of FSDP1, for the same. */
struct plan_options make_random_fsdp1(uint64_t *state);
/* The same for a small mpt, or a llama whose embedding and head are tied; native, for gpt2 or kda.
   Returns the family. */
const char *make_random_tied(uint64_t *state, struct dims *dims, struct plan_options *options);

#endif
