/*
 * Questions that are answered by many searches: the largest microbatch or the longest sequence that
 * fits, the fewest GPUs, and from how many GPUs on replicas are faster.
 *
 * Answers are taken to be monotone: what fits still does with less to hold, or with more GPUs. So values
 * are doubled until the answer changes, and then halved in between. Probes look at few plans; the value
 * beyond the answer is searched in full before it is refused. Replicas are compared at doubled numbers
 * of nodes alone, which replicas of any size divide.
 */
#ifndef SRC_CLI_PLAN_FIND_H
#define SRC_CLI_PLAN_FIND_H

#include "src/cli/plan_probe.h"
#include "src/cli/term.h"

/* X(ENUM, word of --find) */
#define FIND_QUESTIONS(X) \
    X(BATCH, "batch")     \
    X(SEQ, "seq")         \
    X(GPUS, "gpus")       \
    X(HSDP, "hsdp")

enum find_question {
#define X(id, name) FIND_##id,
    FIND_QUESTIONS(X)
#undef X
        FIND_N
};

struct find_probe {
    uint64_t value; /* microbatch, tokens or GPUs */
    bool yes, in_full;
    struct plan_probe probe;    /* of FIND_HSDP without replicas */
    struct plan_probe replicas; /* of FIND_HSDP the best with */
    uint64_t n_replica;
};

struct plan_find {
    bool on, found;
    enum find_question question;
    uint64_t value; /* where found */
    uint64_t limit_bytes;
    struct find_probe *probes; /* one a value, in the order in which they were first asked */
    uint32_t n, cap;
};

/*
 * Asks, fills in report.find, and completes options and lists with the answer, or with the value that
 * comes nearest to one. STATUS_USAGE where an option that is looked for is given.
 */
enum status plan_find(struct comparison *comparison, struct err *err);

/* What was asked, each probe, and the answer. */
void plan_find_text(const struct plan_find *find, const struct term *term, struct text *out);
void plan_find_json(const struct plan_find *find, struct cJSON *root);
/* Why there is none, in one line. */
void plan_find_none(const struct plan_find *find, struct text *out);

#endif
