/*
 * What stands before the events: one object on the first line, still open.
 *
 * The rank comes before the events, where HTA finds it without searching them, and the metrics with
 * it. Nothing of the machine or of paths is told.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/chrome_inner.h"

const char *chrome_rank_list(struct arena *arena, uint64_t world, uint64_t shown)
{
    struct text text;
    text_init(&text);
    text_add(&text, "[");
    for (uint64_t i = 0; i < world; i++) {
        if (world > shown && i == shown - 1) {
            text_add(&text, ", ...");
            i = world - 1;
        }
        text_add(&text, "%s%" PRIu64, i ? ", " : "", i);
    }
    text_add(&text, "]");
    const char *copy = arena_strdup(arena, text.at);
    text_release(&text);
    return copy;
}

/* One reader looks for the rank in the text, and needs the blank after the colon. */
static void add_group(struct chrome *chrome)
{
    struct chrome_event *event = &chrome->event;
    struct arena *arena = &chrome->arena;
    const uint64_t world = chrome->run->world;
    event_open(event, "distributedInfo");
    event_string(event, "backend", "nccl");
    event_raw(event, "rank", arena_printf(arena, " %" PRIu64, chrome->rank));
    event_u64(event, "world_size", world);
    event_u64(event, "pg_count", 1);
    event_raw(event, "pg_config",
              arena_printf(arena,
                           "[{\"pg_name\":\"0\",\"pg_desc\":\"default_pg\","
                           "\"backend_config\":\"cuda:nccl\",\"pg_size\":%" PRIu64
                           ",\"ranks\":%s}]",
                           world, chrome_rank_list(arena, world, world)));
    event_close(event);
}

static void add_metadata(struct chrome *chrome)
{
    struct chrome_event *event = &chrome->event;
    const struct run *run = chrome->run;
    struct arena *arena = &chrome->arena;
    event_open(event, "metadata");
    event_string(event, "tool", "unshard");
    event_string(event, "tool_version", chrome_text(arena, run->tool_version));
    event_string(event, "kind", run_kind_name(run->kind));
    event_string(event, "model", chrome_text(arena, run->model));
    event_string(event, "cluster", chrome_text(arena, run->cluster));
    event_string(event, "program_hash", arena_printf(arena, "%016" PRIx64, run->program_hash));
    event_string(event, "placement_hash", arena_printf(arena, "%016" PRIx64, run->placement_hash));
    event_int(event, "window_begin_ns", -chrome->plan.origin_ns);
    for (int i = 0; i < RUN_METRIC_N; i++) {
        if (run->metrics[i] != RUN_NO_METRIC)
            event_int(event, run_metric_name((enum run_metric)i), run->metrics[i]);
    }
    event_close(event);
}
_Static_assert(RUN_METRIC_N + 28 <= EVENT_NODES, "the head is one object");

/* All but the events, without the last bracket. Times are from the base, which is before them all. */
void chrome_put_head(struct chrome *chrome, const char *path)
{
    struct chrome_event *event = &chrome->event;
    const int64_t created_ns = chrome->run->created_ns, origin_ns = chrome->plan.origin_ns;
    const char *slash = strrchr(path, '/');
    event_begin(event);
    event_u64(event, "schemaVersion", 1);
    event_raw(event, "deviceProperties",
              arena_printf(&chrome->arena, "[{\"id\":%" PRIu64 "}]", chrome->device));
    add_group(chrome);
    event_string(event, "displayTimeUnit", "ms");
    event_int(event, "baseTimeNanoseconds", created_ns > -origin_ns ? created_ns + origin_ns : 0);
    event_string(event, "traceName", chrome_text(&chrome->arena, slash ? slash + 1 : path));
    add_metadata(chrome);

    size_t length;
    const char *head = event_print(event, &length);
    chrome_put_text(chrome, head, length - 1);
    chrome->separator = ",\n\"traceEvents\": [\n";
}
