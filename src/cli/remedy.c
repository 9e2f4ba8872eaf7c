/*
 * The table of remedies, and their trials; see remedy.h. A new remedy is a function that makes the
 * change and a row of the table.
 */
#include "src/cli/remedy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/evaluate.h"

/* A remedy is tried where its causes hold at least one part in so many of the idle time. */
enum { WORTH_TRYING = 10 };

/* What a remedy may change, and where texts of it go. */
struct change {
    struct options *options;
    struct cluster *cluster;
    struct arena *arena;
};

static void scale(struct rate *rate, double factor)
{
    for (unsigned spread = 0; spread < SPREAD_N; spread++)
        rate->at[spread] *= factor;
}

/* What a point takes longer than a message of no size is the links'. */
static const struct collective_point *with_half_beyond_start(const struct collective_row *row,
                                                             struct arena *arena)
{
    struct collective_point *points = arena_array(arena, struct collective_point, row->n_point);

    for (uint32_t i = 0; i < row->n_point; i++) {
        points[i] = row->points[i];
        if (points[i].seconds > row->a_s)
            points[i].seconds = (points[i].seconds + row->a_s) / 2;
    }
    return points;
}

/* Of a cluster with prices a collective costs the same whatever its size: half of that. */
static const char *double_links(const struct change *change)
{
    struct cluster *cluster = change->cluster;
    struct collective_row *rows =
        arena_array(change->arena, struct collective_row, cluster->n_collective);

    for (uint32_t i = 0; i < cluster->n_collective; i++) {
        rows[i] = cluster->collectives[i];
        rows[i].bytes_per_s *= 2;
        rows[i].points = with_half_beyond_start(&rows[i], change->arena);
    }
    cluster->collectives = rows;
    scale(&cluster->nic_bytes_per_s, 2);
    for (unsigned kind = 0; kind < TASK_KIND_N; kind++)
        if (task_kind_is_collective((enum task_kind)kind))
            cluster->task_price_ns[kind] /= 2;
    return "links of twice the bandwidth";
}

static const char *double_host(const struct change *change)
{
    struct cluster *cluster = change->cluster;

    scale(&cluster->host_launch_s, 0.5);
    scale(&cluster->host_all_gather_s, 0.5);
    cluster->host_launch_price_ns /= 2;
    cluster->host_all_gather_price_ns /= 2;
    return "a host twice as fast";
}

/* Takes the value and says so; NULL where it is in force already. */
static const char *take(const struct change *change, enum option_id id, const char *value)
{
    const char *now = option_text(change->options, id);

    if ((now && !strcmp(now, value)) || options_take(change->options, id, value, NULL) != STATUS_OK)
        return NULL;
    return arena_printf(change->arena, "--%s %s", option_table[id].name, value);
}

static const char *take_count(const struct change *change, enum option_id id, uint64_t count)
{
    return take(change, id, arena_printf(change->arena, "%llu", (unsigned long long)count));
}

/* Of schemes only: how patterns are to grow is not known. */
static const char *enlarge_units(const struct change *change)
{
    const char *units = option_text(change->options, OPTION_UNITS);
    uint64_t blocks = 1;

    if (!strcmp(units, "attn+mlp"))
        return take(change, OPTION_UNITS, "block");
    if (!strncmp(units, "block*", 6) ? !text_to_u64(units + 6, &blocks)
                                     : strcmp(units, "block") && strcmp(units, "torchtitan"))
        return NULL;
    return take(change, OPTION_UNITS,
                arena_printf(change->arena, "block*%llu", (unsigned long long)(2 * blocks)));
}

static const char *prefetch(const struct change *change)
{
    return take_count(change, OPTION_PREFETCH, option_number(change->options, OPTION_PREFETCH) + 1);
}

/* 0 stands for one ahead, by itself. */
static const char *prefetch_backward(const struct change *change)
{
    const uint64_t depth = option_number(change->options, OPTION_PREFETCH_BACKWARD);
    return take_count(change, OPTION_PREFETCH_BACKWARD, depth == 0 ? 2 : depth + 1);
}

static const char *keep_parameters(const struct change *change)
{
    return take(change, OPTION_RESHARD, "no");
}

static const char *compile(const struct change *change)
{
    return take(change, OPTION_OPS, "torch-compile");
}

static const char *expand_segments(const struct change *change)
{
    return take(change, OPTION_ALLOCATOR, "expandable");
}

/* 1 where nothing is given. */
static const char *hold_more(const struct change *change)
{
    const uint64_t held = option_number(change->options, OPTION_REDUCE_INPUTS);
    return take_count(change, OPTION_REDUCE_INPUTS, held == 0 ? 2 : held + 1);
}

static const char *separate_comm(const struct change *change)
{
    return take(change, OPTION_SEPARATE_REDUCE_COMM, "yes");
}

/* What asks for the syncs is the model's code: whether it can do without only its author knows. */
static const char *drop_syncs(const struct change *change)
{
    if (!option_text(change->options, OPTION_HOST_SYNC))
        return NULL;
    options_set(change->options, OPTION_HOST_SYNC, 0, NULL);
    return "no --host-sync";
}

enum {
    COMMUNICATION =
        1 << STALL_ALL_GATHER | 1 << STALL_REDUCE | 1 << STALL_COMMUNICATOR | 1 << STALL_COPY,
    HOST = 1 << STALL_HOST | 1 << STALL_HOST_WAIT,
};

/* From what is a flag to what has to be written or bought. apply says what it changed, or NULL where
   there is nothing to change. */
static const struct remedy {
    const char *bottleneck;
    unsigned causes;
    const char *(*apply)(const struct change *change);
} remedies[] = {
    {"late all-gathers", COMMUNICATION | HOST, prefetch},
    {"late all-gathers in backward", COMMUNICATION | HOST, prefetch_backward},
    {"one reduction held at a time", 1 << STALL_REDUCE, hold_more},
    {"all-gathers behind reductions", COMMUNICATION, separate_comm},
    {"small units", COMMUNICATION | HOST, enlarge_units},
    {"parameters gathered twice", COMMUNICATION | HOST, keep_parameters},
    {"memory given back in mid-step", 1 << STALL_ALLOCATOR, expand_segments},
    {"slow host", HOST, compile},
    {"host syncs", COMMUNICATION | HOST, drop_syncs},
    {"slow links", COMMUNICATION, double_links},
    {"slow host", HOST, double_host},
};
enum { REMEDY_N = sizeof remedies / sizeof *remedies };

static bool is_worth_trying(const struct remedy *remedy, const struct stalls *stalls)
{
    int64_t held_ns = 0;

    for (unsigned cause = 0; cause < STALL_CAUSE_N; cause++)
        held_ns += remedy->causes >> cause & 1 ? stalls->by_cause_ns[cause] : 0;
    return held_ns > 0 && held_ns >= stalls->idle_ns / WORTH_TRYING;
}

static bool is_refusal(enum status status)
{
    return status == STATUS_NO || status == STATUS_USAGE || status == STATUS_INPUT;
}

/* A step that did not fit need not, if it takes no more. */
static bool is_no_larger(const struct sim_report *before, const struct sim_report *after)
{
    return after->fits || (!before->fits && after->reserved_bytes <= before->reserved_bytes);
}

/* The same model with the change; *out is left alone, and *tried false, where it does not apply. */
static enum status try_remedy(const struct sim_report *report, const struct remedy *remedy,
                              struct arena *arena, struct trial *out, bool *tried, struct err *err)
{
    struct prepared changed = {.cluster = report->prepared->cluster,
                               .model = report->prepared->model};
    struct options options = *report->options;
    const struct change change = {&options, &changed.cluster, arena};
    struct sim_report after;
    struct err why = {0};
    enum status status = STATUS_NO;

    arena_init(&changed.opened);
    arena_init(&changed.arena);
    options_set(&options, OPTION_WHAT_IF, 0, NULL);
    const char *words = remedy->apply(&change);
    if (words)
        status = prepare_plan(&options, &changed, &why);
    if (status == STATUS_OK)
        status = evaluate(&options, &changed, &after, &why);
    *tried = status == STATUS_OK;
    const int64_t before_ns = report->time[SPREAD_MID].step_ns;
    if (*tried)
        *out = (struct trial){
            .row = (uint32_t)(remedy - remedies),
            .bottleneck = remedy->bottleneck,
            .change = words,
            .causes = remedy->causes,
            .step_ns = after.time[SPREAD_MID].step_ns,
            .gain_ns = before_ns - after.time[SPREAD_MID].step_ns,
            .gain_permille = (int64_t)(1e3 * (double)(before_ns - after.time[SPREAD_MID].step_ns) /
                                       (double)before_ns),
            .fits = is_no_larger(report, &after),
        };
    prepared_release(&changed);
    return *tried || is_refusal(status) ? STATUS_OK : err_set(err, status, "%s", why.text);
}

static int compare_trials(const void *a, const void *b)
{
    const struct trial *x = a, *y = b;

    if (x->fits != y->fits)
        return x->fits ? -1 : 1;
    if (x->gain_permille != y->gain_permille)
        return x->gain_permille > y->gain_permille ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

enum status remedies_try(const struct sim_report *report, const struct stalls *stalls,
                         struct arena *arena, struct trials *out, struct err *err)
{
    *out = (struct trials){.at = arena_array(arena, struct trial, REMEDY_N)};
    for (size_t i = 0; i < REMEDY_N; i++) {
        bool tried;
        if (!is_worth_trying(&remedies[i], stalls))
            continue;
        enum status status = try_remedy(report, &remedies[i], arena, &out->at[out->n], &tried, err);
        if (status != STATUS_OK)
            return status;
        out->n += tried;
    }
    qsort(out->at, out->n, sizeof *out->at, compare_trials);
    return STATUS_OK;
}

const struct trial *trials_for(const struct trials *trials, enum stall_cause cause)
{
    for (uint32_t i = 0; i < trials->n; i++) {
        const struct trial *trial = &trials->at[i];
        if (trial->fits && trial->gain_ns > 0 && (trial->causes >> cause & 1))
            return trial;
    }
    return NULL;
}
