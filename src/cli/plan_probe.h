/*
 * Whether any plan fits under changed options, and which one is best: what questions are made of.
 *
 * A probe searches like `plan` does, each combination of the lists, but looks at fewer plans unless it
 * has to be thorough, and makes no row. Where units cannot be searched, or are named, the plans that are
 * named are evaluated. It is held to the limit that a search is held to.
 */
#ifndef SRC_CLI_PLAN_PROBE_H
#define SRC_CLI_PLAN_PROBE_H

#include "src/cli/options.h"

struct comparison;
struct cJSON;

/* An option as it is taken in place of the one that was typed. */
struct plan_change {
    enum option_id id;
    const char *value;
};
enum { PLAN_MAX_CHANGES = 2 };

struct plan_probe {
    bool fits;           /* else what follows is of the smallest plan */
    bool retries;        /* it fits only with those of the allocator */
    const char *refused; /* why there is no plan at all; nothing follows then; or NULL */
    struct options options;
    uint64_t gpus, tokens; /* the latter of a GPU in a step */
    int64_t step_ns;
    uint64_t total_bytes; /* reserved, and outside torch */
};

/* Where they are refused all the same a plan that fits comes first, then the faster per token; without
   one the smaller. */
bool plan_probe_is_better(const struct plan_probe *a, const struct plan_probe *b);

struct plan_prober;

/* Of a comparison whose options and lists are complete and outlive it. NULL and err: no such model. */
enum status plan_prober_new(struct comparison *comparison, struct plan_prober **out,
                            struct err *err);
void plan_prober_free(struct plan_prober *prober);

/* The limit that it is held to. */
uint64_t plan_prober_limit_bytes(const struct plan_prober *prober);

enum plan_effort { EFFORT_FITS, EFFORT_FAST, EFFORT_FULL };

/* Changes hold for every combination. Texts of *out live as long as the comparison. */
enum status plan_probe(struct plan_prober *prober, const struct plan_change *changes, uint32_t n,
                       enum plan_effort effort, struct plan_probe *out, struct err *err);

/* Of a GPU, and a second. */
double plan_probe_tokens_per_s(const struct plan_probe *probe);

#endif
