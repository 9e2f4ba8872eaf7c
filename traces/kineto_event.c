/*
 * One event into the record of it that is kept; most events are of no use here and leave none.
 */
#include <string.h>

#include "src/json.h"
#include "traces/kineto_inner.h"
#include "traces/trace_tracks.h"

#define DAY_NS (INT64_C(24) * 3600 * 1000 * 1000 * 1000)
#define LONGEST_NS (7 * DAY_NS)    /* of one operation; what is longer is a broken clock */
#define LAST_NS (INT64_C(1) << 61) /* and what is later; differences of times fit */

static bool is_any(const struct json_span *word, const char *const *words)
{
    while (*words && !json_span_is(word, *words))
        words++;
    return *words;
}

/* A string with escapes as what they stand for. The scanner has found it sound. */
static uint32_t unescaped_of(struct kineto_state *state, const struct json_span *span)
{
    struct text quoted = {0};
    struct json_doc doc;
    uint32_t id;
    text_add(&quoted, "[\"%.*s\"]", (int)span->length, span->at);
    if (json_parse(quoted.at, "", &doc, NULL) == STATUS_OK) {
        const struct json_at root = json_root(&doc), first = json_first(&root);
        const char *text = "";
        json_string(&first, &text, NULL);
        id = kineto_id(&state->names, text, strlen(text));
        json_release(&doc);
    } else {
        id = kineto_id(&state->names, span->at, span->length);
    }
    text_release(&quoted);
    return id;
}

uint32_t kineto_name_of(struct kineto_state *state, const struct json_span *span)
{
    if (span->type == SPAN_NONE)
        return kineto_id(&state->names, "", 0);
    if (span->type == SPAN_STRING && memchr(span->at, '\\', span->length))
        return unescaped_of(state, span);
    return kineto_id(&state->names, span->at, span->length);
}

/* A number, or that behind a word, as in "stream 7"; -1 where there is none. */
static int64_t number_of(const struct json_span *span)
{
    int64_t value;
    struct json_span digits = {SPAN_NUMBER, span->at + span->length, 0};
    if (json_span_int(span, &value))
        return value;
    while (digits.length < span->length && digits.at[-1] >= '0' && digits.at[-1] <= '9') {
        digits.at--;
        digits.length++;
    }
    return digits.length > 0 && json_span_int(&digits, &value) ? value : -1;
}

static uint32_t thread_of(struct kineto_state *state, const struct trace_event *event)
{
    const struct kineto_thread_key key = {trace_id_value(&event->pid), trace_id_value(&event->tid)};
    return kineto_id(&state->threads, &key, sizeof(key));
}

static uint32_t stream_of(struct kineto_state *state, const struct trace_event *event)
{
    const struct json_span *device = &event->args[ARG_DEVICE], *stream = &event->args[ARG_STREAM];
    struct kineto_stream_key key;
    if (!json_span_int(device, &key.device))
        key.device = number_of(&event->pid);
    if (!json_span_int(stream, &key.stream))
        key.stream = number_of(&event->tid);
    return kineto_id(&state->streams, &key, sizeof(key));
}

static bool has_correlation(const struct trace_event *event, uint64_t *out)
{
    int64_t value;
    const bool has = json_span_int(&event->args[ARG_CORRELATION], &value) && value > 0;
    *out = has ? (uint64_t)value : 0;
    return has;
}

/* Its times make sense: of a clock that works, and not the 0 of what was lost. */
static bool is_timed(const struct trace_event *event)
{
    return event->has_ts && event->has_dur && event->dur_ns >= 0 && event->dur_ns <= LONGEST_NS &&
           event->ts_ns >= -LAST_NS && event->ts_ns <= LAST_NS &&
           (event->ts_ns != 0 || event->dur_ns != 0);
}

static void take_gpu(struct kineto_state *state, const struct trace_event *event, uint8_t work)
{
    struct kineto_gpu gpu = {.begin_ns = event->ts_ns,
                             .dur_ns = event->dur_ns,
                             .collective = KINETO_NONE,
                             .launch = KINETO_NONE,
                             .work = work};
    if (!is_timed(event)) {
        state->n_discarded++;
        return;
    }
    gpu.stream = stream_of(state, event);
    gpu.name = kineto_name_of(state, &event->name);
    has_correlation(event, &gpu.correlation);
    if (work == KINETO_OTHER)
        gpu.collective = kineto_collective_of(state, event);
    if (gpu.collective != KINETO_NONE)
        gpu.work = KINETO_COLLECTIVE;
    state->gpu = trace_grow(state->gpu, state->n_gpu, &state->gpu_cap, sizeof(*state->gpu));
    state->gpu[state->n_gpu++] = gpu;
}

static void take_launch(struct kineto_state *state, const struct trace_event *event)
{
    struct kineto_launch launch = {
        .begin_ns = event->ts_ns, .dur_ns = event->dur_ns, .collective = KINETO_NONE};
    const bool launches = json_span_has(&event->name, "Launch");
    if (!is_timed(event) || !has_correlation(event, &launch.correlation) ||
        (!launches && !json_span_has(&event->name, "Memcpy") &&
         !json_span_has(&event->name, "Memset")))
        return;
    launch.of_kernel = launches && json_span_has(&event->name, "Kernel");
    launch.thread = thread_of(state, event);
    state->launches =
        trace_grow(state->launches, state->n_launch, &state->launch_cap, sizeof(launch));
    state->launches[state->n_launch++] = launch;
}

void kineto_add_scope(struct kineto_state *state, const struct kineto_scope *scope)
{
    state->scopes = trace_grow(state->scopes, state->n_scope, &state->scope_cap, sizeof(*scope));
    state->scopes[state->n_scope++] = *scope;
}

static void take_scope(struct kineto_state *state, const struct trace_event *event,
                       enum kineto_scope_kind kind, uint32_t id)
{
    if (id == KINETO_NONE || !is_timed(event))
        return;
    const struct kineto_scope scope = {.begin_ns = event->ts_ns,
                                       .end_ns = event->ts_ns + event->dur_ns,
                                       .thread = thread_of(state, event),
                                       .id = id,
                                       .kind = (uint8_t)kind};
    kineto_add_scope(state, &scope);
}

static void take_op(struct kineto_state *state, const struct trace_event *event)
{
    if (json_span_is(&event->name, "record_param_comms"))
        take_scope(state, event, SCOPE_COLLECTIVE, kineto_collective_of(state, event));
    else
        take_scope(state, event, SCOPE_PRODUCT, kineto_product_of(state, event));
}

/* Steps are one range, whichever it is. */
static void take_range(struct kineto_state *state, const struct trace_event *event)
{
    static const char step[] = "ProfilerStep";
    struct json_span name = event->name;
    if (json_span_begins(&name, "ProfilerStep#"))
        name.length = strlen(step);
    take_scope(state, event, SCOPE_RANGE, kineto_name_of(state, &name));
}

/* Categories of traces of all years. */
static const char *const kernels[] = {"kernel", "Kernel", NULL};
static const char *const copies[] = {"gpu_memcpy", "Memcpy", NULL};
static const char *const sets[] = {"gpu_memset", "Memset", NULL};
static const char *const launches[] = {"cuda_runtime", "cuda_driver", "Runtime", NULL};
static const char *const host_ops[] = {"cpu_op", "Operator", NULL};
static const char *const ranges[] = {"user_annotation", NULL};

void kineto_take(struct kineto_state *state, const struct trace_event *event)
{
    state->n_event++;
    if (event->phase != 'X')
        return;
    if (event->has_ts && event->ts_ns > 0 &&
        (!state->has_begin || event->ts_ns < state->begin_ns)) {
        state->begin_ns = event->ts_ns;
        state->has_begin = true;
    }
    if (is_any(&event->cat, kernels))
        take_gpu(state, event, KINETO_OTHER);
    else if (is_any(&event->cat, copies))
        take_gpu(state, event, KINETO_COPY);
    else if (is_any(&event->cat, sets))
        take_gpu(state, event, KINETO_SET);
    else if (is_any(&event->cat, launches))
        take_launch(state, event);
    else if (is_any(&event->cat, host_ops))
        take_op(state, event);
    else if (is_any(&event->cat, ranges))
        take_range(state, event);
}
