/*
 * What tests of plans share; see plan_rig.h.
 */
#include "tests/plan_rig.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/quoted.h"
#include "tests/tap.h"

void plan_rig_init(struct plan_rig *rig)
{
    *rig = (struct plan_rig){.file = "plan-test-XXXXXX"};
    arena_init(&rig->arena);
    arena_init(&rig->model_arena);
    int fd = mkstemp(rig->file);
    if (fd < 0)
        tap_bail("cannot make a file of units");
    close(fd);
    if (model_open("llama3-8b", 3, &rig->model_arena, &rig->small, NULL))
        tap_bail("a built-in model is not there");
}

void plan_rig_release(struct plan_rig *rig)
{
    unlink(rig->file);
    arena_release(&rig->arena);
    arena_release(&rig->model_arena);
}

struct plan_options plan_rig_options(const char *units)
{
    struct plan_options options = plan_options_default();
    options.units = units;
    return options;
}

struct plan plan_rig_resolve(struct plan_rig *rig, const struct model *model,
                             const struct plan_options *options)
{
    struct plan plan;
    struct err err = {0};
    if (plan_resolve(model, options, &rig->arena, &plan, &err))
        tap_bail(err.text);
    return plan;
}

const char *plan_rig_write(struct plan_rig *rig, const char *text)
{
    quoted_write(rig->file, text);
    return arena_printf(&rig->arena, "@%s", rig->file);
}
