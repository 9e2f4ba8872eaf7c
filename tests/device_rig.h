/*
 * A host device for tests, and work that calls back into the test on the stream's thread.
 */
#ifndef TESTS_DEVICE_RIG_H
#define TESTS_DEVICE_RIG_H

#include "gpu/device.h"

enum { RIG_MAX_WORK = 65536 };

/* What a test does in place of a kernel: called on the stream, in its order. */
typedef enum status rig_call(void *context, uint64_t what, struct err *err);

struct device_rig {
    void *device;
    const struct device_ops *ops;
    struct device_setup setup;
    struct work *works; /* [RIG_MAX_WORK]; those in use stay where they are */
    uint32_t n_work;
    rig_call *call;
    void *context;
    uint32_t one[1]; /* the ranks of groups of one */
};

/* One rank, groups of one in SHARD and REDUCE, 64 events, 5 s. Change setup, then open. */
void device_rig_init(struct device_rig *rig, rig_call *call, void *context);
void device_rig_open(struct device_rig *rig); /* or the end of the test */
void device_rig_release(struct device_rig *rig);

/* call(context, what) on the stream; task is what, stamp may be NULL. */
void rig_submit(struct device_rig *rig, enum stream stream, uint64_t what, struct stamp *stamp);
/* An all-gather of n floats in place, which a group of one has nothing to move for. */
void rig_gather(struct device_rig *rig, enum stream stream, enum comm comm, float *at, uint64_t n,
                struct stamp *stamp);
/* The end of the test where they fail. */
void rig_record(struct device_rig *rig, uint32_t event, enum stream stream);
void rig_wait(struct device_rig *rig, uint32_t event, enum stream stream);
void rig_drain(struct device_rig *rig);

/* Of the next work; the rest of it is the caller's to fill in. */
struct work *rig_work(struct device_rig *rig, enum work_kind kind);
enum status rig_try(struct device_rig *rig, enum stream stream, const struct work *work,
                    uint32_t task, struct stamp *stamp, struct err *err);

#endif
