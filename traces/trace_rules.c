/*
 * Rules that need no more than one event.
 *
 * An event that is not sound JSON is reported as that and adds nothing else: what its text means is
 * each reader's guess.
 */
#include "traces/trace_rules.h"

#include <inttypes.h>
#include <string.h>

#include "src/json_check.h"

#define DAY_NS (INT64_C(24) * 3600 * 1000 * 1000 * 1000)
#define EXACT_NS_MAX (INT64_C(1) << 53) /* where doubles, in which readers keep times, end */
#define ID_MAX UINT32_MAX

enum { SHOWN_CHARS = 60 };

/* For messages: the beginning of a text, cut between characters. */
struct shown {
    char text[SHOWN_CHARS + 4];
};

static struct shown show(const struct json_span *span)
{
    struct shown shown = {""};
    size_t length = 0, n;
    while (length < span->length && length < SHOWN_CHARS - 4 &&
           (n = json_utf8_length(span->at + length)) > 0)
        length += n;
    if (length > 0)
        memcpy(shown.text, span->at, length);
    strcpy(shown.text + length, length < span->length ? "..." : "");
    return shown;
}

/* Report one finding about this event, whose name is quoted. */
static void flag(struct trace_state *state, enum trace_rule rule, const struct trace_event *event,
                 uint64_t offset, const char *what)
{
    if (trace_found(&state->findings, rule, offset))
        trace_say(&state->findings, rule, "event '%s' %s", show(&event->name).text, what);
}

static bool is_drawn(const struct trace_event *event)
{
    return event->phase == 'X' || event->phase == 'B' || event->phase == 'E';
}

static bool is_kept_id(const struct json_span *id)
{
    int64_t value;
    return json_span_int(id, &value) && value >= 0 && value <= ID_MAX;
}

static void check_ids(struct trace_state *state, const struct trace_event *event, uint64_t offset)
{
    int64_t pid, tid;
    if (event->pid.type != SPAN_NUMBER || event->tid.type != SPAN_NUMBER) {
        flag(state, RULE_NUMERIC_IDS, event, offset, "has a pid or tid that is no number");
        return;
    }
    if (!is_kept_id(&event->pid) || !is_kept_id(&event->tid))
        flag(state, RULE_IDS_KEPT, event, offset,
             "has a pid or tid that is read as 0: negative, past 2^32 - 1 or not whole");
    else if (json_span_int(&event->tid, &tid) && json_span_int(&event->pid, &pid) && tid == 0 &&
             pid != 0)
        flag(state, RULE_IDS_KEPT, event, offset, "has tid 0, which is read as the tid of its pid");
}

static void check_times(struct trace_state *state, const struct trace_event *event, uint64_t offset)
{
    const bool lasts = event->phase == 'X';
    if (event->ts.type != SPAN_NUMBER || (lasts && event->dur.type != SPAN_NUMBER))
        flag(state, RULE_TIMES, event, offset, "has a ts or dur that is missing or no number");
    if ((event->ts.type != SPAN_NONE && !event->has_ts) ||
        (event->dur.type != SPAN_NONE && !event->has_dur) ||
        (event->has_ts && (event->ts_ns > EXACT_NS_MAX || event->ts_ns < -EXACT_NS_MAX)))
        flag(state, RULE_TIMES_EXACT, event, offset,
             "has a time past 2^53 ns, which loses its last digits");
    if (event->has_ts && event->ts_ns < 0)
        flag(state, RULE_DURATION, event, offset, "is before the beginning of time");
    if (lasts && event->has_dur && event->dur_ns < 0)
        flag(state, RULE_DURATION, event, offset, "lasts less than nothing");
    if (lasts && event->has_dur && event->dur_ns > 7 * DAY_NS)
        flag(state, RULE_LONG, event, offset, "lasts more than 7 days and is dropped");
}

static bool on_device(const struct trace_event *event)
{
    static const char *const categories[] = {"kernel", "gpu_memcpy", "gpu_memset",
                                             "Kernel", "Memcpy",     "Memset"};
    for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
        if (json_span_is(&event->cat, categories[i]))
            return true;
    }
    return false;
}

static void check_collective(struct trace_state *state, const struct trace_event *event,
                             uint64_t offset)
{
    const struct json_span *name = &event->name;
    const bool hta = json_span_begins(name, "nccl") || json_span_begins(name, "hip") ||
                     json_span_begins(name, "hccl") || json_span_has(name, "ncclKernel");
    if (event->args[ARG_COLLECTIVE_NAME].type != SPAN_NONE && !hta)
        flag(state, RULE_NCCL_NAME, event, offset,
             "is a collective, but its name is that of a compute kernel");
    if (!json_span_has(name, "nccl") && !json_span_has(name, "rccl"))
        return;
    for (int i = ARG_COLLECTIVE_NAME; i <= ARG_DTYPE; i++) {
        if (event->args[i].type == SPAN_NONE) {
            flag(state, RULE_NCCL_ARGS, event, offset,
                 "lacks one of: Collective name, In msg nelems, Out msg nelems, Group size, dtype");
            return;
        }
    }
    if (!trace_group_sizes_fit(event))
        flag(state, RULE_NCCL_SIZES, event, offset,
             "has In msg nelems and Out msg nelems that do not belong to its Group size");
    if (!trace_group_ranks_fit(&state->groups, event))
        flag(state, RULE_NCCL_GROUP, event, offset,
             "has a Group size that is not the number of ranks of its process group");
}

static void check_device(struct trace_state *state, const struct trace_event *event,
                         uint64_t offset)
{
    int64_t correlation, stream;
    const bool has_stream = json_span_int(&event->args[ARG_STREAM], &stream);
    if (!json_span_int(&event->args[ARG_CORRELATION], &correlation) || !has_stream)
        flag(state, RULE_CORRELATION, event, offset,
             "is on the GPU, but has no number as its correlation or stream");
    if (has_stream && stream < 1)
        flag(state, RULE_STREAM, event, offset, "is on a stream below 1 and loses its step");
    check_collective(state, event, offset);
}

static void add_correlation(struct trace_state *state, const struct trace_event *event,
                            uint32_t track, uint64_t offset)
{
    int64_t correlation;
    const bool device = on_device(event);
    if (!json_span_int(&event->args[ARG_CORRELATION], &correlation) || correlation < 0 ||
        (!device && event->args[ARG_STREAM].type != SPAN_NONE))
        return;
    if (!device && state->n_event == 1)
        flag(state, RULE_LAUNCH_FIRST, event, offset,
             "is a launch and the file's first event, whose number 0 means no launch");
    const struct link link = {(uint64_t)correlation, event->ts_ns, offset, track,
                              device ? LINK_DEVICE : LINK_LAUNCH};
    trace_links_add(&state->links.correlations, &link);
}

static void check_step(struct trace_state *state, const struct trace_event *event, uint64_t offset)
{
    if (!json_span_begins(&event->name, "ProfilerStep"))
        return;
    const uint64_t step = json_span_hash(&event->name, 1);
    if (state->step && step != state->step)
        flag(state, RULE_STEPS, event, offset,
             "is a second step: the last step and all GPU events without a launch are dropped");
    else
        state->step = step;
}

static void take_slice(struct trace_state *state, const struct trace_event *event, uint64_t offset)
{
    int64_t end_ns;
    state->n_slice++;
    if (event->cat.type != SPAN_STRING || event->name.type != SPAN_STRING)
        flag(state, RULE_CATEGORY, event, offset, "has no cat or name and is dropped");
    check_step(state, event, offset);
    if (on_device(event))
        check_device(state, event, offset);
    if (!event->has_ts || !event->has_dur || event->dur_ns < 0 ||
        __builtin_add_overflow(event->ts_ns, event->dur_ns, &end_ns))
        return;
    const uint32_t track =
        trace_track_of(&state->tracks, trace_id_value(&event->pid), trace_id_value(&event->tid));
    const struct track_slice slice = {event->ts_ns, end_ns, offset};
    trace_track_slice(&state->tracks, track, &slice);
    add_correlation(state, event, track, offset);
}

static void take_edge(struct trace_state *state, const struct trace_event *event, uint64_t offset)
{
    state->n_slice += event->phase == 'B';
    if (!event->has_ts)
        return;
    const uint32_t track =
        trace_track_of(&state->tracks, trace_id_value(&event->pid), trace_id_value(&event->tid));
    const struct track_edge edge = {event->ts_ns, offset, event->phase == 'B'};
    trace_track_edge(&state->tracks, track, &edge);
}

/* Whole numbers as they are, strings as hexadecimal digits where they are such. */
static uint64_t flow_id(const struct json_span *id)
{
    uint64_t value = 0;
    if (id->type != SPAN_STRING || id->length == 0 || id->length > 18)
        return trace_id_value(id);
    const bool prefixed = json_span_begins(id, "0x");
    for (size_t i = prefixed ? 2 : 0; i < id->length; i++) {
        const char *digit = strchr("0123456789abcdef", id->at[i] | 0x20);
        if (!digit || !*digit)
            return trace_id_value(id);
        value = value << 4 | (uint64_t)(digit - "0123456789abcdef");
    }
    return value;
}

static enum flow_role flow_role(const struct trace_event *event)
{
    if (event->phase == 's')
        return FLOW_BEGIN;
    if (event->phase == 't')
        return FLOW_STEP;
    return json_span_is(&event->bp, "e") ? FLOW_END : FLOW_END_NEXT;
}

static void take_flow(struct trace_state *state, const struct trace_event *event, uint64_t offset)
{
    state->n_flow++;
    if (event->id.type == SPAN_NONE) {
        flag(state, RULE_FLOW_PAIRED, event, offset, "is a flow without an id");
        return;
    }
    if (!event->has_ts)
        return;
    const uint32_t track =
        trace_track_of(&state->tracks, trace_id_value(&event->pid), trace_id_value(&event->tid));
    const uint64_t id = flow_id(&event->id);
    const uint64_t named = json_span_hash(&event->name, json_span_hash(&event->cat, id));
    const enum flow_role role = flow_role(event);
    const struct link flow = {named, event->ts_ns, offset, track, (uint8_t)role};
    trace_links_add(&state->links.flows, &flow);

    if (json_span_is(&event->cat, "ac2g") && role != FLOW_STEP) {
        const uint8_t end = role == FLOW_BEGIN ? LINK_FLOW_BEGIN : LINK_FLOW_END;
        const struct link arrow = {id, event->ts_ns, offset, track, end};
        trace_links_add(&state->links.correlations, &arrow);
    }
}

static void take_counter(struct trace_state *state, const struct trace_event *event,
                         uint64_t offset)
{
    state->n_counter++;
    if (event->n_arg != 1)
        flag(state, RULE_COUNTER_KEY, event, offset,
             "is a counter with other than one value: write one event a value");
    if (!event->args_numeric)
        flag(state, RULE_COUNTER_NUMBER, event, offset,
             "is a counter with a value that is no number");
}

static void take_metadata(struct trace_state *state, const struct trace_event *event,
                          uint64_t offset)
{
    const bool names =
        json_span_is(&event->name, "process_name") || json_span_is(&event->name, "thread_name");
    const struct json_span *name = &event->args[ARG_NAME];
    if (names && (name->type != SPAN_STRING || name->length == 0))
        flag(state, RULE_METADATA_NAME, event, offset, "gives no name, or an empty one");
}

static void take_event(struct trace_state *state, const struct trace_event *event, uint64_t offset)
{
    if (event->phase == '\0')
        flag(state, RULE_PHASE, event, offset, "has no ph of one letter");
    if (is_drawn(event))
        check_ids(state, event, offset);
    if (event->phase != 'M')
        check_times(state, event, offset);

    switch (event->phase) {
    case 'X':
        take_slice(state, event, offset);
        break;
    case 'B':
    case 'E':
        take_edge(state, event, offset);
        break;
    case 's':
    case 't':
    case 'f':
        take_flow(state, event, offset);
        break;
    case 'C':
        take_counter(state, event, offset);
        break;
    case 'M':
        take_metadata(state, event, offset);
        break;
    default:
        break;
    }
}

void trace_rules_event(struct trace_state *state, const char *text, size_t length, uint64_t offset)
{
    struct trace_findings *findings = &state->findings;
    struct json_scan scan = json_scan_of(text, length);
    struct trace_event event;
    trace_keys_reset(&state->keys);
    scan.keys = &state->keys;
    if (*text != '{') {
        struct json_span value;
        if (trace_found(findings, RULE_OBJECT, offset))
            trace_say(findings, RULE_OBJECT, "an element of traceEvents is no object");
        json_scan_value(&scan, &value);
    } else if (trace_event_parse(&scan, &event)) {
        state->n_event++;
        if (event.n_member > 0)
            take_event(state, &event, offset);
        else if (trace_found(findings, RULE_OBJECT, offset))
            trace_say(findings, RULE_OBJECT, "event without anything in it");
    } else {
        state->n_event++;
    }
    const uint64_t at = offset + (uint64_t)(scan.at - text);
    if (scan.fault && trace_found(findings, RULE_JSON, at))
        trace_say(findings, RULE_JSON, "%s", scan.fault);
    trace_found_keys(findings, &state->keys, text, offset);
    if (scan.surrogate &&
        trace_found(findings, RULE_SURROGATE, offset + (uint64_t)(scan.surrogate - text)))
        trace_say(findings, RULE_SURROGATE, "'\\u' escape of half a character: write UTF-8");
}
