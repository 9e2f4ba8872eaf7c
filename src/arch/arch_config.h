/*
 * What the families share when they read a config.json: optional keys, and complaints about keys
 * whose values would change shapes or operators and are not modelled.
 */
#ifndef SRC_ARCH_ARCH_CONFIG_H
#define SRC_ARCH_ARCH_CONFIG_H

#include "src/json.h"
#include "src/model.h"

#define CONFIG_MAX_INT (UINT64_C(1) << 53)
/* Configs allow up to millions of positions, more than anybody means to train on unasked. */
#define CONFIG_MAX_SEQ 8192

/* A key of a config.json and the count that it is. */
struct config_size {
    const char *key;
    size_t at; /* in struct dims */
    uint64_t max;
};
#define CONFIG_SIZE(key_, field, max_)                                   \
    {                                                                    \
        .key = (key_), .at = offsetof(struct dims, field), .max = (max_) \
    }

/* Each of these has to be there, and is 1 or more. */
enum status config_read_sizes(const struct json_at *config, const struct config_size *sizes,
                              size_t n, struct dims *dims, struct err *err);

/* Where a key is missing or null, *out is what is said here. */
enum status config_read_or(const struct json_at *config, const char *key, uint64_t missing,
                           uint64_t *out, struct err *err);
enum status config_bool_or(const struct json_at *config, const char *key, bool missing, bool *out,
                           struct err *err);

/* Complains about the value of a key that exists. */
enum status config_fail(const struct json_at *config, const char *key, struct err *err,
                        const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* A key that may be missing has to be one of these; the list ends with NULL. */
enum status config_need_word(const struct json_at *config, const char *key,
                             const char *const *words, struct err *err);

/* Switches that a family does not model have to be off, or missing; the list ends with NULL. */
enum status config_need_off(const struct json_at *config, const char *const *keys,
                            const char *family, struct err *err);

/* Other heads than that of a causal language model, and quantized parameters, are refused. */
enum status config_need_class(const struct json_at *config, const char *class_name,
                              struct err *err);

/* dims.heads divides dims.hidden, which gives dims.head_dim. */
enum status config_divide_heads(const struct json_at *config, const char *heads_key,
                                const char *hidden_key, struct dims *dims, struct err *err);

/* For sizes from elsewhere: fail naming the size, as DIMS_COUNTS names it. */
enum status dims_fail(struct err *err, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts of 1 or more that every family has, and products that fit. */
enum status dims_check(const struct dims *dims, struct err *err);

#endif
