/*
 * What the units of a profile of FSDP2 take on the GPU, from the ranges that FSDP marks; see
 * trace_show.h.
 */
#include <string.h>

#include "src/cli/trace_show.h"

/* Ranges by the beginning of their names. What a unit computes is without the collectives that are
   launched meanwhile, which are those of other units. */
static const struct {
    const char *name;
    uint8_t part;
} hooks[] = {
    {"FSDP::all_gather", TRACE_ALL_GATHER},
    {"FSDP::all_gather_copy_out", TRACE_COPY_OUT},
    {"FSDP::forward", TRACE_FORWARD},
    {"FSDP::backward", TRACE_BACKWARD},
    {"FSDP::post_backward_reduce", TRACE_REDUCE},
};
enum { HOOK_N = sizeof hooks / sizeof *hooks };

const char *trace_part_name(enum trace_part part)
{
    static const char *const names[TRACE_PART_N] = {"all_gather", "copy_out", "forward", "backward",
                                                    "reduce"};
    return names[part];
}

/* "UNIT" of "HOOK (UNIT)", "" of "HOOK", which has no name; NULL where it is another range. */
static const char *unit_of(const char *name, const char *hook, struct arena *arena)
{
    const size_t length = strlen(name), prefix = strlen(hook);

    if (strncmp(name, hook, prefix))
        return NULL;
    if (length == prefix)
        return "";
    if (strncmp(name + prefix, " (", 2) || name[length - 1] != ')')
        return NULL;
    return arena_printf(arena, "%.*s", (int)(length - prefix - 3), name + prefix + 2);
}

static struct trace_unit *find(struct trace_unit *units, uint32_t n, const char *name)
{
    uint32_t i = 0;

    while (i < n && strcmp(units[i].name, name))
        i++;
    return &units[i];
}

uint32_t trace_units(const struct kineto *trace, struct arena *arena, const struct trace_unit **out)
{
    struct trace_unit *units = arena_array(arena, struct trace_unit, trace->n_range + 1);
    uint32_t n = 0;

    for (uint32_t i = 0; i < trace->n_range; i++) {
        const struct kineto_range *range = &trace->ranges[i];
        for (int hook = 0; hook < HOOK_N; hook++) {
            const uint8_t part = hooks[hook].part;
            const char *name = unit_of(range->name, hooks[hook].name, arena);
            if (!name)
                continue;
            struct trace_unit *unit = find(units, n, name);
            n += unit == &units[n];
            unit->name = name;
            unit->n[part] += range->host.n;
            unit->ns[part] =
                kineto_add_ns(unit->ns[part], part == TRACE_FORWARD || part == TRACE_BACKWARD
                                                  ? range->gpu_ns - range->collective_ns
                                                  : range->gpu_ns);
        }
    }
    *out = units;
    return n;
}
