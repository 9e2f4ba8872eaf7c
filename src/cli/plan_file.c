/*
 * Plans to files and back; see plan_file.h. Options go through the same parser as those that are typed.
 */
#include "src/cli/plan_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char schema[] = "unshard.chosen/1";

void plan_file_print(const struct prepared *prepared, const struct plan_row *row, struct text *out)
{
    struct cJSON *root = json_new_object();
    char hash[24];

    snprintf(hash, sizeof hash, "%016" PRIx64, program_hash(&prepared->program));
    json_add_string(root, "schema", schema);
    json_add_string(root, "model", prepared->model.name);
    json_add_u64(root, "parameters", prepared->model.n_element);
    json_add_string(root, "program_hash", hash);
    json_add_u64(root, "units", prepared->plan.n_unit);
    json_add_int(root, "step_ns", row->step_ns[SPREAD_MID]);
    json_add_u64(root, "total_bytes", row->total_bytes);
    prepared_options_json(&row->options, root);
    json_print(root, out);
    json_free(root);
}

/* GPUs of a plan are the ranks of a run. */
static enum option_id counterpart(const struct command *command, enum option_id id)
{
    return command->bit == COMMAND_RUN && id == OPTION_GPUS ? OPTION_RANKS : id;
}

static enum status take_option(const struct command *command, const struct json_at *from,
                               enum option_id id, struct arena *arena, struct options *options,
                               struct text *warnings, struct err *err)
{
    const enum option_id to = counterpart(command, id);
    const char *text;
    enum status status;

    if (option_given(options, to))
        return STATUS_OK;
    status = prepared_option_read(from, id, arena, &text, err);
    if (status != STATUS_OK)
        return status;
    if (!(option_table[to].commands & command->bit)) {
        if (command->bit != COMMAND_CHECK) /* whose units no other option changes */
            text_add(warnings, "'%s' takes no --%s, which the plan has as '%s'\n", command->name,
                     option_table[to].name, text);
        return STATUS_OK;
    }
    if (options_take(options, to, text, err) != STATUS_OK) {
        const struct err why = *err;
        return json_fail(from, err, "%s", why.text);
    }
    return STATUS_OK;
}

static enum status read_model(const struct json_at *root, struct arena *arena,
                              struct options *options, struct err *err)
{
    const char *model;
    enum status status = json_get_string(root, "model", &model, err);

    if (status == STATUS_OK)
        status = json_get_u64(root, "parameters", UINT64_MAX, &options->plan_parameters, err);
    if (status == STATUS_OK)
        options->plan_model = arena_strdup(arena, model);
    return status;
}

static enum status read_options(const struct command *command, const struct json_at *root,
                                struct arena *arena, struct options *options, struct text *warnings,
                                struct err *err)
{
    struct json_at from;
    enum status status = json_get(root, "options", &from, err);

    for (unsigned id = 0; id < OPTION_N && status == STATUS_OK; id++)
        if (prepared_option_stands(&from, (enum option_id)id))
            status = take_option(command, &from, (enum option_id)id, arena, options, warnings, err);
    return status;
}

/* What a search varies is where it begins, and not what it has to leave as it is. */
static void free_axes(const struct options *typed, struct options *options)
{
    static const enum option_id axes[] = {OPTION_UNITS, OPTION_RESHARD, OPTION_NO_RESHARD,
                                          OPTION_PREFETCH, OPTION_PREFETCH_BACKWARD};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        options->values[axes[i]].given = option_given(typed, axes[i]);
}

enum status plan_file_take(const struct command *command, struct options *options,
                           struct arena *arena, struct text *warnings, struct err *err)
{
    const struct options typed = *options;
    const char *found;
    struct json_doc doc;
    enum status status;

    if (!option_given(options, OPTION_PLAN))
        return STATUS_OK;
    status = json_read_file(option_text(options, OPTION_PLAN), &doc, err);
    if (status != STATUS_OK)
        return status;
    const struct json_at root = json_root(&doc);
    status = json_get_string(&root, "schema", &found, err);
    if (status == STATUS_OK && strcmp(found, schema) != 0)
        status = json_fail(&root, err, "is no plan: schema '%.40s', not '%s'", found, schema);
    if (status == STATUS_OK)
        status = read_model(&root, arena, options, err);
    if (status == STATUS_OK)
        status = read_options(command, &root, arena, options, warnings, err);
    if (command->bit == COMMAND_PLAN)
        free_axes(&typed, options);
    json_release(&doc);
    return status;
}
