/*
 * state.json of a checkpoint; see checkpoint.h.
 */
#include <float.h>
#include <string.h>

#include "gpu/checkpoint_inner.h"
#include "src/json.h"

#define SCHEMA "unshard.checkpoint/1"
static const uint64_t MAX_NUMBER = (UINT64_C(1) << 53) - 1;

static const char *optimizer_word(bool adamw)
{
    return adamw ? "adamw" : "sgd";
}

void checkpoint_state_advance(struct checkpoint_state *state, const struct plan *plan,
                              uint64_t steps)
{
    state->steps += steps;
    state->sequences += steps * plan->options.accum * plan->options.batch * plan->world;
}

void checkpoint_state_print(const struct checkpoint_state *state, const char *model,
                            struct text *out)
{
    struct cJSON *root = json_new_object();

    json_add_string(root, "schema", SCHEMA);
    json_add_string(root, "model", model);
    json_add_u64(root, "steps", state->steps);
    json_add_u64(root, "sequences", state->sequences);
    json_add_u64(root, "seed", state->seed);
    json_add_string(root, "optimizer", optimizer_word(state->adamw));
    if (state->scaler.loss_scale > 0) {
        json_add_exact(root, "loss_scale", (double)state->scaler.loss_scale);
        json_add_u64(root, "good_steps", state->scaler.good_steps);
    }
    json_print(root, out);
    json_free(root);
}

static enum status check_schema(const struct json_at *root, struct err *err)
{
    struct json_at at;
    const char *schema;

    if (!json_is_object(root))
        return json_fail(root, err, "must be an object with schema '%s'", SCHEMA);
    enum status status = json_get_string(root, "schema", &schema, err);
    if (!status)
        status = json_get(root, "schema", &at, err);
    if (!status && strcmp(schema, SCHEMA) != 0)
        status = json_fail(&at, err, "'%s' is not a checkpoint that this version reads: '%s'",
                           schema, SCHEMA);
    return status;
}

static enum status read_optimizer(const struct json_at *root, bool *adamw, struct err *err)
{
    struct json_at at;
    const char *word;
    enum status status = json_get_string(root, "optimizer", &word, err);

    if (!status)
        status = json_get(root, "optimizer", &at, err);
    if (status)
        return status;
    *adamw = strcmp(word, optimizer_word(true)) == 0;
    if (!*adamw && strcmp(word, optimizer_word(false)) != 0)
        return json_fail(&at, err, "'%s' is neither adamw nor sgd", word);
    return STATUS_OK;
}

static enum status read_scaler(const struct json_at *root, struct scaler_state *out,
                               struct err *err)
{
    struct json_at at;
    double loss_scale = 0;
    uint64_t good_steps = 0;

    if (!json_has(root, "loss_scale"))
        return STATUS_OK;
    enum status status = json_get_double(root, "loss_scale", &loss_scale, err);
    if (!status)
        status = json_get(root, "loss_scale", &at, err);
    if (!status && !(loss_scale >= (double)FLT_MIN && loss_scale <= (double)FLT_MAX))
        status = json_fail(&at, err, "must be a positive FP32 number");
    if (!status)
        status = json_get_u64(root, "good_steps", UINT32_MAX, &good_steps, err);
    if (!status)
        *out = (struct scaler_state){(float)loss_scale, (uint32_t)good_steps};
    return status;
}

static enum status read_state(const struct json_at *root, struct checkpoint_state *out,
                              struct err *err)
{
    const char *model;
    enum status status = check_schema(root, err);

    if (!status)
        status = json_get_string(root, "model", &model, err);
    if (!status)
        status = json_get_u64(root, "steps", MAX_NUMBER, &out->steps, err);
    if (!status)
        status = json_get_u64(root, "sequences", MAX_NUMBER, &out->sequences, err);
    if (!status)
        status = json_get_u64(root, "seed", MAX_NUMBER, &out->seed, err);
    if (!status)
        status = read_optimizer(root, &out->adamw, err);
    if (!status)
        status = read_scaler(root, &out->scaler, err);
    return status;
}

enum status checkpoint_state_read(const char *path, struct checkpoint_state *out, struct err *err)
{
    struct json_doc doc;
    struct checkpoint_state state = {0};
    enum status status = json_read_file(path, &doc, err);

    if (status)
        return status;
    const struct json_at root = json_root(&doc);
    status = read_state(&root, &state, err);
    if (!status)
        *out = state;
    json_release(&doc);
    return status;
}
