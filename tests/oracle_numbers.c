/*
 * Recorded numbers and where they start; see oracle_numbers.h.
 */
#include "tests/oracle_numbers.h"

#include <string.h>

enum { HEX_DIGITS = 8 }; /* of an FP32 value */

static bool parse_float(const char *hex, float *out)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t bits = 0;

    for (int i = 0; i < HEX_DIGITS; i++) {
        const char *digit = hex[i] ? strchr(digits, hex[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 4 | (uint32_t)(digit - digits);
    }
    memcpy(out, &bits, sizeof bits);
    return true;
}

static enum status read_tensor(const struct json_at *at, struct arena *arena,
                               struct oracle_tensor *out, struct err *err)
{
    const char *hex;
    enum status status = json_string(at, &hex, err);
    if (status)
        return status;

    out->name = json_key(at);
    out->n = strlen(hex) / HEX_DIGITS;
    out->values = arena_array(arena, float, out->n + 1);
    for (uint64_t i = 0; i < out->n; i++)
        if (!parse_float(hex + i * HEX_DIGITS, &out->values[i]))
            return json_fail(at, err, "element %llu is not %d hexadecimal digits",
                             (unsigned long long)i, HEX_DIGITS);
    return strlen(hex) % HEX_DIGITS == 0 ? STATUS_OK : json_fail(at, err, "half an element");
}

static enum status get_tensors(const struct json_at *at, const char *key, struct arena *arena,
                               struct oracle_tensors *out, struct err *err)
{
    struct json_at tensors;
    enum status status = json_get(at, key, &tensors, err);
    uint32_t cap = 0;

    if (status)
        return status;
    for (struct json_at it = json_first(&tensors); it.node && !status; it = json_next(&it)) {
        out->at = arena_grow(arena, out->at, &cap, out->n + 1, sizeof *out->at);
        status = read_tensor(&it, arena, &out->at[out->n++], err);
    }
    return status;
}

/* A list of a tensor for each step. */
static enum status get_steps(const struct json_at *at, const char *key, struct arena *arena,
                             struct oracle_tensor out[ORACLE_STEPS], struct err *err)
{
    struct json_at steps;
    enum status status = json_get(at, key, &steps, err);
    uint32_t n = 0;

    if (status)
        return status;
    for (struct json_at it = json_first(&steps); it.node && !status; it = json_next(&it), n++)
        status = n < ORACLE_STEPS ? read_tensor(&it, arena, &out[n], err)
                                  : json_fail(&it, err, "one step too many");
    return status || n == ORACLE_STEPS ? status : json_fail(&steps, err, "one step too few");
}

static enum status read_norms(const struct json_at *at, struct arena *arena, struct oracle_run *out,
                              struct err *err)
{
    struct oracle_tensor norms[ORACLE_STEPS];
    enum status status = get_steps(at, "norm", arena, norms, err);

    for (int step = 0; step < ORACLE_STEPS && !status; step++) {
        if (norms[step].n != 1)
            return json_fail(at, err, "a norm is one number");
        out->norm[step] = norms[step].values[0];
    }
    return status;
}

static enum status get_run(const struct json_at *at, const char *key, struct arena *arena,
                           struct oracle_run *out, struct err *err)
{
    struct json_at run;
    enum status status = json_get(at, key, &run, err);
    if (!status)
        status = json_get_double(&run, "lr", &out->lr, err);
    if (!status)
        status = get_steps(&run, "loss", arena, out->loss, err);
    if (!status)
        status = read_norms(&run, arena, out, err);
    return status ? status : get_tensors(&run, "params", arena, &out->params, err);
}

static enum status get_adamw(const struct json_at *at, struct arena *arena, struct oracle_run *out,
                             struct err *err)
{
    struct json_at adamw;
    enum status status = get_run(at, "adamw", arena, out, err);
    if (!status)
        status = json_get(at, "adamw", &adamw, err);
    if (!status)
        status = json_get_double(&adamw, "beta1", &out->beta1, err);
    if (!status)
        status = json_get_double(&adamw, "beta2", &out->beta2, err);
    if (!status)
        status = json_get_double(&adamw, "eps", &out->eps, err);
    return status ? status : json_get_double(&adamw, "weight_decay", &out->weight_decay, err);
}

/* No file has others, so that they are constants here. */
static enum status check_seeds(const struct json_at *at, struct err *err)
{
    static const char *const names[] = {[ORACLE_SEED_PARAMS] = "params",
                                        [ORACLE_SEED_TOKENS] = "tokens",
                                        [ORACLE_SEED_LABELS] = "labels"};
    struct json_at seeds;
    enum status status = json_get(at, "seeds", &seeds, err);

    for (uint64_t seed = ORACLE_SEED_PARAMS; seed <= ORACLE_SEED_LABELS && !status; seed++) {
        uint64_t given;
        status = json_get_u64(&seeds, names[seed], ORACLE_SEED_LABELS, &given, err);
        if (!status && given != seed)
            status = json_fail(&seeds, err, "the seed of %s is not %llu", names[seed],
                               (unsigned long long)seed);
    }
    return status;
}

enum status oracle_numbers_read(const struct oracle_case *of, struct arena *arena,
                                struct oracle_numbers *out, struct err *err)
{
    struct oracle_numbers numbers = {0};
    enum status status = check_seeds(&of->numbers, err);
    if (!status)
        status = get_tensors(&of->numbers, "gradients", arena, &numbers.gradients, err);
    if (!status)
        status = get_run(&of->numbers, "sgd", arena, &numbers.sgd, err);
    if (!status)
        status = get_adamw(&of->numbers, arena, &numbers.adamw, err);
    if (!status)
        *out = numbers;
    return status;
}

const struct oracle_tensor *oracle_tensor_find(const struct oracle_tensors *tensors,
                                               const char *name)
{
    for (uint32_t i = 0; i < tensors->n; i++)
        if (strcmp(tensors->at[i].name, name) == 0)
            return &tensors->at[i];
    return NULL;
}

uint64_t oracle_draw(enum oracle_seed seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Weights of norms lie around 1, everything else around 0. */
static bool is_norm_weight(const char *name)
{
    static const char *const patterns[] = {"*norm.weight", "*norm1.weight", "*norm2.weight",
                                           "*.ln_*.weight"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (text_matches(patterns[i], name))
            return true;
    return false;
}

void oracle_start(const struct model *model, uint32_t param, float *out)
{
    const float around = is_norm_weight(model->params[param].name) ? 1 : 0;
    uint64_t first = 0;

    for (uint32_t i = 0; i < param; i++)
        first += model->params[i].numel;
    for (uint64_t i = 0; i < model->params[param].numel; i++) {
        const int32_t steps = (int32_t)(oracle_draw(ORACLE_SEED_PARAMS, first + i) >> 52) - 2048;
        out[i] = around + (float)steps / 4096;
    }
}

uint64_t oracle_token(const struct plan *plan, enum oracle_seed seed, struct oracle_place place)
{
    const struct plan_options *options = &plan->options;
    const uint64_t microbatch =
        (place.step * options->accum + place.microbatch) * plan->world + place.rank;

    return oracle_draw(seed, microbatch * options->batch * options->seq + place.position) %
           plan->model->dims.vocab;
}
