/*
 * Reading config.json, and checking sizes, for all families; see arch_config.h. No family's rule is
 * here.
 */
#include "src/arch/arch_config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum status config_fail(const struct json_at *config, const char *key, struct err *err,
                        const char *fmt, ...)
{
    char text[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    struct json_at value;
    enum status status = json_get(config, key, &value, err);
    return status ? status : json_fail(&value, err, "%s", text);
}

enum status config_read_sizes(const struct json_at *config, const struct config_size *sizes,
                              size_t n, struct dims *dims, struct err *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = json_get_count(config, sizes[i].key, sizes[i].max,
                                (uint64_t *)((char *)dims + sizes[i].at), err);
    return status;
}

enum status config_read_or(const struct json_at *config, const char *key, uint64_t missing,
                           uint64_t *out, struct err *err)
{
    if (json_has(config, key))
        return json_get_count(config, key, CONFIG_MAX_INT, out, err);
    *out = missing;
    return STATUS_OK;
}

enum status config_bool_or(const struct json_at *config, const char *key, bool missing, bool *out,
                           struct err *err)
{
    if (json_has(config, key))
        return json_get_bool(config, key, out, err);
    *out = missing;
    return STATUS_OK;
}

enum status config_need_word(const struct json_at *config, const char *key,
                             const char *const *words, struct err *err)
{
    const char *word;
    if (!json_has(config, key))
        return STATUS_OK;
    enum status status = json_get_string(config, key, &word, err);
    if (status)
        return status;
    for (const char *const *known = words; *known; known++)
        if (strcmp(*known, word) == 0)
            return STATUS_OK;
    return config_fail(config, key, err, "'%s' is not supported, '%s' is", word, *words);
}

enum status config_need_off(const struct json_at *config, const char *const *keys,
                            const char *family, struct err *err)
{
    for (const char *const *key = keys; *key; key++) {
        bool set;
        enum status status = config_bool_or(config, *key, false, &set, err);
        if (status)
            return status;
        if (set)
            return config_fail(config, *key, err, "true is not supported yet for %s", family);
    }
    return STATUS_OK;
}

enum status config_need_class(const struct json_at *config, const char *class_name, struct err *err)
{
    if (json_has(config, "quantization_config"))
        return config_fail(config, "quantization_config", err,
                           "quantized parameters are not supported, use the original model's "
                           "config");
    struct json_at list;
    if (!json_has(config, "architectures"))
        return STATUS_OK;
    enum status status = json_get(config, "architectures", &list, err);
    if (status)
        return status;
    struct json_at first = json_first(&list);
    const char *name;
    if (!json_is_array(&list) || !first.node)
        return json_fail(&list, err, "must be a list with the model's class");
    status = json_string(&first, &name, err);
    if (status)
        return status;
    /* early files of llama write LLaMA */
    if (strcasecmp(name, class_name) != 0)
        return json_fail(&first, err, "'%s' is not supported, only '%s' is", name, class_name);
    return STATUS_OK;
}

enum status config_divide_heads(const struct json_at *config, const char *heads_key,
                                const char *hidden_key, struct dims *dims, struct err *err)
{
    if (dims->hidden % dims->heads != 0)
        return config_fail(config, heads_key, err,
                           "%" PRIu64 " does not divide %s, which is %" PRIu64, dims->heads,
                           hidden_key, dims->hidden);
    dims->head_dim = dims->hidden / dims->heads;
    return STATUS_OK;
}

enum status dims_fail(struct err *err, const char *name, const char *fmt, ...)
{
    char text[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return err_set(err, STATUS_INPUT, "%s: %s", name, text);
}

enum status dims_check(const struct dims *dims, struct err *err)
{
    const struct {
        const char *name;
        uint64_t count, max;
    } counts[] = {
        {"layers", dims->layers, MODEL_MAX_LAYERS},
        {"hidden", dims->hidden, CONFIG_MAX_INT},
        {"intermediate", dims->intermediate, CONFIG_MAX_INT},
        {"heads", dims->heads, CONFIG_MAX_INT},
        {"kv_heads", dims->kv_heads, CONFIG_MAX_INT},
        {"head_dim", dims->head_dim, CONFIG_MAX_INT},
        {"seq", dims->default_seq, CONFIG_MAX_INT},
    };
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        if (counts[i].count == 0)
            return dims_fail(err, counts[i].name, "at least 1 is needed");
        if (counts[i].count > counts[i].max)
            return dims_fail(err, counts[i].name,
                             "%" PRIu64 " is too large, %" PRIu64 " is the most", counts[i].count,
                             counts[i].max);
    }
    uint64_t width;
    if (__builtin_mul_overflow(dims->heads, dims->head_dim, &width) || width > CONFIG_MAX_INT)
        return dims_fail(err, "head_dim", "times heads it passes 2^53");
    if (dims->heads % dims->kv_heads != 0)
        return dims_fail(err, "kv_heads", "%" PRIu64 " does not divide heads, which is %" PRIu64,
                         dims->kv_heads, dims->heads);
    return STATUS_OK;
}
