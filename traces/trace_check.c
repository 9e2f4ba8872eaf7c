/*
 * Reads a trace once, event by event, and joins at the end what belongs together.
 *
 * Here are the rules about the file as a whole: its name, its beginning, and where HTA finds the
 * rank. HTA reads the text line by line and takes the first "rank": with a blank and a number.
 */
#include "traces/trace_check.h"

#include <inttypes.h>
#include <string.h>

#include "traces/trace_rules.h"
#include "traces/trace_slicer.h"

struct check {
    struct trace_state state;
    struct trace_slicer slicer;
    bool rank_given, rank_readable;
    int64_t rank, first_rank; /* of distributedInfo; what a search of the text finds first */
    bool searched;            /* first_rank was found */
};

/* The number behind "rank": and at least one blank, searched as HTA does. */
static bool search_rank(const char *text, size_t length, int64_t *rank)
{
    static const char key[] = "\"rank\":";
    const char *end = text + length;
    for (; (text = memchr(text, '"', (size_t)(end - text))) != NULL; text++) {
        if ((size_t)(end - text) < strlen(key) || memcmp(text, key, strlen(key)) != 0)
            continue;
        const char *at = text + strlen(key);
        const char *blanks = at;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        struct json_span digits = {SPAN_NUMBER, at, 0};
        while (at + digits.length < end && at[digits.length] >= '0' && at[digits.length] <= '9')
            digits.length++;
        if (at > blanks && digits.length > 0 && json_span_int(&digits, rank))
            return true;
    }
    return false;
}

static void take_distributed(struct check *check, const struct trace_slice *slice)
{
    struct json_scan scan = json_scan_of(slice->text, slice->length);
    struct json_span key, value;
    if (!json_scan_open(&scan, '{'))
        return;
    while (json_scan_member(&scan, &key, &value)) {
        if (json_span_is(&key, "rank"))
            check->rank_given = json_span_int(&value, &check->rank);
        else if (json_span_is(&key, "pg_config"))
            trace_groups_take(&check->state.groups, &value);
    }
    struct trace_findings *findings = &check->state.findings;
    int64_t found;
    check->rank_readable = search_rank(slice->text, slice->length, &found);
    if (check->rank_given && !check->rank_readable &&
        trace_found(findings, RULE_RANK_BLANK, slice->offset))
        trace_say(findings, RULE_RANK_BLANK,
                  "no blank between '\"rank\":' and its number, so that it is taken for rank 0");
    if (check->slicer.found_events && trace_found(findings, RULE_RANK_FIRST, slice->offset))
        trace_say(findings, RULE_RANK_FIRST,
                  "distributedInfo comes after traceEvents, so that all of it is searched");
}

static void take_member(struct check *check, const struct trace_slice *slice)
{
    struct trace_findings *findings = &check->state.findings;
    struct json_scan scan = json_scan_of(slice->text, slice->length);
    struct json_span value;
    trace_keys_reset(&check->state.keys);
    scan.keys = &check->state.keys;
    json_scan_value(&scan, &value);
    json_scan_done(&scan);
    const uint64_t at = slice->offset + (uint64_t)(scan.at - slice->text);
    if (scan.fault && trace_found(findings, RULE_JSON, at))
        trace_say(findings, RULE_JSON, "%s", scan.fault);
    trace_found_keys(findings, &check->state.keys, slice->text, slice->offset);
    if (!check->searched)
        check->searched = search_rank(slice->text, slice->length, &check->first_rank);
    if (!strcmp(check->slicer.key, "distributedInfo"))
        take_distributed(check, slice);
}

static enum status read_events(struct check *check, struct err *err)
{
    struct trace_slice slice = {.kind = SLICE_FAULT};
    enum status status = STATUS_OK;
    while (!status && slice.kind != SLICE_END) {
        status = trace_slicer_next(&check->slicer, &slice, err);
        if (status)
            break;
        if (slice.kind == SLICE_EVENT)
            trace_rules_event(&check->state, slice.text, slice.length, slice.offset);
        else if (slice.kind == SLICE_MEMBER)
            take_member(check, &slice);
        else if (slice.kind == SLICE_FAULT &&
                 trace_found(&check->state.findings, RULE_JSON, slice.offset))
            trace_say(&check->state.findings, RULE_JSON, "%s", slice.text);
    }
    return status;
}

static void check_rank(struct check *check)
{
    struct trace_findings *findings = &check->state.findings;
    if (!check->rank_given && trace_found(findings, RULE_RANK, 0))
        trace_say(findings, RULE_RANK, "distributedInfo gives no rank, so that it is rank 0's");
    if (check->rank_readable && check->first_rank != check->rank &&
        trace_found(findings, RULE_RANK_FIRST, 0))
        trace_say(findings, RULE_RANK_FIRST,
                  "a \"rank\": %" PRId64 " comes before that of distributedInfo, %" PRId64,
                  check->first_rank, check->rank);
}

static void check_file(struct check *check, const char *path)
{
    struct trace_findings *findings = &check->state.findings;
    const size_t length = strlen(path);
    const bool gz = length >= 8 && !strcmp(path + length - 8, ".json.gz");
    const bool plain = length >= 5 && !strcmp(path + length - 5, ".json");
    const char *start = check->slicer.start;
    for (uint64_t i = 0; i < check->slicer.n_again; i++) {
        if (trace_found(findings, RULE_KEYS, check->slicer.again_at))
            trace_say(findings, RULE_KEYS, "a key stands twice in the outermost object");
    }
    if (!gz && !plain && trace_found(findings, RULE_SUFFIX, 0))
        trace_say(findings, RULE_SUFFIX, "the name ends in neither .json nor .json.gz");
    else if ((gz || plain) && gz != check->slicer.compressed &&
             trace_found(findings, RULE_SUFFIX, 0))
        trace_say(findings, RULE_SUFFIX, "the name says that it is %scompressed, and it is%s",
                  gz ? "" : "not ", gz ? " not" : "");
    if (strncmp(start, "{\"", 2) != 0 && strcmp(start, "[{\"") != 0 &&
        trace_found(findings, RULE_START, 0))
        trace_say(findings, RULE_START, "the text begins with neither '{\"' nor '[{\"'");
    if (check->state.n_slice == 0 && trace_found(findings, RULE_SHOWN, 0))
        trace_say(findings, RULE_SHOWN, "there are no slices (X, B, E), which reads as empty");
}

static void finish(struct check *check, const char *path, struct trace_report *out)
{
    struct trace_state *state = &check->state;
    trace_tracks_check(&state->tracks, &state->findings);
    trace_links_check(&state->links, &state->tracks, &state->findings);
    check_rank(check);
    check_file(check, path);
    *out = (struct trace_report){
        .n_event = state->n_event,
        .n_slice = state->n_slice,
        .n_flow = state->n_flow,
        .n_counter = state->n_counter,
        .n_track = state->tracks.n,
    };
    trace_findings_report(&state->findings, out);
}

enum status trace_check(const char *path, struct arena *arena, struct trace_report *out,
                        struct err *err)
{
    struct check check = {.rank_given = false};
    enum status status = trace_slicer_open(path, &check.slicer, err);
    if (status)
        return status;
    trace_findings_init(&check.state.findings, arena);
    status = read_events(&check, err);
    if (status) {
        err_prefix(err, "cannot read '%s'", path);
    } else if (!check.slicer.found_events || check.state.n_event == 0) {
        status = err_set(err, STATUS_INPUT, "cannot read '%s': %s: not a Chrome trace", path,
                         check.slicer.found_events ? "no events" : "no array 'traceEvents'");
    } else {
        finish(&check, path, out);
        status = out->n_finding > 0 ? STATUS_NO : STATUS_OK;
    }
    trace_slicer_close(&check.slicer);
    trace_keys_release(&check.state.keys);
    trace_groups_release(&check.state.groups);
    trace_links_release(&check.state.links);
    trace_tracks_release(&check.state.tracks);
    return status;
}
