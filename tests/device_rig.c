/*
 * A host device for tests: set up, opened, and given work one line at a time.
 */
#include "tests/device_rig.h"

#include <stdlib.h>

#include "tests/tap.h"

void device_rig_init(struct device_rig *rig, rig_call *call, void *context)
{
    *rig = (struct device_rig){
        .device = host_device_ops.make(),
        .ops = &host_device_ops,
        .setup = {.ranks = 1, .n_event = 64, .timeout_ns = 5000000000},
        .works = calloc(RIG_MAX_WORK, sizeof(*rig->works)),
        .call = call,
        .context = context,
    };
    const struct comm_group alone = {.n = 1, .ranks = rig->one};
    rig->setup.groups[COMM_SHARD] = rig->setup.groups[COMM_REDUCE] = alone;
}

void device_rig_open(struct device_rig *rig)
{
    struct err err = {0};
    if (rig->ops->open(rig->device, &rig->setup, &err) != STATUS_OK)
        tap_bail(err.text);
}

void device_rig_release(struct device_rig *rig)
{
    rig->ops->close(rig->device);
    rig->ops->free(rig->device);
    free(rig->works);
}

struct work *rig_work(struct device_rig *rig, enum work_kind kind)
{
    struct work *work = &rig->works[rig->n_work++ % RIG_MAX_WORK];
    *work = (struct work){.kind = (uint8_t)kind};
    return work;
}

static enum status call_back(void *context, uint32_t step, uint64_t what, void *to, uint64_t bytes,
                             struct err *err)
{
    const struct device_rig *rig = context;
    (void)step, (void)to, (void)bytes;
    return rig->call(rig->context, what, err);
}

enum status rig_try(struct device_rig *rig, enum stream stream, const struct work *work,
                    uint32_t task, struct stamp *stamp, struct err *err)
{
    const struct submission submission = {
        .work = work, .task = task, .parts = STAMP_START | STAMP_END, .stamp = stamp};
    return rig->ops->submit(rig->device, stream, &submission, err);
}

static void must(enum status status, const struct err *err)
{
    if (status != STATUS_OK)
        tap_bail(err->text);
}

void rig_submit(struct device_rig *rig, enum stream stream, uint64_t what, struct stamp *stamp)
{
    struct work *work = rig_work(rig, WORK_GIVE);
    struct err err = {0};
    work->is.give = (struct work_give){.fill = call_back, .context = rig, .what = what};
    must(rig_try(rig, stream, work, (uint32_t)what, stamp, &err), &err);
}

void rig_gather(struct device_rig *rig, enum stream stream, enum comm comm, float *at, uint64_t n,
                struct stamp *stamp)
{
    struct work *work = rig_work(rig, WORK_COLLECTIVE);
    struct err err = {0};
    work->is.collective = (struct work_collective){
        .kind = TASK_ALL_GATHER,
        .comm = (uint8_t)comm,
        .dtype = DTYPE_FP32,
        .elements = n,
        .send = at,
        .recv = at,
    };
    must(rig_try(rig, stream, work, 0, stamp, &err), &err);
}

void rig_record(struct device_rig *rig, uint32_t event, enum stream stream)
{
    struct err err = {0};
    must(rig->ops->record(rig->device, event, stream, &err), &err);
}

void rig_wait(struct device_rig *rig, uint32_t event, enum stream stream)
{
    struct err err = {0};
    must(rig->ops->wait(rig->device, event, stream, &err), &err);
}

void rig_drain(struct device_rig *rig)
{
    struct err err = {0};
    must(rig->ops->drain(rig->device, &err), &err);
}
