/*
 * Doubling and bisection around probes; see plan_find.h.
 */
#include "src/cli/plan_find.h"

#include "src/cli/plan_rank.h"
#include "src/cli/plan_rows.h"
#include "src/cli/plan_vary.h"
#include "src/plan_ranks.h"

enum {
    SEQ_STEP = 128,       /* lengths that anybody trains with */
    MOST_BATCH = 1 << 20, /* further than memory reaches */
    MOST_SEQ_STEPS = 1 << 17,
    MOST_NODES = 1 << 11,
    MOST_DOUBLED_NODES = 11
};

struct asking {
    struct comparison *c;
    struct plan_prober *prober;
    struct plan_find *find;
    const struct question *question;
};

/* Values are numbered from 1, in steps that are worth a difference. */
struct question {
    enum option_id answers;  /* the option that the value is of */
    enum option_id taken[3]; /* those that nobody may give, as many as n_taken */
    uint32_t n_taken;
    bool fewest; /* else the most */
    uint64_t most;
    uint64_t (*value)(uint64_t i);
    uint64_t (*twice)(uint64_t i); /* where the value is, or GPUs are, twice as many */
    enum status (*ask)(struct asking *a, enum plan_effort effort, struct find_probe *probe,
                       struct err *err);
};

static uint64_t batch_value(uint64_t i)
{
    return i;
}

static uint64_t seq_value(uint64_t i)
{
    return i * SEQ_STEP;
}

static uint64_t twice(uint64_t i)
{
    return 2 * i;
}

/* Any number in one node, then whole nodes. */
static uint64_t gpus_value(uint64_t i)
{
    return i <= GPUS_PER_NODE ? i : (i - GPUS_PER_NODE + 1) * GPUS_PER_NODE;
}

static uint64_t gpus_twice(uint64_t i)
{
    return i < GPUS_PER_NODE ? 2 * i : 2 * i - (GPUS_PER_NODE - 1);
}

/* Nodes in powers of two, which replicas of any size divide; one replica of whole nodes is none. */
static uint64_t hsdp_value(uint64_t i)
{
    return (uint64_t)GPUS_PER_NODE << i;
}

static uint64_t hsdp_twice(uint64_t i)
{
    return i + 1;
}

static const char *number_text(struct asking *a, uint64_t number)
{
    return arena_printf(&a->c->arena, "%llu", (unsigned long long)number);
}

static enum status ask_fits(struct asking *a, enum plan_effort effort, struct find_probe *probe,
                            struct err *err)
{
    const struct plan_change change = {a->question->answers, number_text(a, probe->value)};
    const enum status status = plan_probe(a->prober, &change, 1, effort, &probe->probe, err);

    probe->yes = status == STATUS_OK && probe->probe.fits;
    return status;
}

static enum status ask_replicas(struct asking *a, uint64_t gpus, uint64_t replicas,
                                struct plan_probe *out, struct err *err)
{
    const struct plan_change changes[] = {{OPTION_GPUS, number_text(a, gpus)},
                                          {OPTION_REPLICAS, number_text(a, replicas)}};
    return plan_probe(a->prober, changes, 2, EFFORT_FAST, out, err);
}

/*
 * A larger replica gathers over more nodes and sums over fewer replicas, so that there is one best size:
 * from the smallest that fits on until they get slower.
 */
static enum status best_replicas(struct asking *a, struct find_probe *probe, struct err *err)
{
    bool better = true;

    for (uint64_t n = probe->value / GPUS_PER_NODE; n > 1 && better; n /= 2) {
        struct plan_probe with;
        const enum status status = ask_replicas(a, probe->value, n, &with, err);
        if (status != STATUS_OK)
            return status;
        better = probe->n_replica == 0 || plan_probe_is_better(&with, &probe->replicas);
        if (!better)
            break;
        probe->replicas = with;
        probe->n_replica = n;
    }
    return STATUS_OK;
}

/* What ties is not faster for sure. */
static bool is_faster(const struct plan_probe *a, const struct plan_probe *b)
{
    return a->fits &&
           (!b->fits || (1 + PAIRED_LEAST_SHARE) * (double)a->step_ns < (double)b->step_ns);
}

static enum status ask_hsdp(struct asking *a, enum plan_effort effort, struct find_probe *probe,
                            struct err *err)
{
    enum status status = ask_replicas(a, probe->value, 1, &probe->probe, err);

    (void)effort; /* times are compared at every one */
    if (status == STATUS_OK)
        status = best_replicas(a, probe, err);
    probe->yes = status == STATUS_OK && is_faster(&probe->replicas, &probe->probe);
    return status;
}

static const struct question questions[FIND_N] = {
    [FIND_BATCH] = {.answers = OPTION_BATCH,
                    .taken = {OPTION_BATCH},
                    .n_taken = 1,
                    .most = MOST_BATCH,
                    .value = batch_value,
                    .twice = twice,
                    .ask = ask_fits},
    [FIND_SEQ] = {.answers = OPTION_SEQ,
                  .taken = {OPTION_SEQ},
                  .n_taken = 1,
                  .most = MOST_SEQ_STEPS,
                  .value = seq_value,
                  .twice = twice,
                  .ask = ask_fits},
    [FIND_GPUS] = {.answers = OPTION_GPUS,
                   .taken = {OPTION_GPUS, OPTION_NODES},
                   .n_taken = 2,
                   .fewest = true,
                   .most = GPUS_PER_NODE - 1 + MOST_NODES,
                   .value = gpus_value,
                   .twice = gpus_twice,
                   .ask = ask_fits},
    [FIND_HSDP] = {.answers = OPTION_GPUS,
                   .taken = {OPTION_GPUS, OPTION_NODES, OPTION_REPLICAS},
                   .n_taken = 3,
                   .fewest = true,
                   .most = MOST_DOUBLED_NODES,
                   .value = hsdp_value,
                   .twice = hsdp_twice,
                   .ask = ask_hsdp},
};

/* ---- between yes and no ---------------------------------------------------------------------------- */

static struct find_probe *probe_at(const struct plan_find *find, uint64_t value)
{
    for (uint32_t i = 0; i < find->n; i++)
        if (find->probes[i].value == value)
            return &find->probes[i];
    return NULL;
}

/* In place of what was known of the same value. */
static void note(struct asking *a, const struct find_probe *probe)
{
    struct plan_find *find = a->find;
    struct find_probe *known = probe_at(find, probe->value);

    if (!known) {
        find->probes =
            arena_grow(&a->c->arena, find->probes, &find->cap, find->n + 1, sizeof *find->probes);
        known = &find->probes[find->n++];
    }
    *known = *probe;
}

static enum status ask(struct asking *a, uint64_t i, enum plan_effort effort, bool *yes,
                       struct err *err)
{
    struct find_probe probe = {.value = a->question->value(i), .in_full = effort == EFFORT_FULL};
    const enum status status = a->question->ask(a, effort, &probe, err);

    if (status != STATUS_OK)
        return status;
    note(a, &probe);
    *yes = probe.yes;
    return STATUS_OK;
}

/* From 1 on, doubled while the answer is this one: *same has it, and *other has not or is past the most. */
static enum status widen(struct asking *a, bool answer, uint64_t *same, uint64_t *other,
                         struct err *err)
{
    const struct question *question = a->question;

    *same = 0;
    *other = 1;
    while (*same < question->most) {
        const bool at_end = *other == (question->fewest ? question->most : 1);
        bool yes = false;
        const enum status status = ask(a, *other, at_end ? EFFORT_FULL : EFFORT_FITS, &yes, err);
        if (status != STATUS_OK || yes != answer)
            return status;
        *same = *other;
        *other = question->twice(*same);
        *other = *other < question->most ? *other : question->most;
    }
    *other = question->most + 1;
    return STATUS_OK;
}

static enum status narrow(struct asking *a, bool answer, uint64_t *same, uint64_t *other,
                          struct err *err)
{
    while (*other - *same > 1) {
        const uint64_t middle = *same + (*other - *same) / 2;
        bool yes = false;
        const enum status status = ask(a, middle, EFFORT_FITS, &yes, err);
        if (status != STATUS_OK)
            return status;
        *(yes == answer ? same : other) = middle;
    }
    return STATUS_OK;
}

/* The next better value may only have been looked at too little, unless it cannot be built. */
static enum status confirm(struct asking *a, uint64_t *best, struct err *err)
{
    const struct question *question = a->question;

    while (question->ask == ask_fits && *best != (question->fewest ? 1 : question->most)) {
        const uint64_t next = question->fewest ? *best - 1 : *best + 1;
        const struct find_probe *known = probe_at(a->find, question->value(next));
        bool yes = false;
        if (known && known->probe.refused)
            return STATUS_OK;
        const enum status status = ask(a, next, EFFORT_FULL, &yes, err);
        if (status != STATUS_OK || !yes)
            return status;
        *best = next;
    }
    return STATUS_OK;
}

static enum status look(struct asking *a, struct err *err)
{
    const struct question *question = a->question;
    const bool answer = !question->fewest; /* of small values */
    uint64_t same, other;
    enum status status = widen(a, answer, &same, &other, err);

    if (status == STATUS_OK && other <= question->most)
        status = narrow(a, answer, &same, &other, err);
    if (status != STATUS_OK)
        return status;
    uint64_t best = question->fewest ? other : same;
    a->find->found = best > 0 && best <= question->most;
    if (a->find->found)
        status = confirm(a, &best, err);
    a->find->value = question->value(a->find->found ? best : question->fewest ? question->most : 1);
    return status;
}

/* ---- the answer as options ------------------------------------------------------------------------- */

static enum status check(const struct comparison *c, enum find_question which, struct err *err)
{
    static const char *const names[] = {
#define X(id, name) name,
        FIND_QUESTIONS(X)
#undef X
    };
    const struct question *question = &questions[which];
    const unsigned words = (unsigned)option_number(c->options, OPTION_SEARCH);
    const unsigned by_gpus = 1u << SEARCH_REPLICAS | 1u << SEARCH_INT_RESHARD;

    for (unsigned i = 0; i < question->n_taken; i++)
        if (option_given(c->options, question->taken[i]))
            return err_set(err, STATUS_USAGE, "--find %s looks for --%s; give one of them",
                           names[which], option_table[question->taken[i]].name);
    if (question->answers == OPTION_GPUS && words & by_gpus)
        return err_set(err, STATUS_USAGE,
                       "--search replicas and int-reshard follow from --gpus, which --find %s "
                       "looks for; leave them out",
                       names[which]);
    if (which == FIND_BATCH && words >> SEARCH_BATCH & 1)
        return err_set(err, STATUS_USAGE,
                       "--search batch shares what --find batch looks for; give one of them");
    return STATUS_OK;
}

/* Where replicas are asked for the plan without them stands beside the best with. */
static enum status take_answer(struct asking *a, struct err *err)
{
    struct comparison *c = a->c;
    const struct find_probe *probe = probe_at(a->find, a->find->value);
    enum status status =
        options_take(c->options, a->question->answers, number_text(a, a->find->value), err);

    if (status == STATUS_OK && probe && probe->n_replica > 0)
        options_set(c->options, OPTION_REPLICAS, 1,
                    arena_printf(&c->arena, "1,%llu", (unsigned long long)probe->n_replica));
    return status == STATUS_OK
               ? plan_vary_lists(c->options, &c->report.search, &c->arena, &c->report.lists, err)
               : status;
}

enum status plan_find(struct comparison *c, struct err *err)
{
    struct plan_find *find = &c->report.find;
    struct asking a = {.c = c, .find = find};
    enum status status;

    find->on = option_given(c->options, OPTION_FIND);
    if (!find->on)
        return STATUS_OK;
    find->question = (enum find_question)option_number(c->options, OPTION_FIND);
    a.question = &questions[find->question];
    status = check(c, find->question, err);
    if (status == STATUS_OK)
        status = plan_prober_new(c, &a.prober, err);
    if (status != STATUS_OK)
        return status;
    find->limit_bytes = plan_prober_limit_bytes(a.prober);
    status = look(&a, err);
    plan_prober_free(a.prober);
    return status == STATUS_OK ? take_answer(&a, err) : status;
}
