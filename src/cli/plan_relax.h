/*
 * Where nothing fits: the least changes with which something does, each tried by a probe.
 *
 * Alone: the other allocator, more checkpointing, the microbatch halved, GPUs doubled, of each the least
 * that is enough. Where no change is enough alone, the same under full checkpointing.
 */
#ifndef SRC_CLI_PLAN_RELAX_H
#define SRC_CLI_PLAN_RELAX_H

#include "src/cli/plan_probe.h"
#include "src/text.h"

struct plan_relaxation {
    struct plan_change changes[PLAN_MAX_CHANGES];
    uint32_t n_change;
    struct plan_probe probe;
};

enum { PLAN_MAX_RELAXATIONS = 8 };
struct plan_relax {
    bool on; /* it was looked */
    struct plan_relaxation at[PLAN_MAX_RELAXATIONS];
    uint32_t n;
    uint64_t most_gpus; /* that were looked at; 0: others were not */
};

/* Fills in report.relax. */
enum status plan_relax(struct comparison *comparison, struct err *err);

/* The changes as one would type them; " --ac full --gpus 16". */
void plan_relax_changes(const struct plan_relaxation *relaxation, struct text *out);
void plan_relax_text(const struct plan_relax *relax, struct text *out);
void plan_relax_json(const struct plan_relax *relax, struct cJSON *root);

#endif
