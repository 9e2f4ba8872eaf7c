/*
 * Words of recorded schedules, and back; see oracle_event.h.
 */
#include "tests/oracle_event.h"

#include <string.h>

static const struct {
    const char *name;
    int follows;
} event_kinds[] = {
#define X(id, name, follows) {name, EVENT_##follows},
    ORACLE_EVENTS(X)
#undef X
};

const char *oracle_event_name(enum oracle_event_kind kind)
{
    return event_kinds[kind].name;
}

enum oracle_event_kind oracle_event_kind_of(const char *word)
{
    unsigned kind = 0;
    while (kind < ORACLE_EVENT_N && strcmp(event_kinds[kind].name, word) != 0)
        kind++;
    return (enum oracle_event_kind)kind;
}

enum dtype oracle_dtype_of(const char *word)
{
    unsigned dtype = 0;
    while (dtype < DTYPE_N && strcmp(dtype_name((enum dtype)dtype), word) != 0)
        dtype++;
    return (enum dtype)dtype;
}

enum reduction oracle_reduction_of(const char *word)
{
    unsigned reduction = 0;
    while (reduction < REDUCTION_N && strcmp(reduction_name((enum reduction)reduction), word) != 0)
        reduction++;
    return (enum reduction)reduction;
}

/* Cuts the last word off the line; "" where there is one word only. */
static const char *last_word(char *line)
{
    char *blank = strrchr(line, ' ');
    if (!blank)
        return "";
    *blank = '\0';
    return blank + 1;
}

/* What follows the unit, from the end of the line. */
static bool parse_tail(char *line, struct oracle_event *event)
{
    const int follows = event_kinds[event->kind].follows;

    if (follows == EVENT_REDUCES)
        event->reduction = (uint8_t)oracle_reduction_of(last_word(line));
    if (follows != EVENT_ALONE)
        event->dtype = (uint8_t)oracle_dtype_of(last_word(line));
    return event->reduction < REDUCTION_N && event->dtype < DTYPE_N &&
           (follows == EVENT_ALONE || text_to_u64(last_word(line), &event->elements));
}

enum status oracle_event_parse(const struct json_at *at, struct arena *arena,
                               struct oracle_event *out, struct err *err)
{
    const char *line;
    enum status status = json_string(at, &line, err);
    if (status)
        return status;

    char *unit = arena_strdup(arena, line);
    const char *kind = strsep(&unit, " ");
    struct oracle_event event = {.kind = (uint8_t)oracle_event_kind_of(kind)};
    if (event.kind == ORACLE_EVENT_N || !unit || !parse_tail(unit, &event) || !*unit)
        return json_fail(at, err, "'%s' is no event", line);
    event.unit = unit;
    *out = event;
    return STATUS_OK;
}

void oracle_event_print(const struct oracle_event *event, struct text *out)
{
    const int follows = event_kinds[event->kind].follows;

    text_add(out, "%s %s", oracle_event_name((enum oracle_event_kind)event->kind), event->unit);
    if (follows != EVENT_ALONE)
        text_add(out, " %llu %s", (unsigned long long)event->elements,
                 dtype_name((enum dtype)event->dtype));
    if (follows == EVENT_REDUCES)
        text_add(out, " %s", reduction_name((enum reduction)event->reduction));
}

bool oracle_event_equal(const struct oracle_event *a, const struct oracle_event *b)
{
    return a->kind == b->kind && a->elements == b->elements && a->dtype == b->dtype &&
           a->reduction == b->reduction && strcmp(a->unit, b->unit) == 0;
}
