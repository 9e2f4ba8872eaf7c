/*
 * A device of one rank to time work on, by its own stamps: what `calibrate` and the device check stand
 * on, the same for every device.
 *
 * Work runs on a stream, as in a step: so many in a row, that the host is ahead and the ends of a stamp
 * weigh little. Medians, since a busy machine only ever adds, and a best time is not what a step sees.
 * Memory is one segment that is given out piece by piece.
 */
#ifndef SRC_CLI_TIMED_DEVICE_H
#define SRC_CLI_TIMED_DEVICE_H

#include "gpu/device.h"
#include "gpu/devices.h"
#include "src/arena.h"

struct timed_device {
    const struct device_ops *ops;
    void *self;
    struct step_state *state; /* the device's */
    char *base;
    uint64_t bytes, used_bytes;
    struct arena arena; /* of the host, until the next reset */
};

/* One rank of setup, with so much memory. To be closed on every path. */
enum status timed_open(const struct device_ops *ops, const struct device_setup *setup,
                       uint64_t bytes, struct timed_device *out, struct err *err);
void timed_close(struct timed_device *timed);

/* Memory on a border of 512 bytes; STATUS_RUN where that is more than there is. */
enum status timed_take(struct timed_device *timed, uint64_t bytes, void **out, struct err *err);
/* All memory is free again, and nothing is prepared any more. */
void timed_reset(struct timed_device *timed);

/* What fill yields, piece by piece, each told its offset; from host memory; and back. All wait. */
typedef enum status timed_fill(void *context, uint32_t step, uint64_t offset, void *to,
                               uint64_t bytes, struct err *err);
enum status timed_give(struct timed_device *timed, void *to, uint64_t bytes, timed_fill *fill,
                       void *context, struct err *err);
enum status timed_put(struct timed_device *timed, void *to, const void *from, uint64_t bytes,
                      struct err *err);
enum status timed_get(struct timed_device *timed, void *to, const void *from, uint64_t bytes,
                      struct err *err);

/* Runs prepared work once, and waits. */
enum status timed_do(struct timed_device *timed, const struct work *work, struct err *err);
/* Seconds of one of works [n_work], which were prepared and run in a row on stream C. */
enum status timed_run(struct timed_device *timed, const struct work *works, uint32_t n_work,
                      double *seconds, struct err *err);
/* The host's seconds to issue one of them. */
enum status timed_issue(struct timed_device *timed, const struct work *work, double *seconds,
                        struct err *err);

#endif
