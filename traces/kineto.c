/*
 * Reads a profile: cuts it into events, takes what the head says of the rank, and has the rest done
 * by kineto_event.c, kineto_join.c and kineto_sum.c.
 *
 * Strict where a tolerant reader would have to guess: what is damaged, or no trace, is refused with
 * its place, so that no number is of half a file.
 */
#include "traces/kineto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "traces/kineto_inner.h"
#include "traces/trace_slicer.h"
#include "traces/trace_tracks.h"

#define S_NS INT64_C(1000000000)
#define YEAR_S (INT64_C(31556952))
/* 2010 to 2100: other times are not those of a calendar, but of a machine's start. */
#define FIRST_DATE_NS (40 * YEAR_S * S_NS)
#define LAST_DATE_NS (130 * YEAR_S * S_NS)

static enum status fail_at(uint64_t offset, const char *what, struct err *err)
{
    return err_set(err, STATUS_INPUT, "byte %" PRIu64 ": %s", offset, what);
}

static enum status take_event(struct kineto_state *state, const struct trace_slice *slice,
                              struct err *err)
{
    struct json_scan scan = json_scan_of(slice->text, slice->length);
    struct trace_event event;
    if (*slice->text != '{')
        return fail_at(slice->offset, "an event that is no object: not a trace of events", err);
    if (!trace_event_parse(&scan, &event))
        return fail_at(slice->offset + (uint64_t)(scan.at - slice->text), scan.fault, err);
    kineto_take(state, &event);
    return STATUS_OK;
}

static void take_distributed(const struct json_span *object, struct kineto *out)
{
    struct json_scan scan = json_scan_of(object->at, object->length);
    struct json_span key, value;
    if (!json_scan_open(&scan, '{'))
        return;
    while (json_scan_member(&scan, &key, &value)) {
        if (json_span_is(&key, "rank"))
            out->has_rank = json_span_int(&value, &out->rank);
        else if (json_span_is(&key, "world_size") && !json_span_int(&value, &out->world_size))
            out->world_size = 0;
    }
}

/* That of the first: a rank's trace lists all GPUs of its machine, which are alike. */
static void take_devices(struct kineto_state *state, const struct json_span *list,
                         struct kineto *out)
{
    struct json_scan scan = json_scan_of(list->at, list->length);
    struct json_span device, key, value;
    if (!json_scan_open(&scan, '[') || !json_scan_element(&scan, &device) ||
        device.type != SPAN_OBJECT)
        return;
    struct json_scan inner = json_scan_of(device.at, device.length);
    for (json_scan_open(&inner, '{'); json_scan_member(&inner, &key, &value);) {
        if (json_span_is(&key, "name") && value.type == SPAN_STRING)
            out->device_name = kineto_name(state, kineto_name_of(state, &value));
    }
}

static enum status take_member(struct kineto_state *state, const struct trace_slicer *slicer,
                               const struct trace_slice *slice, struct kineto *out, struct err *err)
{
    struct json_scan scan = json_scan_of(slice->text, slice->length);
    struct json_span value;
    if (!json_scan_value(&scan, &value) || !json_scan_done(&scan))
        return fail_at(slice->offset + (uint64_t)(scan.at - slice->text), scan.fault, err);
    if (!strcmp(slicer->key, "distributedInfo"))
        take_distributed(&value, out);
    else if (!strcmp(slicer->key, "deviceProperties"))
        take_devices(state, &value, out);
    else if (!strcmp(slicer->key, "baseTimeNanoseconds") && !json_span_int(&value, &state->base_ns))
        state->base_ns = 0;
    return STATUS_OK;
}

static enum status read_slices(struct kineto_state *state, struct trace_slicer *slicer,
                               struct kineto *out, struct err *err)
{
    struct trace_slice slice = {.kind = SLICE_FAULT};
    enum status status = STATUS_OK;
    while (!status && slice.kind != SLICE_END) {
        status = trace_slicer_next(slicer, &slice, err);
        if (status)
            break;
        if (slice.kind == SLICE_EVENT)
            status = take_event(state, &slice, err);
        else if (slice.kind == SLICE_MEMBER)
            status = take_member(state, slicer, &slice, out, err);
        else if (slice.kind == SLICE_FAULT)
            status = fail_at(slice.offset, slice.text, err);
    }
    if (!status && (!slicer->found_events || state->n_event == 0))
        status = err_set(err, STATUS_INPUT, "%s: not a trace of events",
                         slicer->found_events ? "no events" : "no array 'traceEvents'");
    return status;
}

static void set_date(const struct kineto_state *state, struct kineto *out)
{
    int64_t ns;
    if (!state->has_begin || __builtin_add_overflow(state->begin_ns, state->base_ns, &ns) ||
        ns < FIRST_DATE_NS || ns > LAST_DATE_NS)
        return;
    const time_t seconds = (time_t)(ns / S_NS);
    struct tm date;
    out->has_date =
        gmtime_r(&seconds, &date) && strftime(out->date, sizeof(out->date), "%Y-%m-%d", &date) > 0;
}

static void release(struct kineto_state *state)
{
    free(state->gpu);
    free(state->launches);
    free(state->order);
    free(state->scopes);
}

enum status kineto_read(const char *path, struct arena *arena, struct kineto *out, struct err *err)
{
    struct kineto_state state = {.arena = arena,
                                 .names = {.arena = arena},
                                 .streams = {.arena = arena},
                                 .threads = {.arena = arena},
                                 .collectives = {.arena = arena},
                                 .products = {.arena = arena}};
    struct kineto made = {.device_name = ""};
    struct trace_slicer slicer;
    enum status status = trace_slicer_open(path, &slicer, err);
    if (status)
        return status;
    status = read_slices(&state, &slicer, &made, err);
    trace_slicer_close(&slicer);
    if (status) {
        err_prefix(err, "cannot read '%s'", path);
    } else {
        kineto_join(&state);
        set_date(&state, &made);
        kineto_sum(&state, &made);
        *out = made;
    }
    release(&state);
    return status;
}
