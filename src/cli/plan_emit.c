/*
 * The best plan, made once more and written; see plan_emit.h.
 */
#include "src/cli/plan_emit.h"

#include <string.h>

#include "src/cli/emit_torch.h"
#include "src/cli/plan_file.h"
#include "traces/out_file.h"

static bool to_file(const struct options *options)
{
    const char *path = option_text(options, OPTION_OUTPUT);
    return path && strcmp(path, OUT_STDOUT) != 0;
}

bool plan_emit_instead(const struct options *options)
{
    return option_given(options, OPTION_EMIT) && !to_file(options);
}

enum status plan_emit_check(const struct options *options, struct err *err)
{
    if (option_given(options, OPTION_OUTPUT) && !option_given(options, OPTION_EMIT))
        return err_set(err, STATUS_USAGE,
                       "--output is where --emit writes; give --emit torch or json");
    if (plan_emit_instead(options) && option_given(options, OPTION_JSON))
        return err_set(err, STATUS_USAGE,
                       "--json and --emit would both print; write the plan to a file with -o");
    return STATUS_OK;
}

static enum status write_form(struct comparison *c, const struct plan_row *row, struct text *text,
                              struct text *warnings, struct err *err)
{
    if (option_number(c->options, OPTION_EMIT) == EMIT_FORM_TORCH)
        return emit_torch(&c->prepared, row, &c->arena, text, warnings, err);
    plan_file_print(&c->prepared, row, text);
    return STATUS_OK;
}

enum status plan_emit(struct comparison *c, struct output *out, struct err *err)
{
    const bool is_file = to_file(c->options);
    const struct plan_row *best = c->report.best;
    struct text text = {0};

    if (!option_given(c->options, OPTION_EMIT))
        return STATUS_OK;
    if (!best)
        return err_set(err, STATUS_NO, "no plan fits, so that there is none to emit");
    struct options options = best->options;
    enum status status = prepare_plan(&options, &c->prepared, err);
    if (status == STATUS_OK)
        status = write_form(c, best, is_file ? &text : &out->result, &out->warnings, err);
    if (status == STATUS_OK && is_file)
        status = out_write_file(option_text(c->options, OPTION_OUTPUT), text.at, text.length, err);
    text_release(&text);
    return status;
}
