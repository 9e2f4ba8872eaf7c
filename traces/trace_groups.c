/*
 * What cannot be compared, because it is missing or shortened, fits.
 */
#include "traces/trace_groups.h"

#include <stdlib.h>

#include "traces/trace_tracks.h"

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int by_name(const void *a, const void *b)
{
    const struct trace_group *x = a, *y = b;
    return ORDER(x->name, y->name);
}

static int by_name_and_ranks(const void *a, const void *b)
{
    const struct trace_group *x = a, *y = b;
    const int order = by_name(a, b);
    return order ? order : ORDER(x->ranks, y->ranks);
}

static void take_group(struct trace_groups *groups, const struct json_span *object)
{
    struct json_scan scan = json_scan_of(object->at, object->length);
    struct json_span key, value;
    struct trace_group group = {0};
    bool has_name = false, has_ranks = false;
    if (!json_scan_open(&scan, '{'))
        return;
    while (json_scan_member(&scan, &key, &value)) {
        if (json_span_is(&key, "pg_name")) {
            group.name = json_span_hash(&value, 0);
            has_name = true;
        } else if (json_span_is(&key, "pg_size")) {
            has_ranks = json_span_int(&value, &group.ranks);
        }
    }
    if (!has_name || !has_ranks)
        return;
    groups->at = trace_grow(groups->at, groups->n, &groups->cap, sizeof(*groups->at));
    groups->at[groups->n++] = group;
}

void trace_groups_take(struct trace_groups *groups, const struct json_span *pg_config)
{
    struct json_scan scan = json_scan_of(pg_config->at, pg_config->length);
    struct json_span element;
    if (!json_scan_open(&scan, '['))
        return;
    while (json_scan_element(&scan, &element))
        take_group(groups, &element);
    if (groups->n > 0)
        qsort(groups->at, groups->n, sizeof(*groups->at), by_name_and_ranks);
}

void trace_groups_release(struct trace_groups *groups)
{
    free(groups->at);
    *groups = (struct trace_groups){0};
}

static bool is_product(int64_t whole, int64_t part, int64_t ranks)
{
    int64_t product;
    return !__builtin_mul_overflow(part, ranks, &product) && whole == product;
}

bool trace_group_sizes_fit(const struct trace_event *event)
{
    const struct json_span *name = &event->args[ARG_COLLECTIVE_NAME];
    int64_t in, out, ranks;
    if (!json_span_int(&event->args[ARG_IN_NELEMS], &in) ||
        !json_span_int(&event->args[ARG_OUT_NELEMS], &out) ||
        !json_span_int(&event->args[ARG_GROUP_SIZE], &ranks))
        return true;
    if (json_span_is(name, "_allgather_base"))
        return is_product(out, in, ranks);
    if (json_span_is(name, "_reduce_scatter_base"))
        return is_product(in, out, ranks);
    return !json_span_is(name, "allreduce") || in == out;
}

/* How many ranks "[0, 1, 5]" lists; 0 where that cannot be told. */
static int64_t count_listed(const struct json_span *list)
{
    int64_t n = 0;
    for (size_t i = 0; list->type == SPAN_STRING && i < list->length; i++) {
        if (list->at[i] == '.')
            return 0;
        const bool digit = list->at[i] >= '0' && list->at[i] <= '9';
        n += digit && (i == 0 || list->at[i - 1] < '0' || list->at[i - 1] > '9');
    }
    return n;
}

bool trace_group_ranks_fit(const struct trace_groups *groups, const struct trace_event *event)
{
    const int64_t listed = count_listed(&event->args[ARG_GROUP_RANKS]);
    const struct json_span *name = &event->args[ARG_GROUP_NAME];
    struct trace_group group;
    if (!json_span_int(&event->args[ARG_GROUP_SIZE], &group.ranks))
        return true;
    if (listed > 0 && listed != group.ranks)
        return false;
    if (name->type != SPAN_STRING || groups->n == 0)
        return true;
    group.name = json_span_hash(name, 0);
    return !bsearch(&group, groups->at, groups->n, sizeof(group), by_name) ||
           bsearch(&group, groups->at, groups->n, sizeof(group), by_name_and_ranks);
}
