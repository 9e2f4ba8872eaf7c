/*
 * Layout, division factors and bounds from their JSON; see oracle_rows.h.
 */
#include "tests/oracle_rows.h"

#include <string.h>

static const uint64_t MAX_COUNT = UINT64_C(1) << 52;

static enum status read_list(const struct json_at *at, const char *key, struct arena *arena,
                             uint64_t **out, uint32_t *n, struct err *err)
{
    struct json_at list;
    enum status status = json_get(at, key, &list, err);
    uint32_t cap = 0;

    *n = 0;
    if (status)
        return status;
    for (struct json_at it = json_first(&list); it.node && !status; it = json_next(&it)) {
        *out = arena_grow(arena, *out, &cap, *n + 1, sizeof **out);
        status = json_u64(&it, MAX_COUNT, &(*out)[(*n)++], err);
    }
    return status;
}

static enum status read_shape(const struct json_at *at, struct arena *arena,
                              struct oracle_param *out, struct err *err)
{
    uint64_t *shape = NULL;
    enum status status = read_list(at, "shape", arena, &shape, &out->n_dim, err);

    if (!status && (out->n_dim == 0 || out->n_dim > PARAM_MAX_DIMS))
        status = json_fail(at, err, "a shape of %u dimensions", out->n_dim);
    if (!status)
        memcpy(out->shape, shape, out->n_dim * sizeof *shape);
    return status;
}

static enum status read_param(const struct json_at *at, struct arena *arena,
                              struct oracle_param *out, struct err *err)
{
    enum status status = json_get_string(at, "name", &out->name, err);
    if (!status)
        status = json_get_string(at, "unit", &out->unit, err);
    if (!status)
        status = read_shape(at, arena, out, err);
    if (!status)
        status = json_get_u64(at, "dim", out->n_dim - 1, &out->dim, err);
    if (!status)
        status = json_get_u64(at, "chunk", MAX_COUNT, &out->chunk, err);
    if (!status)
        status = json_get_u64(at, "numel", MAX_COUNT, &out->numel, err);
    out->has_offset = json_has(at, "offset");
    if (!status && out->has_offset)
        status = json_get_u64(at, "offset", MAX_COUNT, &out->offset, err);
    return status ? status : read_list(at, "rows", arena, &out->rows, &out->n_rank, err);
}

enum status oracle_take_params(const struct json_at *at, struct oracle_file *file,
                               struct oracle_case *out, struct err *err)
{
    enum status status = STATUS_OK;
    uint32_t cap = 0;

    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it)) {
        out->params =
            arena_grow(&file->arena, out->params, &cap, out->n_param + 1, sizeof *out->params);
        status = read_param(&it, &file->arena, &out->params[out->n_param++], err);
    }
    return status;
}

/* A null factor divides by the number of ranks; a null divisor does not divide. */
static enum status get_real(const struct json_at *at, const char *key, double otherwise,
                            double *out, struct err *err)
{
    *out = otherwise;
    return json_has(at, key) ? json_get_double(at, key, out, err) : STATUS_OK;
}

static enum status get_reduction(const struct json_at *at, const char *key, uint8_t *out,
                                 struct err *err)
{
    const char *word;
    if (!json_has(at, key))
        return STATUS_OK;
    enum status status = json_get_string(at, key, &word, err);
    if (status)
        return status;
    *out = (uint8_t)oracle_reduction_of(word);
    return *out < REDUCTION_N ? STATUS_OK : json_fail(at, err, "'%s' is no reduction", word);
}

static enum status read_question(const struct json_at *at, struct oracle_divide *out,
                                 struct err *err)
{
    const char *dtype = "";
    enum status status = json_get_string(at, "reduce_dtype", &dtype, err);

    out->dtype = (uint8_t)oracle_dtype_of(dtype);
    if (!status && out->dtype == DTYPE_N)
        status = json_fail(at, err, "'%s' is no dtype", dtype);
    if (!status)
        status = get_real(at, "factor", 0, &out->factor, err);
    if (!status)
        status = json_get_count(at, "shard", MAX_COUNT, &out->shard, err);
    if (!status)
        status = json_get_count(at, "replicate", MAX_COUNT, &out->replicate, err);
    return status ? status : json_get_bool(at, "force_sum", &out->force_sum, err);
}

static enum status read_answer(const struct json_at *at, struct oracle_divide *out, struct err *err)
{
    struct json_at it = json_first(at);
    while (it.node && strcmp(json_key(&it), "post") != 0)
        it = json_next(&it);
    out->has_divisors = it.node;
    out->has_divisions = json_has(at, "divisions");

    enum status status = get_real(at, "pre", 1, &out->pre, err);
    if (!status)
        status = get_real(at, "post", 1, &out->post, err);
    if (!status && out->has_divisions)
        status = json_get_u64(at, "divisions", 2, &out->divisions, err);
    if (!status)
        status = get_reduction(at, "reduce_scatter", &out->reduce_scatter, err);
    return status ? status : get_reduction(at, "all_reduce", &out->all_reduce, err);
}

enum status oracle_take_divide(const struct json_at *at, struct oracle_file *file,
                               struct oracle_case *out, struct err *err)
{
    (void)file;
    out->divide.stated = true;
    enum status status = read_question(at, &out->divide, err);
    return status ? status : read_answer(at, &out->divide, err);
}

static enum status get_moment(const struct json_at *at, enum oracle_moment *out, struct err *err)
{
    static const char *const moments[] = {"init", "forward", "backward", "optimizer", "zero_grad"};
    const char *word;
    enum status status = json_get_string(at, "moment", &word, err);
    if (status)
        return status;
    unsigned moment = 0;
    while (moment < MOMENT_N && strcmp(moments[moment], word) != 0)
        moment++;
    *out = (enum oracle_moment)moment;
    return moment < MOMENT_N ? STATUS_OK : json_fail(at, err, "'%s' is no moment", word);
}

/* Coefficient times size, over the kinds of parameters that a bound counts. */
static enum status read_bound(const struct json_at *at, const struct json_at *sizes, double *out,
                              struct err *err)
{
    static const char *const counted[] = {"sharded", "unsharded", "max_block", "other"};
    double elements = 0;

    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        double coefficient, size;
        enum status status = json_get_double(at, counted[i], &coefficient, err);
        if (!status)
            status = json_get_double(sizes, counted[i], &size, err);
        if (status)
            return status;
        elements += coefficient * size;
    }
    *out = elements * (double)dtype_bytes(DTYPE_FP32);
    return STATUS_OK;
}

static enum status read_peak(const struct json_at *at, const struct json_at *sizes,
                             struct oracle_peak *out, struct err *err)
{
    const char *statistic;
    double buffer_mb = 0, block = 0;
    enum status status = get_moment(at, &out->moment, err);
    if (!status)
        status = json_get_string(at, "statistic", &statistic, err);
    if (!status)
        status = read_bound(at, sizes, &out->bound_bytes, err);
    if (!status)
        status = json_get_double(at, "buffer_mb", &buffer_mb, err);
    if (!status)
        status = json_get_double(sizes, "max_block", &block, err);
    out->buffer_bytes = buffer_mb * 1e6;
    out->block_bytes = block * (double)dtype_bytes(DTYPE_FP32);
    out->is_current = !status && strcmp(statistic, "current") == 0;
    return status;
}

static enum status read_bounds(const struct json_at *at, const struct json_at *sizes,
                               struct oracle_file *file, struct oracle_case *out, struct err *err)
{
    enum status status = STATUS_OK;
    uint32_t cap = 0;

    for (struct json_at it = json_first(at); it.node && !status; it = json_next(&it)) {
        out->peaks =
            arena_grow(&file->arena, out->peaks, &cap, out->n_peak + 1, sizeof *out->peaks);
        status = read_peak(&it, sizes, &out->peaks[out->n_peak++], err);
    }
    return status;
}

enum status oracle_read_peaks(const struct json_at *at, struct oracle_file *file,
                              struct oracle_case *out, struct err *err)
{
    struct json_at peaks, sizes;

    if (!json_has(at, "peaks"))
        return STATUS_OK;
    enum status status = json_get(at, "peaks", &peaks, err);
    if (!status)
        status = json_get(at, "sizes", &sizes, err);
    return status ? status : read_bounds(&peaks, &sizes, file, out, err);
}
