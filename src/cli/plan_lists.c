/*
 * Lists to plans; see plan_lists.h. Each value is read by the option's own parser when the lists
 * are, so that a plan can be made of them without another look.
 */
#include "src/cli/plan_lists.h"

#include <assert.h>
#include <string.h>

#include "src/plan_schemes.h"

struct reading {
    const struct options *options;
    struct arena *arena;
    struct plan_list *list;
    uint32_t cap;
    struct err *err;
};

bool plan_list_is_scheme(const char *units)
{
    static const char many[] = "block*";
    uint64_t blocks;
    if (!strncmp(units, many, strlen(many)))
        return text_to_u64(units + strlen(many), &blocks);
    for (uint32_t i = 0; i < n_plan_schemes; i++) {
        if (!strcmp(units, plan_scheme_names[i]))
            return true;
    }
    return false;
}

/* The part up to the separator, without blanks around it, and on to the next; NULL at the end. */
static const char *next_part(const char **at, char separator, struct arena *arena)
{
    const char *begin = *at;
    if (!begin)
        return NULL;
    const char *stop = strchr(begin, separator);
    const char *end = stop ? stop : begin + strlen(begin);
    *at = stop ? stop + 1 : NULL;
    while (begin < end && *begin == ' ')
        begin++;
    while (begin < end && end[-1] == ' ')
        end--;
    return arena_printf(arena, "%.*s", (int)(end - begin), begin);
}

static enum status fail_too_many(struct err *err)
{
    return err_set(err, STATUS_USAGE, "the lists ask for more than %d plans; shorten one",
                   PLAN_MAX_ROWS);
}

static enum status add_value(struct reading *reading, const char *value)
{
    struct plan_list *list = reading->list;
    const char *name = option_table[list->id].name;
    struct options scratch = *reading->options;
    if (!*value)
        return err_set(reading->err, STATUS_USAGE, "--%s: an empty value in the list '%.80s'", name,
                       option_text(reading->options, list->id));
    enum status status = options_take(&scratch, list->id, value, reading->err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < list->n; i++) {
        if (!strcmp(list->values[i], value))
            return err_set(reading->err, STATUS_USAGE, "--%s: '%.80s' stands twice in the list",
                           name, value);
    }
    if (list->n == PLAN_MAX_ROWS)
        return fail_too_many(reading->err);
    list->values =
        arena_grow(reading->arena, list->values, &reading->cap, list->n + 1, sizeof *list->values);
    list->values[list->n++] = value;
    return STATUS_OK;
}

static enum status add_separated(struct reading *reading, const char *text)
{
    enum status status = STATUS_OK;
    const char *value;
    while (status == STATUS_OK && (value = next_part(&text, ',', reading->arena)))
        status = add_value(reading, value);
    return status;
}

/* How many names in a list with commas are schemes, of how many, and the first that is none. */
static uint32_t count_schemes(const char *text, struct arena *arena, uint32_t *n,
                              const char **other)
{
    uint32_t schemes = 0;
    const char *name;
    *n = 0;
    *other = NULL;
    while ((name = next_part(&text, ',', arena))) {
        bool known = plan_list_is_scheme(name);
        schemes += known;
        *n += 1;
        if (!known && !*other)
            *other = name;
    }
    return schemes;
}

/* Between two ';': schemes, or the patterns of one plan. */
static enum status add_units(struct reading *reading, const char *text)
{
    uint32_t n;
    const char *other;
    uint32_t schemes = count_schemes(text, reading->arena, &n, &other);
    if (schemes == n || (other && !*other)) /* an empty one is refused there */
        return add_separated(reading, text);
    if (schemes == 0)
        return add_value(reading, text);
    const char *names[8];
    assert(n_plan_schemes < sizeof names / sizeof *names);
    memcpy(names, plan_scheme_names, n_plan_schemes * sizeof *names);
    names[n_plan_schemes] = NULL;
    err_set(reading->err, STATUS_USAGE, "--units: '%.80s' stands beside schemes and is none",
            other);
    return options_hint(reading->err, other, names,
                        "separate plans by ';', as in 'block;model.layers.*,lm_head'");
}

static enum status read_units(struct reading *reading, const char *text)
{
    enum status status = STATUS_OK;
    const char *part;
    while (status == STATUS_OK && (part = next_part(&text, ';', reading->arena)))
        status = add_units(reading, part);
    return status;
}

enum status plan_lists_read(const struct options *options, struct arena *arena,
                            struct plan_lists *out, struct err *err)
{
    struct plan_lists lists = {.n_row = 1};
    for (unsigned id = 0; id < OPTION_N; id++) {
        const char *text = option_text(options, (enum option_id)id);
        if (!option_table[id].list || !text)
            continue;
        struct plan_list *list = &lists.lists[lists.n_list++];
        list->id = (enum option_id)id;
        struct reading reading = {options, arena, list, 0, err};
        enum status status =
            id == OPTION_UNITS ? read_units(&reading, text) : add_separated(&reading, text);
        if (status != STATUS_OK)
            return status;
        lists.n_row *= list->n;
        if (lists.n_row > PLAN_MAX_ROWS)
            return fail_too_many(err);
    }
    *out = lists;
    return STATUS_OK;
}

bool plan_lists_vary(const struct plan_lists *lists, enum option_id id)
{
    for (uint32_t i = 0; i < lists->n_list; i++) {
        if (lists->lists[i].id == id)
            return lists->lists[i].n > 1;
    }
    return false;
}

void plan_lists_share(struct plan_lists *lists, enum option_id id, enum option_id brought,
                      uint64_t product, struct arena *arena)
{
    for (uint32_t i = 0; i < lists->n_list; i++) {
        struct plan_list *list = &lists->lists[i];
        uint64_t value;
        if (list->id != id)
            continue;
        list->brings = arena_array(arena, const char *, list->n);
        list->brought = brought;
        for (uint32_t v = 0; v < list->n; v++)
            if (text_to_u64(list->values[v], &value) && value > 0)
                list->brings[v] =
                    arena_printf(arena, "%llu", (unsigned long long)(product / value));
    }
}

static void take(struct options *options, enum option_id id, const char *value)
{
    const enum status status = options_take(options, id, value, NULL);
    assert(status == STATUS_OK);
    (void)status;
}

void plan_lists_row(const struct plan_lists *lists, uint32_t row, const struct options *options,
                    struct options *out)
{
    const char *brought[OPTION_N] = {NULL};

    *out = *options;
    for (uint32_t i = lists->n_list; i-- > 0;) {
        const struct plan_list *list = &lists->lists[i];
        take(out, list->id, list->values[row % list->n]);
        if (list->brings)
            brought[list->brought] = list->brings[row % list->n];
        row /= list->n;
    }
    for (unsigned id = 0; id < OPTION_N; id++)
        if (brought[id])
            take(out, (enum option_id)id, brought[id]);
}
