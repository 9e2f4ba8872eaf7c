/*
 * `unshard device`: the check of a device, part by part, and what came out into the history.
 *
 * A part prints TAP without numbers and without a plan, so that a script joins them; what it found goes
 * to --output as JSON. Files: device_part.h.
 */
#include <string.h>

#include "src/cli/command.h"
#include "src/cli/device_part.h"
#include "src/cli/history.h"
#include "traces/out_file.h"

/* ---- list ------------------------------------------------------------------------------------------- */

/* Columns that a script reads: tier, seconds, name; then the words. */
static void list_text(struct text *out)
{
    for (const struct device_part *part = device_parts; part->name; part++)
        text_add(out, "%-5s %3u  %-12s %s\n", part->core ? "core" : "full", part->seconds,
                 part->name, part->words);
}

static void list_json(struct text *out)
{
    struct cJSON *root = json_new_object(), *parts;

    json_add_string(root, "schema", "unshard.device_list/1");
    parts = json_add_array(root, "parts");
    for (const struct device_part *part = device_parts; part->name; part++) {
        struct cJSON *object = json_add_object(parts, NULL);
        json_add_string(object, "part", part->name);
        json_add_bool(object, "core", part->core);
        json_add_u64(object, "seconds", part->seconds);
        json_add_string(object, "words", part->words);
    }
    json_print(root, out);
    json_free(root);
}

static enum status list(const struct options *options, struct output *out)
{
    if (option_given(options, OPTION_JSON))
        list_json(&out->result);
    else
        list_text(&out->result);
    return STATUS_OK;
}

/* ---- check ------------------------------------------------------------------------------------------ */

static const struct device_part *find_part(const char *name)
{
    const struct device_part *part = device_parts;

    while (part->name && strcmp(part->name, name) != 0)
        part++;
    return part->name ? part : NULL;
}

struct asked {
    const struct device_part *part;
    const struct options *options;
    struct err err; /* of the file */
};

static struct device_check record(const struct asked *asked, const struct device_part_run *run)
{
    return (struct device_check){.part = asked->part->name,
                                 .device = option_text(asked->options, OPTION_DEVICE),
                                 .name = run->facts.name,
                                 .software = run->facts.software,
                                 .tool_version = unshard_version,
                                 .lines = run->lines,
                                 .n_line = run->n_line};
}

static enum status write_text(const char *path, const struct text *text, struct err *err)
{
    struct out_file file;
    enum status status = out_open(path, &file, err);

    if (status != STATUS_OK)
        return status;
    status = out_write(&file, text->at, text->length, err);
    if (status == STATUS_OK)
        return out_commit(&file, err);
    out_discard(&file);
    return status;
}

/* The whole file again: what is there when the process is ended is what was found by then. */
static void note(void *context, const struct device_part_run *run)
{
    struct asked *asked = context;
    const char *path = option_text(asked->options, OPTION_OUTPUT);
    const struct device_check check = record(asked, run);
    struct text text = {0};

    if (!path || asked->err.status != STATUS_OK)
        return;
    struct cJSON *root = device_check_to_json(&check);
    json_print(root, &text);
    write_text(path, &text, &asked->err);
    text_release(&text);
    json_free(root);
}

static void print(const struct asked *asked, const struct device_part_run *run, struct output *out)
{
    const struct device_check check = record(asked, run);
    struct cJSON *root = device_check_to_json(&check);

    if (option_given(asked->options, OPTION_JSON))
        json_print(root, &out->result);
    else
        device_check_tap(&check, &out->result);
    json_free(root);
}

static enum status find(const struct options *options, const struct device_part **out,
                        struct err *err)
{
    *out = find_part(options->operands[1]);
    if (!*out)
        return err_set(err, STATUS_USAGE, "no part '%.40s'; see 'unshard device list'",
                       options->operands[1]);
    if (options->operands[2])
        return err_set(err, STATUS_USAGE, "extra argument '%.80s'; one part is checked at a time",
                       options->operands[2]);
    return STATUS_OK;
}

/* A part that ended early has failed, whatever it found by then. */
static enum status check(const struct options *options, struct output *out, struct err *err)
{
    const enum device device = (enum device)option_number(options, OPTION_DEVICE);
    struct asked asked = {.options = options};
    struct device_part_run run = {.note = note, .context = &asked};
    const struct device_ops *ops;
    enum status status = find(options, &asked.part, err);

    if (status == STATUS_OK)
        status = device_find(device, &ops, err);
    if (status != STATUS_OK)
        return status;
    arena_init(&run.arena);
    status = device_part_run(asked.part, ops, device_scale(device), &run, err);
    const struct device_check found = record(&asked, &run);
    print(&asked, &run, out);
    if (status == STATUS_OK && asked.err.status != STATUS_OK)
        status = err_set(err, asked.err.status, "%s", asked.err.text);
    if (status == STATUS_OK && !device_check_passed(&found))
        status = STATUS_NO;
    arena_release(&run.arena);
    return status;
}

/* ---- store ------------------------------------------------------------------------------------------ */

static enum status read_files(const struct options *options, struct arena *arena,
                              struct device_check *out, uint32_t *n, struct err *err)
{
    enum status status = STATUS_OK;

    for (*n = 0; options->operands[*n + 1] && status == STATUS_OK;) {
        struct json_doc doc = {0};
        status = json_read_file(options->operands[*n + 1], &doc, err);
        if (status == STATUS_OK)
            status = device_check_from_json(&doc, arena, &out[*n], err);
        json_release(&doc);
        *n += status == STATUS_OK;
    }
    return status;
}

static enum status put_all(const struct options *options, struct arena *arena,
                           const struct device_check *checks, uint32_t n, struct output *out,
                           struct err *err)
{
    struct store *store = NULL;
    const char *path = NULL;
    enum status status = history_path(options, arena, &path, err);

    if (status == STATUS_OK)
        status = store_open(path, &store, err);
    if (status != STATUS_OK)
        return status;
    status = store_put_device(store, checks, n, err);
    store_close(store);
    if (status == STATUS_OK)
        text_add(&out->result, "%u part%s of a device check stored in %s\n", n, n == 1 ? "" : "s",
                 path);
    return status;
}

/* All of the files or none. */
static enum status store(const struct options *options, struct output *out, struct err *err)
{
    struct device_check checks[OPTIONS_MAX_OPERANDS];
    struct arena arena;
    uint32_t n = 0;

    arena_init(&arena);
    enum status status = read_files(options, &arena, checks, &n, err);
    if (status == STATUS_OK)
        status = put_all(options, &arena, checks, n, out, err);
    arena_release(&arena);
    return status;
}

/* ---- the command ------------------------------------------------------------------------------------ */

enum status cmd_device(struct options *options, struct output *out, struct err *err)
{
    const char *action = options->operands[0];

    if (!strcmp(action, "list"))
        return list(options, out);
    if (!strcmp(action, "store"))
        return store(options, out, err);
    return check(options, out, err);
}
