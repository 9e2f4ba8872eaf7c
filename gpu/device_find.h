/*
 * The devices that this build has. The only place that knows whether CUDA was built in.
 */
#ifndef GPU_DEVICE_FIND_H
#define GPU_DEVICE_FIND_H

#include "gpu/device.h"

/* "host", "cuda". STATUS_DEVICE where it was not built in; whether the machine has one shows when it
   is opened. */
enum status device_find(const char *name, const struct device_ops **out, struct err *err);

#endif
