/*
 * Timing work on a device; see timed_device.h. Knows nothing of what the work is.
 */
#include "src/cli/timed_device.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/bell.h"

enum { RUNS = 9, FEW_RUNS = 3, MOST_IN_A_ROW = 64, ISSUED = 2000, ALIGN_BYTES = 512 };
/* A row should take as long: many times what a stamp is off. One that takes so much longer is repeated
   a few times only. */
#define ROW_NS INT64_C(300000)
#define SLOW_NS INT64_C(200000000)

static enum status map(struct timed_device *timed, struct err *err)
{
    const struct segment_op op = {.act = SEGMENT_RESERVE, .bytes = timed->bytes};
    const enum status status = timed->ops->segment(timed->self, &op, err);

    if (status == STATUS_OK)
        timed->base = timed->ops->segment_base(timed->self, op.segment);
    return status;
}

enum status timed_open(const struct device_ops *ops, const struct device_setup *setup,
                       uint64_t bytes, struct timed_device *out, struct err *err)
{
    const struct step_state first = {
        .grad_scale = 1, .loss_factor = 1, .loss_scale = 1, .microbatches = 1};

    *out = (struct timed_device){.ops = ops, .self = ops->make(), .bytes = bytes};
    arena_init(&out->arena);
    enum status status = ops->open(out->self, setup, err);
    if (status == STATUS_OK)
        status = ops->state(out->self, &first, &out->state, err);
    return status == STATUS_OK && bytes > 0 ? map(out, err) : status;
}

void timed_close(struct timed_device *timed)
{
    timed->ops->close(timed->self);
    timed->ops->free(timed->self);
    arena_release(&timed->arena);
    *timed = (struct timed_device){0};
}

enum status timed_take(struct timed_device *timed, uint64_t bytes, void **out, struct err *err)
{
    const uint64_t rounded = (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;

    if (rounded > timed->bytes - timed->used_bytes)
        return err_set(err, STATUS_RUN, "%llu bytes are needed on the device beside %llu of %llu",
                       (unsigned long long)bytes, (unsigned long long)timed->used_bytes,
                       (unsigned long long)timed->bytes);
    *out = timed->base + timed->used_bytes;
    timed->used_bytes += rounded;
    return STATUS_OK;
}

void timed_reset(struct timed_device *timed)
{
    timed->ops->forget(timed->self);
    timed->used_bytes = 0;
    arena_reset(&timed->arena);
}

/* ---- moving bytes ------------------------------------------------------------------------------- */

static enum status give_bytes(void *context, uint32_t step, uint64_t what, void *to, uint64_t bytes,
                              struct err *err)
{
    (void)step, (void)err;
    memcpy(to, (const char *)context + what, bytes);
    return STATUS_OK;
}

/* In pieces, since a device may copy them once more on its way. */
enum status timed_give(struct timed_device *timed, void *to, uint64_t bytes, timed_fill *fill,
                       void *context, struct err *err)
{
    const uint64_t piece_bytes = (uint64_t)64 << 20;
    enum status status = STATUS_OK;

    for (uint64_t at = 0; at < bytes && status == STATUS_OK; at += piece_bytes) {
        const uint64_t left_bytes = bytes - at;
        const struct work work = {
            .kind = WORK_GIVE,
            .is.give = {.to = (char *)to + at,
                        .bytes = left_bytes < piece_bytes ? left_bytes : piece_bytes,
                        .fill = fill,
                        .context = context,
                        .what = at}};
        status = timed_do(timed, &work, err);
    }
    return status;
}

enum status timed_put(struct timed_device *timed, void *to, const void *from, uint64_t bytes,
                      struct err *err)
{
    return timed_give(timed, to, bytes, give_bytes, (void *)(uintptr_t)from, err);
}

enum status timed_get(struct timed_device *timed, void *to, const void *from, uint64_t bytes,
                      struct err *err)
{
    const enum status status = timed->ops->drain(timed->self, err);
    return status == STATUS_OK ? timed->ops->read(timed->self, to, from, bytes, err) : status;
}

/* ---- running it ---------------------------------------------------------------------------------- */

enum status timed_do(struct timed_device *timed, const struct work *work, struct err *err)
{
    const struct submission submission = {.work = work};
    const enum status status = timed->ops->submit(timed->self, STREAM_C, &submission, err);
    return status == STATUS_OK ? timed->ops->drain(timed->self, err) : status;
}

/* One stamp from the first of them to the last. */
static enum status run_row(struct timed_device *timed, const struct work *works, uint32_t n_work,
                           uint32_t repeats, int64_t *ns, struct err *err)
{
    const uint32_t n = n_work * repeats;
    struct stamp stamp = {0};
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < n && status == STATUS_OK; i++) {
        const unsigned parts = (i == 0 ? STAMP_START : 0u) | (i + 1 == n ? STAMP_END : 0u);
        const struct submission submission = {
            .work = &works[i % n_work], .parts = (uint8_t)parts, .stamp = &stamp};
        status = timed->ops->submit(timed->self, STREAM_C, &submission, err);
    }
    if (status == STATUS_OK)
        status = timed->ops->drain(timed->self, err);
    *ns = stamp.end_ns - stamp.start_ns;
    return status;
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The first row warms up, the second says how long one is. */
static enum status choose_repeats(struct timed_device *timed, const struct work *works,
                                  uint32_t n_work, uint32_t *repeats, int *runs, struct err *err)
{
    int64_t ns = 0;
    enum status status = run_row(timed, works, n_work, 1, &ns, err);

    if (status == STATUS_OK)
        status = run_row(timed, works, n_work, 1, &ns, err);
    *runs = ns > SLOW_NS ? FEW_RUNS : RUNS;
    *repeats = ns * MOST_IN_A_ROW <= ROW_NS ? MOST_IN_A_ROW : (uint32_t)(1 + ROW_NS / ns);
    return status;
}

enum status timed_run(struct timed_device *timed, const struct work *works, uint32_t n_work,
                      double *seconds, struct err *err)
{
    int64_t times_ns[RUNS];
    uint32_t repeats = 1;
    int runs = RUNS;
    enum status status = choose_repeats(timed, works, n_work, &repeats, &runs, err);

    for (int i = 0; i < runs && status == STATUS_OK; i++)
        status = run_row(timed, works, n_work, repeats, &times_ns[i], err);
    if (status != STATUS_OK)
        return status;
    qsort(times_ns, (size_t)runs, sizeof *times_ns, compare_ns);
    *seconds = (double)times_ns[runs / 2] * 1e-9 / (n_work * repeats);
    return STATUS_OK;
}

static enum status issue_row(struct timed_device *timed, const struct work *work, int64_t *ns,
                             struct err *err)
{
    const struct submission submission = {.work = work};
    const int64_t begin_ns = bell_now_ns();
    enum status status = STATUS_OK;

    for (int i = 0; i < ISSUED && status == STATUS_OK; i++)
        status = timed->ops->submit(timed->self, STREAM_C, &submission, err);
    *ns = bell_now_ns() - begin_ns;
    return status == STATUS_OK ? timed->ops->drain(timed->self, err) : status;
}

enum status timed_issue(struct timed_device *timed, const struct work *work, double *seconds,
                        struct err *err)
{
    int64_t times_ns[RUNS];
    enum status status = STATUS_OK;

    for (int i = 0; i < RUNS && status == STATUS_OK; i++)
        status = issue_row(timed, work, &times_ns[i], err);
    if (status != STATUS_OK)
        return status;
    qsort(times_ns, RUNS, sizeof *times_ns, compare_ns);
    *seconds = (double)times_ns[RUNS / 2] * 1e-9 / ISSUED;
    return STATUS_OK;
}
