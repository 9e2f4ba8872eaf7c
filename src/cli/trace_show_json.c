/*
 * A profile as JSON: integers as they are in the file, times in ns; see trace_show.h.
 */
#include "src/cli/trace_show.h"
#include "src/json.h"

static void add_spread(struct cJSON *object, const struct kineto_spread *spread)
{
    json_add_u64(object, "count", spread->n);
    json_add_int(object, "time_ns", spread->sum_ns);
    json_add_int(object, "least_ns", spread->least_ns);
    json_add_int(object, "p10_ns", spread->low_ns);
    json_add_int(object, "p50_ns", spread->mid_ns);
    json_add_int(object, "p90_ns", spread->high_ns);
    json_add_int(object, "most_ns", spread->most_ns);
}

static void add_head(const struct kineto *trace, const char *path, struct cJSON *root)
{
    json_add_string(root, "schema", "unshard.trace_show/1");
    json_add_string(root, "file", path);
    if (trace->has_rank)
        json_add_int(root, "rank", trace->rank);
    if (trace->world_size > 0)
        json_add_int(root, "world_size", trace->world_size);
    if (*trace->device_name)
        json_add_string(root, "device_name", trace->device_name);
    if (trace->has_date)
        json_add_string(root, "date", trace->date);
    json_add_u64(root, "events", trace->n_event);
    json_add_u64(root, "gpu_events", trace->n_gpu);
    json_add_u64(root, "discarded", trace->n_discarded);
    json_add_u64(root, "without_launch", trace->n_unlaunched);
}

static void add_streams(const struct kineto *trace, struct cJSON *root)
{
    struct cJSON *list = json_add_array(root, "streams");
    for (uint32_t i = 0; i < trace->n_stream; i++) {
        const struct kineto_stream *stream = &trace->streams[i];
        struct cJSON *object = json_add_object(list, NULL);
        json_add_int(object, "device", stream->device);
        json_add_int(object, "stream", stream->stream);
        json_add_u64(object, "kernels", stream->n_kernel);
        json_add_u64(object, "copies", stream->n_copy);
        json_add_u64(object, "sets", stream->n_set);
        json_add_int(object, "busy_ns", stream->busy_ns);
        json_add_int(object, "span_ns", stream->end_ns - stream->begin_ns);
    }
}

static void add_kernels(const struct kineto *trace, struct cJSON *root)
{
    struct cJSON *works = json_add_array(root, "works");
    for (int work = 0; work < KINETO_WORK_N; work++) {
        if (trace->works[work].n == 0)
            continue;
        struct cJSON *object = json_add_object(works, NULL);
        json_add_string(object, "work", kineto_work_name((enum kineto_work)work));
        add_spread(object, &trace->works[work]);
    }
    struct cJSON *kernels = json_add_array(root, "kernels");
    for (uint32_t i = 0; i < trace->n_kernel; i++) {
        struct cJSON *object = json_add_object(kernels, NULL);
        json_add_string(object, "name", trace->kernels[i].name);
        json_add_string(object, "work", kineto_work_name(trace->kernels[i].work));
        add_spread(object, &trace->kernels[i].spread);
    }
}

static void add_collectives(const struct kineto *trace, struct cJSON *root)
{
    struct cJSON *list = json_add_array(root, "collectives");
    for (uint32_t i = 0; i < trace->n_collective; i++) {
        const struct kineto_collective *of = &trace->collectives[i];
        uint64_t total;
        if (of->spread.n == 0)
            continue;
        if (__builtin_mul_overflow(of->bytes, of->spread.n, &total))
            total = UINT64_MAX;
        struct cJSON *object = json_add_object(list, NULL);
        json_add_string(object, "kind", of->kind);
        json_add_u64(object, "ranks", of->ranks);
        json_add_string(object, "group", of->group);
        json_add_string(object, "group_ranks", of->list);
        json_add_string(object, "dtype", of->dtype);
        json_add_u64(object, "elements", of->elements);
        json_add_u64(object, "bytes", of->bytes);
        json_add_u64(object, "bytes_total", total);
        add_spread(object, &of->spread);
    }
}

static void add_products(const struct kineto *trace, struct cJSON *root)
{
    static const char *const names[] = {[KINETO_MATMUL] = "product",
                                        [KINETO_SDPA] = "attention",
                                        [KINETO_SDPA_BACKWARD] = "attention backward"};
    struct cJSON *list = json_add_array(root, "products");
    for (uint32_t i = 0; i < trace->n_product; i++) {
        const struct kineto_product *of = &trace->products[i];
        if (of->spread.n == 0)
            continue;
        struct cJSON *object = json_add_object(list, NULL);
        json_add_string(object, "op", names[of->op]);
        json_add_string(object, "dtype", of->dtype);
        json_add_int(object, "batch", of->batch);
        json_add_int(object, "m", of->m);
        json_add_int(object, "n", of->n);
        json_add_int(object, "k", of->k);
        json_add_bool(object, "causal", of->causal);
        json_add_decimal(object, "tflops", trace_tflops(of, of->spread.mid_ns), 3);
        add_spread(object, &of->spread);
    }
}

static void add_host(const struct kineto *trace, struct cJSON *root)
{
    struct cJSON *launches = json_add_object(root, "launches");
    add_spread(launches, &trace->launch);
    add_spread(json_add_object(root, "launch_intervals"), &trace->interval);
    struct cJSON *ranges = json_add_array(root, "ranges");
    for (uint32_t i = 0; i < trace->n_range; i++) {
        const struct kineto_range *range = &trace->ranges[i];
        struct cJSON *object = json_add_object(ranges, NULL);
        json_add_string(object, "name", range->name);
        add_spread(object, &range->host);
        json_add_u64(object, "gpu_events", range->n_kernel);
        json_add_int(object, "gpu_ns", range->gpu_ns);
        json_add_int(object, "collective_ns", range->collective_ns);
    }
}

static void add_units(const struct kineto *trace, struct cJSON *root)
{
    const struct trace_unit *units;
    struct arena arena;
    arena_init(&arena);
    const uint32_t n = trace_units(trace, &arena, &units);
    struct cJSON *list = json_add_array(root, "units");
    for (uint32_t i = 0; i < n; i++) {
        struct cJSON *unit = json_add_object(list, NULL);
        json_add_string(unit, "name", units[i].name);
        for (int part = 0; part < TRACE_PART_N; part++) {
            struct cJSON *object = json_add_object(unit, trace_part_name((enum trace_part)part));
            json_add_u64(object, "count", units[i].n[part]);
            json_add_int(object, "gpu_ns", units[i].ns[part]);
        }
    }
    arena_release(&arena);
}

static void add_limits(const struct kineto *trace, struct cJSON *root)
{
    const char *limits[TRACE_LIMITS_MAX];
    struct arena arena;
    arena_init(&arena);
    const uint32_t n = trace_limits(trace, &arena, limits);
    struct cJSON *list = json_add_array(root, "cannot_tell");
    for (uint32_t i = 0; i < n; i++)
        json_add_string(list, NULL, limits[i]);
    arena_release(&arena);
}

void trace_show_json(const struct kineto *trace, const char *path, struct text *out)
{
    struct cJSON *root = json_new_object();
    add_head(trace, path, root);
    add_streams(trace, root);
    add_kernels(trace, root);
    add_collectives(trace, root);
    add_products(trace, root);
    add_host(trace, root);
    add_units(trace, root);
    add_limits(trace, root);
    json_print(root, out);
    json_free(root);
}
