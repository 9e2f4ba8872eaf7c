/*
 * A point as options; see plan_point.h. Units become lists of modules; those that keep their parameters,
 * patterns of the names that such lists get.
 */
#include "src/cli/plan_point.h"

#include "src/plan_modules.h"

const char *plan_point_label(const struct space *space, const uint8_t *point, struct arena *arena)
{
    struct text text;

    text_init(&text);
    space_text(space, point, &text);
    const char *label = arena_strdup(arena, text.at);
    text_release(&text);
    return label;
}

static const char *units_of(const struct plan *plan, struct arena *arena)
{
    struct text text;

    text_init(&text);
    plan_units_text(plan, arena, &text);
    const char *units = arena_strdup(arena, text.at);
    text_release(&text);
    return units;
}

/* A pattern that matches the name and has no comma, which would end it. */
static const char *pattern_of(const char *name, struct arena *arena)
{
    char *pattern = arena_strdup(arena, name);

    for (char *at = pattern; *at; at++)
        *at = *at == ',' ? '?' : *at;
    return pattern;
}

static const char *kept_patterns(const struct plan *plan, const struct plan *named,
                                 struct arena *arena)
{
    const char *patterns = "";

    for (uint32_t u = 0; u < plan->n_unit; u++)
        if (!plan->units[u].reshard_after_forward && !plan_is_root(plan, u))
            patterns = arena_printf(arena, "%s%s%s", patterns, *patterns ? "," : "",
                                    pattern_of(named->units[u].name, arena));
    return patterns;
}

/* *lists: units that keep their parameters have to be named. */
static const char *reshard_word(const struct plan *plan, bool *lists)
{
    const bool root_kept = plan->has_root && !plan->units[0].reshard_after_forward;
    uint32_t n_kept = 0;

    for (uint32_t u = 0; u < plan->n_unit; u++)
        n_kept += !plan->units[u].reshard_after_forward;
    *lists = n_kept > root_kept && n_kept < plan->n_unit;
    if (n_kept == plan->n_unit)
        return "no";
    return plan->has_root && !root_kept ? "yes" : "auto";
}

static enum status take_reshard(const struct plan *plan, struct prepared *fine, struct arena *arena,
                                struct options *options, struct err *err)
{
    bool lists;
    struct plan named;
    options->values[OPTION_NO_RESHARD] = (struct option_value){0};
    enum status status = options_take(options, OPTION_RESHARD, reshard_word(plan, &lists), err);

    if (status != STATUS_OK || !lists)
        return status;
    const struct plan_options asked = prepare_plan_options(options, &fine->cluster);
    status = plan_resolve(&fine->model, &asked, &fine->arena, &named, err);
    if (status == STATUS_OK)
        status = options_take(options, OPTION_NO_RESHARD, kept_patterns(plan, &named, arena), err);
    return status;
}

static enum status take_depths(const uint8_t *point, struct arena *arena, struct options *options,
                               struct err *err)
{
    const enum status status = options_take(options, OPTION_PREFETCH,
                                            arena_printf(arena, "%u", point[POINT_PREFETCH]), err);

    return status != STATUS_OK
               ? status
               : options_take(options, OPTION_PREFETCH_BACKWARD,
                              arena_printf(arena, "%u", point[POINT_PREFETCH_BACKWARD]), err);
}

enum status plan_point_options(const struct space *space, const uint8_t *point,
                               const struct options *options, struct prepared *fine,
                               struct arena *arena, struct options *out, struct err *err)
{
    struct plan plan;
    enum status status;

    *out = *options;
    space_plan(space, point, &fine->arena, &plan);
    status = options_take(out, OPTION_UNITS, units_of(&plan, arena), err);
    if (status == STATUS_OK && space->axes >> AXIS_PREFETCH & 1)
        status = take_depths(point, arena, out, err);
    if (status == STATUS_OK && space->axes >> AXIS_RESHARD & 1)
        status = take_reshard(&plan, fine, arena, out, err);
    return status;
}
