/*
 * Copies, packing, the optimizer and launches of a device; see calibrate.h. Bytes are those that are
 * read and those that are written.
 */
#include "src/cli/calibrate.h"

enum { TENSORS = 16 };

/* Memory that holds numbers, not what was there before: NaN and denormals take other times. */
static enum status take_zeros(struct timed_device *timed, uint64_t bytes, void **out,
                              struct err *err)
{
    enum status status = timed_take(timed, bytes, out, err);
    const struct work work = {.kind = WORK_FILL, .is.fill = {.to = *out, .bytes = bytes}};
    return status == STATUS_OK ? timed_do(timed, &work, err) : status;
}

/* ---- copies --------------------------------------------------------------------------------------- */

static enum status time_copy(struct timed_device *timed, uint64_t bytes, double *bytes_per_s,
                             struct err *err)
{
    void *from = NULL, *to = NULL;
    double seconds = 0;

    timed_reset(timed);
    enum status status = take_zeros(timed, bytes, &from, err);
    if (status == STATUS_OK)
        status = take_zeros(timed, bytes, &to, err);
    const struct work work = {.kind = WORK_COPY, .n = 1, .is.copy = {to, from, bytes}};
    if (status == STATUS_OK)
        status = timed_run(timed, &work, 1, &seconds, err);
    *bytes_per_s = 2 * (double)bytes / seconds;
    return status;
}

/* Tensors of one type, which lie one behind the other; bytes: of an FP32 side. */
static void build_table(enum dtype from, enum dtype to, uint64_t bytes, struct arena *arena,
                        struct pack_table *out)
{
    const uint64_t n = bytes / dtype_bytes(DTYPE_FP32) / TENSORS;
    struct pack_segment segments[TENSORS];

    for (uint64_t i = 0; i < TENSORS; i++)
        segments[i] = (struct pack_segment){.from = i * n * dtype_bytes(from),
                                            .to = i * n * dtype_bytes(to),
                                            .n = n,
                                            .from_dtype = (uint8_t)from,
                                            .to_dtype = (uint8_t)to};
    pack_table_build(segments, TENSORS, pack_pick_tile(bytes), arena, out);
}

static enum status time_packing(struct timed_device *timed, enum dtype from_dtype,
                                enum dtype to_dtype, uint64_t bytes, double *seconds,
                                uint64_t *moved_bytes, struct err *err)
{
    void *from = NULL, *to = NULL;
    struct pack_table table;

    timed_reset(timed);
    build_table(from_dtype, to_dtype, bytes, &timed->arena, &table);
    *moved_bytes = table.bytes_read + table.bytes_written;
    enum status status = take_zeros(timed, bytes, &from, err);
    if (status == STATUS_OK)
        status = take_zeros(timed, bytes, &to, err);
    const struct work_pack pack = {&table, from, to};
    struct work work = {.kind = WORK_PACK, .n = 1, .is.packs = &pack};
    if (status == STATUS_OK)
        status = timed->ops->prepare(timed->self, &work, err);
    return status == STATUS_OK ? timed_run(timed, &work, 1, seconds, err) : status;
}

static enum status time_packings(struct timed_device *timed, uint64_t bytes, double out[PACKING_N],
                                 struct err *err)
{
    static const struct {
        uint8_t from, to;
    } packings[PACKING_N] = {
#define X(member, from, to) [PACKING_##member] = {DTYPE_##from, DTYPE_##to},
        CALIBRATE_PACKINGS(X)
#undef X
    };
    enum status status = STATUS_OK;

    for (int i = 0; i < PACKING_N && status == STATUS_OK; i++) {
        uint64_t moved_bytes = 0;
        double seconds = 0;
        status = time_packing(timed, (enum dtype)packings[i].from, (enum dtype)packings[i].to,
                              bytes, &seconds, &moved_bytes, err);
        out[i] = (double)moved_bytes / seconds;
    }
    return status;
}

/* ---- the optimizer -------------------------------------------------------------------------------- */

/* AdamW over one parameter reads four numbers and writes three. */
static enum status time_update(struct timed_device *timed, uint64_t n, double *bytes_per_s,
                               struct err *err)
{
    static const struct optimizer_options options = {
        .adamw = true, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    void *tensors[4] = {NULL}, *step = NULL;
    double seconds = 0;

    timed_reset(timed);
    enum status status = take_zeros(timed, sizeof(float), &step, err);
    for (int i = 0; i < 4 && status == STATUS_OK; i++)
        status = take_zeros(timed, n * sizeof(float), &tensors[i], err);
    const struct update update = {{tensors[0], n, DTYPE_FP32},
                                  {tensors[1], n, DTYPE_FP32},
                                  {tensors[2], n, DTYPE_FP32},
                                  {tensors[3], n, DTYPE_FP32},
                                  step};
    struct work work = {.kind = WORK_UPDATE,
                        .n = 1,
                        .state = timed->state,
                        .is.update = {.list = &update, .n_list = 1, .options = &options}};
    if (status == STATUS_OK)
        status = timed->ops->prepare(timed->self, &work, err);
    if (status == STATUS_OK)
        status = timed_run(timed, &work, 1, &seconds, err);
    *bytes_per_s = 7 * sizeof(float) * (double)n / seconds;
    return status;
}

/* ---- launches ------------------------------------------------------------------------------------- */

/* A table of one small tensor. */
static enum status time_launches(struct timed_device *timed, struct calibrate_numbers *out,
                                 struct err *err)
{
    struct pack_segment segment = {.n = 4, .from_dtype = DTYPE_FP32, .to_dtype = DTYPE_FP32};
    struct pack_table table;
    void *at = NULL;

    timed_reset(timed);
    pack_table_build(&segment, 1, pack_pick_tile(0), &timed->arena, &table);
    enum status status = take_zeros(timed, 64, &at, err);
    const struct work_pack pack = {&table, at, (char *)at + 32};
    struct work work = {.kind = WORK_PACK, .n = 1, .is.packs = &pack};
    if (status == STATUS_OK)
        status = timed->ops->prepare(timed->self, &work, err);
    if (status == STATUS_OK)
        status = timed_run(timed, &work, 1, &out->launch_s, err);
    return status == STATUS_OK ? timed_issue(timed, &work, &out->issue_s, err) : status;
}

enum status calibrate_copies(struct timed_device *timed, const struct calibrate_sizes *sizes,
                             struct calibrate_numbers *out, struct err *err)
{
    enum status status = time_copy(timed, sizes->copy_bytes, &out->copy_bytes_per_s, err);

    if (status == STATUS_OK)
        status = time_packings(timed, sizes->pack_bytes, out->pack_bytes_per_s, err);
    if (status == STATUS_OK)
        status = time_update(timed, sizes->updated, &out->update_bytes_per_s, err);
    return status == STATUS_OK ? time_launches(timed, out, err) : status;
}
