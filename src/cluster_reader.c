/*
 * Sizes and rates of a cluster file; see cluster_reader.h.
 *
 * Driven by the lists of cluster.h. A rate is taken whole: its source and its valid range belong to
 * its numbers, so a file that changes one gives all. Numbers are checked as they stand in the file
 * and only then turned into seconds, bytes and FLOP, so that messages show what was written.
 */
#include "src/cluster_reader.h"

#include <math.h>
#include <string.h>

#include "src/text.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

enum {
#define X(member, section, key, unit, more_is_faster, least, most) RATE_##member,
    CLUSTER_RATES(X)
#undef X
        N_RATE
};

const struct rate_field cluster_rate_fields[] = {
#define X(member, section, key, unit, more_is_faster, least, most) \
    {section, key, unit, more_is_faster, least, most, offsetof(struct cluster, member)},
    CLUSTER_RATES(X)
#undef X
};
const uint32_t n_cluster_rate_fields = N_RATE;

static const char *const quantity_names[] = {
#define X(id, name) name,
    QUANTITIES(X)
#undef X
};

/* Sizes and limits stay below this, where doubles are still exact. */
static const uint64_t MAX_WHOLE = (UINT64_C(1) << 53) - 1;

const char *quantity_name(enum quantity quantity)
{
    return quantity_names[quantity];
}

const struct rate *cluster_rate(const struct cluster *cluster, const struct rate_field *field)
{
    return (const struct rate *)(const void *)((const char *)cluster + field->offset);
}

int cluster_index_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, names[i]))
            return (int)i;
    return -1;
}

enum status cluster_fail_unknown(const struct json_at *at, const char *what, const char *name,
                                 const char *const *known, size_t n, struct err *err)
{
    const int nearest = text_nearest(name, known, n);
    if (nearest < 0)
        return json_fail(at, err, "unknown %s '%s'", what, name);
    return json_fail(at, err, "unknown %s '%s', did you mean '%s'?", what, name, known[nearest]);
}

enum status cluster_check_object(const struct json_at *at, const char *const *known, size_t n,
                                 struct err *err)
{
    if (!json_is_object(at))
        return json_fail(at, err, "not an object");
    for (struct json_at it = json_first(at); it.node; it = json_next(&it))
        if (cluster_index_of(json_key(&it), known, n) < 0)
            return cluster_fail_unknown(at, "key", json_key(&it), known, n, err);
    return STATUS_OK;
}

enum status cluster_read_string(const struct cluster_reader *r, const struct json_at *at,
                                const char *key, const char **out)
{
    const char *text;
    const enum status status = json_get_string(at, key, &text, r->err);
    if (!status)
        *out = arena_strdup(r->arena, text);
    return status;
}

enum status cluster_read_number(const struct cluster_reader *r, const struct json_at *at,
                                const char *key, double least, double most, double *out)
{
    double number;
    const enum status status = json_get_double(at, key, &number, r->err);
    if (status)
        return status;
    if (number < least || number > most)
        return json_fail(at, r->err, "'%s' is %.15g, it must be from %g to %g", key, number, least,
                         most);
    *out = number;
    return STATUS_OK;
}

static enum status read_size(const struct cluster_reader *r, const struct json_at *gpu,
                             const char *key, double unit, uint64_t least, uint64_t *out,
                             const char **source)
{
    static const char *const keys[] = {"value", "source"};
    struct json_at at;
    double number;
    enum status status;

    if (*source && !json_has(gpu, key)) /* the base's, or what stands where none is given */
        return STATUS_OK;
    if ((status = json_get(gpu, key, &at, r->err)) ||
        (status = cluster_check_object(&at, keys, LENGTH(keys), r->err)) ||
        (status = cluster_read_number(r, &at, "value", 0, (double)MAX_WHOLE / unit, &number)) ||
        (status = cluster_read_string(r, &at, "source", source)))
        return status;
    if (unit == 1 && number != floor(number))
        return json_fail(&at, r->err, "'value' is %g, a whole number is needed", number);
    const uint64_t whole = (uint64_t)llround(number * unit);
    if (whole < least)
        return json_fail(&at, r->err, "'value' is %g, that is too small", number);
    *out = whole;
    return STATUS_OK;
}

enum status cluster_read_gpu(const struct cluster_reader *r, const struct json_at *root)
{
    static const char *const keys[] = {
#define X(member, key, unit, least) key,
        CLUSTER_SIZES(X)
#undef X
    };
    struct cluster *out = r->out;
    struct json_at gpu;
    enum status status;

    if (r->has_base && !json_has(root, "gpu"))
        return STATUS_OK;
    if ((status = json_get(root, "gpu", &gpu, r->err)) ||
        (status = cluster_check_object(&gpu, keys, LENGTH(keys), r->err)))
        return status;
#define X(member, key, unit, least)                                                           \
    if ((status = read_size(r, &gpu, key, unit, least, &out->member, &out->member##_source))) \
        return status;
    CLUSTER_SIZES(X)
#undef X
    out->outside_bytes = out->context_bytes + out->communicator_bytes;
    return STATUS_OK;
}

/* at: an element of "valid" whose key is known */
static enum status read_range(const struct cluster_reader *r, const struct json_at *at,
                              struct valid_range *out)
{
    static const char *const keys[] = {"min", "max"};
    const int quantity = cluster_index_of(json_key(at), quantity_names, QUANTITY_N);
    struct valid_range range = {.max = UINT64_MAX, .quantity = (uint8_t)quantity};
    enum status status = cluster_check_object(at, keys, LENGTH(keys), r->err);

    if (!status && !json_has(at, "min") && !json_has(at, "max"))
        return json_fail(at, r->err, "neither 'min' nor 'max' is given");
    if (!status && json_has(at, "min"))
        status = json_get_u64(at, "min", MAX_WHOLE, &range.min, r->err);
    if (!status && json_has(at, "max"))
        status = json_get_u64(at, "max", MAX_WHOLE, &range.max, r->err);
    if (status)
        return status;
    if (range.min > range.max)
        return json_fail(at, r->err, "'min' is above 'max'");
    *out = range;
    return STATUS_OK;
}

static enum status read_valid(const struct cluster_reader *r, const struct json_at *at,
                              struct rate *rate)
{
    struct json_at valid;
    enum status status;

    if (!json_has(at, "valid"))
        return STATUS_OK;
    if ((status = json_get(at, "valid", &valid, r->err)) ||
        (status = cluster_check_object(&valid, quantity_names, QUANTITY_N, r->err)))
        return status;
    struct valid_range *ranges = arena_array(r->arena, struct valid_range, QUANTITY_N);
    for (struct json_at it = json_first(&valid); it.node; it = json_next(&it))
        if ((status = read_range(r, &it, &ranges[rate->n_valid++])))
            return status;
    rate->valid = ranges;
    return STATUS_OK;
}

static enum status check_order(const struct cluster_reader *r, const struct json_at *at,
                               const char *const *ends, bool more_is_faster, const double *numbers)
{
    for (int i = 1; i < SPREAD_N; i++)
        if (more_is_faster ? numbers[i] > numbers[i - 1] : numbers[i] < numbers[i - 1])
            return json_fail(at, r->err,
                             "'%s' (%g) is faster than '%s' (%g): low is the fast end, and here "
                             "%s is faster",
                             ends[i], numbers[i], ends[i - 1], numbers[i - 1],
                             more_is_faster ? "more" : "less");
    return STATUS_OK;
}

/* One number for all three spreads, or three in order. */
static enum status read_spread(const struct cluster_reader *r, const struct json_at *at,
                               const struct rate_field *field, struct rate *rate)
{
    static const char *const ends[SPREAD_N] = {"low", "mid", "high"};
    const bool has_value = json_has(at, "value");
    enum status status;

    for (int i = 0; i < SPREAD_N; i++) {
        if (has_value && json_has(at, ends[i]))
            return json_fail(at, r->err,
                             "both 'value' and '%s' are given: it is one number, or low, mid and "
                             "high",
                             ends[i]);
        if ((status = cluster_read_number(r, at, has_value ? "value" : ends[i], field->least,
                                          field->most, &rate->at[i])))
            return status;
    }
    if ((status = check_order(r, at, ends, field->more_is_faster, rate->at)))
        return status;
    for (int i = 0; i < SPREAD_N; i++)
        rate->at[i] *= field->unit;
    return STATUS_OK;
}

static enum status read_rate(const struct cluster_reader *r, const struct json_at *section,
                             const struct rate_field *field)
{
    static const char *const keys[] = {"value", "low", "mid", "high", "source", "valid"};
    struct rate rate = {.n_valid = 0};
    struct json_at at;
    enum status status;

    if (cluster_rate(r->out, field)->source && !json_has(section, field->key))
        return STATUS_OK;
    if ((status = json_get(section, field->key, &at, r->err)) ||
        (status = cluster_check_object(&at, keys, LENGTH(keys), r->err)) ||
        (status = read_spread(r, &at, field, &rate)) ||
        (status = cluster_read_string(r, &at, "source", &rate.source)) ||
        (status = read_valid(r, &at, &rate)))
        return status;
    memcpy((char *)r->out + field->offset, &rate, sizeof rate);
    return STATUS_OK;
}

/* Fields of one section stand side by side in the list. Returns one past the last of first's. */
static size_t section_end(size_t first)
{
    size_t end = first + 1;
    while (end < N_RATE &&
           !strcmp(cluster_rate_fields[first].section, cluster_rate_fields[end].section))
        end++;
    return end;
}

size_t cluster_rate_sections(const char **names)
{
    size_t n = 0;
    for (size_t first = 0; first < N_RATE; first = section_end(first))
        names[n++] = cluster_rate_fields[first].section;
    return n;
}

static enum status read_fields(const struct cluster_reader *r, const struct json_at *section,
                               size_t first, size_t end)
{
    const char *keys[N_RATE] = {NULL};

    for (size_t i = first; i < end; i++)
        keys[i - first] = cluster_rate_fields[i].key;
    enum status status = cluster_check_object(section, keys, end - first, r->err);
    for (size_t i = first; i < end && !status; i++)
        status = read_rate(r, section, &cluster_rate_fields[i]);
    return status;
}

enum status cluster_read_section(const struct cluster_reader *r, const struct json_at *section,
                                 const char *name)
{
    size_t first = 0;
    while (strcmp(cluster_rate_fields[first].section, name) != 0)
        first = section_end(first);
    return read_fields(r, section, first, section_end(first));
}

static enum status read_section(const struct cluster_reader *r, const struct json_at *root,
                                size_t first, size_t end)
{
    const char *name = cluster_rate_fields[first].section;
    struct json_at section;

    if (r->has_base && !json_has(root, name))
        return STATUS_OK;
    const enum status status = json_get(root, name, &section, r->err);
    return status ? status : read_fields(r, &section, first, end);
}

enum status cluster_read_rates(const struct cluster_reader *r, const struct json_at *root)
{
    enum status status = STATUS_OK;
    for (size_t first = 0; first < N_RATE && !status; first = section_end(first))
        status = read_section(r, root, first, section_end(first));
    return status;
}
