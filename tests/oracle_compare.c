/*
 * One comparison for each thing that a case can state; see oracle_compare.h.
 */
#include "tests/oracle_compare.h"

#include <string.h>

#include "src/schedule/divide.h"
#include "tests/oracle_peaks.h"

struct oracle_subject oracle_subject_of(const struct oracle_case *of,
                                        const struct prepared *prepared, struct arena *arena)
{
    struct oracle_subject subject = {.of = of, .prepared = prepared};
    if (!prepared)
        return subject;
    oracle_project(of, prepared, SECTION_STEADY, arena, &subject.steady);
    oracle_project(of, prepared, SECTION_FIRST, arena, &subject.first);
    return subject;
}

static void add_event(const char *whose, const struct oracle_event *event, struct text *why)
{
    text_add(why, "%s ", whose);
    if (event)
        oracle_event_print(event, why);
    else
        text_add(why, "nothing");
}

/* Our next event from i on of a listed kind and the span, any span for ORACLE_SPANS; or NULL. */
static const struct oracle_event *next_listed(const struct oracle_subject *subject,
                                              const struct oracle_projection *ours, int span,
                                              uint32_t *i)
{
    while (*i < ours->n) {
        const struct our_event *event = &ours->events[(*i)++];
        if ((span == ORACLE_SPANS || event->span == span) &&
            subject->of->kinds & 1u << event->event.kind)
            return &event->event;
    }
    return NULL;
}

static bool same_events(const struct oracle_subject *subject,
                        const struct oracle_projection *projection,
                        const struct oracle_events *events, int span, struct text *why)
{
    uint32_t next = 0;

    for (uint32_t i = 0;; i++) {
        const struct oracle_event *ours = next_listed(subject, projection, span, &next);
        const struct oracle_event *theirs = i < events->n ? &events->at[i] : NULL;
        if (!ours && !theirs)
            return true;
        if (ours && theirs && oracle_event_equal(ours, theirs))
            continue;
        text_add(why, "event %u: ", i);
        add_event("pytorch:", theirs, why);
        add_event("; unshard:", ours, why);
        return false;
    }
}

static bool same_steady(const struct oracle_subject *subject, struct text *why)
{
    const struct oracle_case *of = subject->of;

    if (of->events.stated)
        return same_events(subject, &subject->steady, &of->events, ORACLE_SPANS, why);
    for (int span = 0; span < ORACLE_SPANS; span++)
        if (of->spans[span].stated &&
            !same_events(subject, &subject->steady, &of->spans[span], span, why))
            return false;
    return true;
}

/* The first step is listed only where it differs from the others. */
static bool same_first(const struct oracle_subject *subject, struct text *why)
{
    const struct oracle_case *of = subject->of;
    return same_events(subject, &subject->first, of->first.stated ? &of->first : &of->events,
                       ORACLE_SPANS, why);
}

static bool same_counts_of(const struct oracle_projection *ours, const struct oracle_counts *theirs,
                           int span, struct text *why)
{
    static const enum oracle_event_kind counted[] = {ORACLE_ALL_GATHER, ORACLE_REDUCE_SCATTER,
                                                     ORACLE_ALL_REDUCE};
    for (size_t c = 0; c < sizeof counted / sizeof *counted; c++) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < ours->n; i++)
            n += ours->events[i].event.kind == counted[c] &&
                 (span == ORACLE_SPANS || ours->events[i].span == span);
        if (n == theirs->of[counted[c]])
            continue;
        text_add(why, "%s of span %d: pytorch: %llu; unshard: %llu", oracle_event_name(counted[c]),
                 span, (unsigned long long)theirs->of[counted[c]], (unsigned long long)n);
        return false;
    }
    return true;
}

static bool same_counts(const struct oracle_subject *subject, struct text *why)
{
    const struct oracle_case *of = subject->of;

    for (int span = 0; span < ORACLE_SPANS; span++)
        if (of->span_counts[span].stated &&
            !same_counts_of(&subject->steady, &of->span_counts[span], span, why))
            return false;
    return same_counts_of(&subject->steady, &of->counts, ORACLE_SPANS, why);
}

static bool same_rows(const struct oracle_param *a, const struct oracle_param *b)
{
    return a->n_dim == b->n_dim && memcmp(a->shape, b->shape, sizeof a->shape) == 0 &&
           a->n_rank == b->n_rank && memcmp(a->rows, b->rows, a->n_rank * sizeof *a->rows) == 0;
}

static bool same_param(const struct oracle_param *ours, const struct oracle_param *theirs)
{
    return strcmp(ours->unit, theirs->unit) == 0 && ours->dim == theirs->dim &&
           ours->chunk == theirs->chunk && ours->numel == theirs->numel &&
           ours->has_offset == theirs->has_offset &&
           (!ours->has_offset || ours->offset == theirs->offset) && same_rows(ours, theirs);
}

static void add_param(const char *whose, const struct oracle_param *param, struct text *why)
{
    text_add(why, "%s unit %s dim %llu chunk %llu numel %llu offset %llu ranks %u", whose,
             param->unit, (unsigned long long)param->dim, (unsigned long long)param->chunk,
             (unsigned long long)param->numel, (unsigned long long)param->offset, param->n_rank);
}

static const struct oracle_param *find_param(const struct oracle_projection *ours, const char *name)
{
    for (uint32_t i = 0; i < ours->n_param; i++)
        if (strcmp(ours->params[i].name, name) == 0)
            return &ours->params[i];
    return NULL;
}

static bool same_params(const struct oracle_subject *subject, struct text *why)
{
    const struct oracle_case *of = subject->of;

    for (uint32_t i = 0; i < of->n_param; i++) {
        const struct oracle_param *theirs = &of->params[i];
        const struct oracle_param *ours = find_param(&subject->steady, theirs->name);
        if (ours && same_param(ours, theirs))
            continue;
        text_add(why, "parameter %s: ", theirs->name);
        add_param("pytorch:", theirs, why);
        if (ours)
            add_param("; unshard:", ours, why);
        return false;
    }
    if (of->n_param != subject->steady.n_param)
        text_add(why, "pytorch shards %u parameters, unshard %u", of->n_param,
                 subject->steady.n_param);
    return of->n_param == subject->steady.n_param;
}

static bool same_reduction(uint8_t ours, uint8_t theirs)
{
    return theirs == REDUCE_NONE || ours == theirs;
}

static bool same_answer(const struct oracle_divide *row, struct text *why)
{
    const struct divide ours =
        divide_of((enum dtype)row->dtype, row->factor, row->shard, row->replicate, row->force_sum);
    const bool same =
        (!row->has_divisors || (ours.pre == row->pre && ours.post == row->post)) &&
        (!row->has_divisions ||
         row->divisions == (uint64_t)(ours.pre != 1) + (ours.copy != 1) + (ours.post != 1)) &&
        same_reduction((uint8_t)ours.reduce_scatter, row->reduce_scatter) &&
        same_reduction((uint8_t)ours.all_reduce, row->all_reduce);
    if (!same)
        text_add(why, "pytorch: pre %g post %g %s %s; unshard: pre %g post %g %s %s", row->pre,
                 row->post, reduction_name((enum reduction)row->reduce_scatter),
                 reduction_name((enum reduction)row->all_reduce), ours.pre, ours.post,
                 reduction_name(ours.reduce_scatter), reduction_name(ours.all_reduce));
    return same;
}

/* The plan asks what the row answers. */
static bool same_question(const struct oracle_divide *row, const struct plan *plan,
                          struct text *why)
{
    const bool same = row->dtype == plan->reduce_dtype &&
                      row->factor == plan->options.divide_factor &&
                      row->shard == plan->shard_ranks && row->replicate == plan->options.replicas &&
                      row->force_sum == plan->options.force_sum;
    if (!same)
        text_add(why, "the plan divides in another dtype, by another factor or over other ranks");
    return same;
}

static bool same_divide(const struct oracle_subject *subject, struct text *why)
{
    const struct oracle_divide *row = &subject->of->divide;
    return (!subject->prepared || same_question(row, &subject->prepared->plan, why)) &&
           same_answer(row, why);
}

static const struct oracle_reads *reads_of_unit(const struct oracle_case *of, const char *unit)
{
    for (uint32_t i = 0; i < of->n_read; i++)
        if (!of->reads[i].unit || strcmp(of->reads[i].unit, unit) == 0)
            return &of->reads[i];
    return NULL;
}

/* How many packs of the unit come before this one. */
static uint32_t packs_before(const struct oracle_projection *ours, uint32_t end)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < end; i++)
        n += ours->events[i].event.kind == ORACLE_PACK &&
             strcmp(ours->events[i].event.unit, ours->events[end].event.unit) == 0;
    return n;
}

static bool same_reads(const struct oracle_subject *subject, struct text *why)
{
    const struct oracle_projection *ours = &subject->steady;

    for (uint32_t i = 0; i < ours->n; i++) {
        const struct our_event *event = &ours->events[i];
        if (event->event.kind != ORACLE_PACK)
            continue;
        const struct oracle_reads *theirs = reads_of_unit(subject->of, event->event.unit);
        const uint32_t pack = theirs && theirs->unit ? packs_before(ours, i) : 0;
        if (theirs && (!theirs->unit || pack < theirs->n) && theirs->packs[pack] == event->reads)
            continue;
        add_event("", &event->event, why);
        text_add(why, " reads dtypes %#x, pytorch reads %#x", event->reads,
                 theirs ? theirs->packs[pack] : 0);
        return false;
    }
    return true;
}

const char *oracle_check_name(enum oracle_check check)
{
    static const char *const names[] = {
#define X(id, name) name,
        ORACLE_CHECKS(X)
#undef X
    };
    return names[check];
}

bool oracle_check_stated(const struct oracle_case *of, enum oracle_check check)
{
    const bool stated[ORACLE_CHECK_N] = {
        [ORACLE_CHECK_EVENTS] = of->events.stated || of->spans[ORACLE_FORWARD].stated ||
                                of->spans[ORACLE_BACKWARD].stated,
        [ORACLE_CHECK_FIRST] = of->events.stated,
        [ORACLE_CHECK_COUNTS] = of->counts.stated,
        [ORACLE_CHECK_PARAMS] = of->n_param > 0,
        [ORACLE_CHECK_DIVIDE] = of->divide.stated,
        [ORACLE_CHECK_READS] = of->n_read > 0,
        [ORACLE_CHECK_PEAKS] = of->n_peak > 0,
    };
    return stated[check];
}

bool oracle_agrees(const struct oracle_subject *subject, enum oracle_check check, struct text *why)
{
    static bool (*const agree[ORACLE_CHECK_N])(const struct oracle_subject *, struct text *) = {
        [ORACLE_CHECK_EVENTS] = same_steady,        [ORACLE_CHECK_FIRST] = same_first,
        [ORACLE_CHECK_COUNTS] = same_counts,        [ORACLE_CHECK_PARAMS] = same_params,
        [ORACLE_CHECK_DIVIDE] = same_divide,        [ORACLE_CHECK_READS] = same_reads,
        [ORACLE_CHECK_PEAKS] = oracle_within_peaks,
    };
    return agree[check](subject, why);
}
