/*
 * What stands before the events: one object on the first line, still open.
 *
 * The rank comes before the events, where HTA finds it without searching them, and the metrics with
 * it. Nothing of the machine or of paths is told.
 */
#include <inttypes.h>
#include <string.h>

#include "traces/chrome_inner.h"

static const char *group_json(const struct chrome_group *group, struct arena *arena)
{
    return arena_printf(arena,
                        "{\"pg_name\":\"%s\",\"pg_desc\":\"%s\",\"backend_config\":\"cuda:nccl\","
                        "\"pg_size\":%" PRIu64 ",\"ranks\":%s}",
                        group->name, group->description, group->ranks,
                        chrome_group_list(group, group->ranks, arena));
}

/* The groups that the rank is in: that of all ranks, which is always made, and those it uses. */
static void add_group_list(struct chrome *chrome)
{
    const struct chrome_groups *groups = &chrome->groups;
    struct arena *arena = &chrome->arena;
    const char *list = group_json(&groups->world, arena);
    uint64_t n = 1;
    for (int i = 0; i < COMM_N; i++) {
        const struct chrome_group *group = &groups->of[i];
        if (group->ranks == 0 || group->name == groups->world.name)
            continue;
        list = arena_printf(arena, "%s,%s", list, group_json(group, arena));
        n++;
    }
    event_u64(&chrome->event, "pg_count", n);
    event_raw(&chrome->event, "pg_config", arena_printf(arena, "[%s]", list));
}

/* One reader looks for the rank in the text, and needs the blank after the colon. */
static void add_distributed(struct chrome *chrome)
{
    struct chrome_event *event = &chrome->event;
    event_open(event, "distributedInfo");
    event_string(event, "backend", "nccl");
    event_raw(event, "rank", arena_printf(&chrome->arena, " %" PRIu64, chrome->rank));
    event_u64(event, "world_size", chrome->run->world);
    add_group_list(chrome);
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
    if (run_kind_has_run(run->kind)) {
        event_string(event, "device", chrome_text(arena, run->real.device));
        event_string(event, "transport", chrome_text(arena, run->real.transport));
    }
    event_int(event, "window_begin_ns", -chrome->plan.origin_ns);
    for (int i = 0; i < RUN_METRIC_N; i++) {
        if (run->metrics[i] != RUN_NO_METRIC)
            event_int(event, run_metric_name((enum run_metric)i), run->metrics[i]);
    }
    event_close(event);
}
_Static_assert(RUN_METRIC_N + 30 <= EVENT_NODES, "the head is one object");

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
    add_distributed(chrome);
    event_string(event, "displayTimeUnit", "ms");
    event_int(event, "baseTimeNanoseconds", created_ns > -origin_ns ? created_ns + origin_ns : 0);
    event_string(event, "traceName", chrome_text(&chrome->arena, slash ? slash + 1 : path));
    add_metadata(chrome);

    size_t length;
    const char *head = event_print(event, &length);
    chrome_put_text(chrome, head, length - 1);
    chrome->separator = ",\n\"traceEvents\": [\n";
}
