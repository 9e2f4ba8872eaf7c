/*
 * `unshard model`: built-in models, and what a model consists of.
 *
 * Shows parameters as they are, uncut; blocks after the first are left out, being like it.
 */
#include <string.h>

#include "src/arch/arch.h"
#include "src/cli/command.h"
#include "src/cli/model_shards.h"
#include "src/json.h"
#include "src/lora.h"
#include "src/model.h"
#include "src/model_json.h"

/* What training holds of a parameter, in its storage dtype: AdamW has two moments. */
static const struct state_kind {
    const char *name, *key;
    unsigned copies;
    bool of_trained; /* of frozen ones it has none */
} state_kinds[] = {
    {"parameters", "parameters_bytes", 1, false},
    {"gradients", "gradients_bytes", 1, true},
    {"optimizer", "optimizer_bytes", 2, true},
};
enum { STATE_N = sizeof state_kinds / sizeof *state_kinds };

struct states {
    uint64_t bytes[STATE_N], total;
};

static enum status sum_states(const struct model *model, struct states *out, struct err *err)
{
    struct states states = {0};
    for (uint32_t i = 0; i < model->n_param; i++) {
        uint64_t bytes;
        if (__builtin_mul_overflow(model->params[i].numel,
                                   dtype_bytes((enum dtype)model->params[i].storage), &bytes))
            return err_set(err, STATUS_INPUT, "'%s' passes 64 bits", model->params[i].name);
        for (unsigned kind = 0; kind < STATE_N; kind++) {
            uint64_t held;
            if (state_kinds[kind].of_trained && !model->params[i].trainable)
                continue;
            if (__builtin_mul_overflow(bytes, (uint64_t)state_kinds[kind].copies, &held) ||
                __builtin_add_overflow(states.bytes[kind], held, &states.bytes[kind]) ||
                __builtin_add_overflow(states.total, held, &states.total))
                return err_set(err, STATUS_INPUT, "the states of '%s' pass 64 bits", model->name);
        }
    }
    *out = states;
    return STATUS_OK;
}

/* Which parameters to show: those outside blocks, and those of the first; all if none is known. */
static bool *choose_params(const struct model *model, struct arena *arena)
{
    bool *shown = arena_array(arena, bool, model->n_param);
    for (uint32_t i = 0; i < model->n_param && model->n_piece == 0; i++)
        shown[i] = true;
    for (uint32_t i = 0; i < model->n_piece; i++) {
        const struct piece *piece = &model->pieces[i];
        bool later_block =
            (piece->kind == BODY_ATTENTION || piece->kind == BODY_MLP) && piece->layer > 0;
        for (uint32_t k = 0; k < piece->n_param; k++)
            shown[model->piece_params[piece->param + k]] = !later_block;
    }
    return shown;
}

static void add_shape(const struct param *param, struct text *out)
{
    for (unsigned d = 0; d < param->n_dim; d++)
        text_add(out, "%s%llu", d ? " x " : "", (unsigned long long)param->shape[d]);
}

static void add_params(const struct model *model, const struct term *term, const bool *shown,
                       struct text *out)
{
    text_add(out, "\n%sparameters", term->strong);
    if (model->dims.layers > 1)
        text_add(out, ", of %llu equal blocks the first", (unsigned long long)model->dims.layers);
    text_add(out, "%s\n", term->plain);
    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct param *param = &model->params[i];
        if (!shown[i])
            continue;
        char count[32];
        text_add(out, "  %s ", param->name);
        text_pad(out, 54);
        const char *dtype = param->stored ? param->stored : dtype_name((enum dtype)param->storage);
        text_add(out, "%-5s%14s  ", dtype, text_count(param->numel, count));
        add_shape(param, out);
        text_add(out, "\n");
    }
}

/* Whole decimal gigabytes, in which such totals are usually quoted. */
static const char *gigabytes(uint64_t bytes, char buffer[32])
{
    return text_count(bytes / 1000000000 + (bytes % 1000000000 >= 500000000), buffer);
}

static void add_states(const struct model *model, const struct states *states,
                       const struct term *term, struct text *out)
{
    text_add(out, "\n%sstates in training with AdamW, before any cut%s\n", term->strong,
             term->plain);
    char bytes[32], count[32];
    for (unsigned kind = 0; kind < STATE_N; kind++)
        text_add(out, "  %-12s%12s GB  %s\n", state_kinds[kind].name,
                 gigabytes(states->bytes[kind], bytes), text_count(states->bytes[kind], count));
    text_add(out, "  %-12s%12s GB  %s, %.4g bytes a parameter\n", "total",
             gigabytes(states->total, bytes), text_count(states->total, count),
             model->n_element > 0 ? (double)states->total / (double)model->n_element : 0.0);
}

static void show_json(const struct model *model, const struct states *states,
                      const struct options *options, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", MODEL_JSON_SCHEMA);
    model_json_add(model, root);
    if (option_given(options, OPTION_STATES)) {
        struct cJSON *object = json_add_object(root, "states");
        for (unsigned kind = 0; kind < STATE_N; kind++)
            json_add_u64(object, state_kinds[kind].key, states->bytes[kind]);
        json_add_u64(object, "total_bytes", states->total);
    }
    if (option_given(options, OPTION_SHARDS))
        model_shards_json(model, option_number(options, OPTION_SHARDS), root);
    model_json_add_tensors(model, root);
    json_print(root, out);
    json_free(root);
}

/* A line of its own, wrapped. */
static void add_line(const char *words, struct text *out)
{
    const struct term_margins margins = {.at = 2, .columns = TERM_PAGE_COLUMNS, .hanging = 2};
    text_add(out, "  ");
    term_wrap(words, margins, out);
}

static void add_sizes(const struct dims *dims, struct text *words)
{
    text_add(words,
             "%llu block%s, hidden %llu, intermediate %llu, %llu heads of %llu (%llu for keys and "
             "values), ",
             (unsigned long long)dims->layers, dims->layers == 1 ? "" : "s",
             (unsigned long long)dims->hidden, (unsigned long long)dims->intermediate,
             (unsigned long long)dims->heads, (unsigned long long)dims->head_dim,
             (unsigned long long)dims->kv_heads);
    if (dims->vocab > 0)
        text_add(words, "vocabulary %llu%s, ", (unsigned long long)dims->vocab,
                 dims->tied ? " with one matrix for embedding and head" : "");
    if (dims->positions > 0)
        text_add(words, "%llu learned positions, ", (unsigned long long)dims->positions);
    text_add(words, "%ssequence %llu", dims->bias ? "biases, " : "",
             (unsigned long long)dims->default_seq);
}

/* What the files store is told apart from what training holds. */
static void add_stored(const struct model *model, struct text *out)
{
    const char *stored = model->params[0].stored;
    bool same = true;
    for (uint32_t i = 0; i < model->n_param; i++)
        same = same && model->params[i].stored && !strcmp(model->params[i].stored, stored);
    struct text words;
    text_init(&words);
    text_add(&words, "stored in %s; in training parameters are held in %s",
             same ? stored : "several dtypes", dtype_name(DTYPE_FP32));
    add_line(words.at, out);
    text_release(&words);
}

static void add_head(const struct model *model, const struct term *term, struct text *out)
{
    struct term_margins margins = {.columns = TERM_PAGE_COLUMNS, .hanging = 2};
    char name[TERM_NAME_BYTES], count[32];
    struct text words;
    text_init(&words);
    text_add(&words, "%s parameters in %u tensors", text_count(model->n_element, count),
             model->n_param);
    term_name(model->name, name);
    text_add(out, "%s%s%s: ", term->strong, name, term->plain);
    margins.at = term_columns(name) + 2;
    term_wrap(words.at, margins, out);
    text_release(&words);
    if (model->n_piece > 0) {
        add_sizes(&model->dims, &words);
        add_line(words.at, out);
        text_release(&words);
    }
    if (model->params[0].stored)
        add_stored(model, out);
    if (model->arch->no_step) {
        text_add(&words, "no step of it can be built: %s", model->arch->no_step);
        add_line(words.at, out);
        text_release(&words);
    }
}

static void show_text(const struct model *model, const struct states *states,
                      const struct options *options, const struct term *term, struct arena *arena,
                      struct text *out)
{
    const bool *shown = choose_params(model, arena);
    add_head(model, term, out);
    add_params(model, term, shown, out);
    if (option_given(options, OPTION_SHARDS))
        model_shards_text(model, option_number(options, OPTION_SHARDS), shown, term, out);
    if (option_given(options, OPTION_STATES))
        add_states(model, states, term, out);
}

static enum status show(const struct options *options, struct output *out, struct arena *arena,
                        struct err *err)
{
    struct model model;
    struct states states = {0};
    enum status status =
        model_open(options->operands[1], option_number(options, OPTION_LAYERS), arena, &model, err);
    if (status == STATUS_OK && option_given(options, OPTION_LORA))
        status = lora_add(&model, option_text(options, OPTION_LORA), arena, err);
    if (status == STATUS_OK)
        status = sum_states(&model, &states, err);
    if (status == STATUS_OK && option_given(options, OPTION_SHARDS))
        status = model_shards_check(&model, err);
    if (status != STATUS_OK)
        return status;
    if (option_given(options, OPTION_JSON))
        show_json(&model, &states, options, &out->result);
    else
        show_text(&model, &states, options, &out->term, arena, &out->result);
    return STATUS_OK;
}

static void add_list_row(const struct model *model, const char *arch, struct text *out)
{
    char count[32];
    text_add(out, "%-14s%16s parameters, %4llu block%s hidden %5llu, %s\n", model->name,
             text_count(model->n_element, count), (unsigned long long)model->dims.layers,
             model->dims.layers == 1 ? ", " : "s,", (unsigned long long)model->dims.hidden, arch);
}

static enum status list(const struct options *options, struct output *out, struct arena *arena,
                        struct err *err)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.model_list/1");
    struct cJSON *array = json_add_array(root, "models");
    struct text rows;
    text_init(&rows);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < n_builtin_models; i++) {
        struct model model;
        status = model_open(builtin_models[i].name, option_number(options, OPTION_LAYERS), arena,
                            &model, err);
        if (status != STATUS_OK)
            goto out;
        add_list_row(&model, builtin_models[i].arch, &rows);
        struct cJSON *object = json_add_object(array, NULL);
        model_json_add(&model, object);
    }
    if (option_given(options, OPTION_JSON))
        json_print(root, &out->result);
    else
        text_add(&out->result, "%s", rows.at);
out:
    text_release(&rows);
    json_free(root);
    return status;
}

enum status cmd_model(struct options *options, struct output *out, struct err *err)
{
    struct arena arena;
    arena_init(&arena);
    enum status status = !strcmp(options->operands[0], "list") ? list(options, out, &arena, err)
                                                               : show(options, out, &arena, err);
    arena_release(&arena);
    return status;
}
