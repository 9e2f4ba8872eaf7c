/*
 * Devices by name; see device_find.h.
 */
#include "gpu/device_find.h"

#include <string.h>

static const struct device_ops *const devices[] = {
    &host_device_ops,
#ifdef HAVE_CUDA
    &cuda_device_ops,
#endif
};

enum status device_find(const char *name, const struct device_ops **out, struct err *err)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (strcmp(devices[i]->name, name) != 0)
            continue;
        *out = devices[i];
        return STATUS_OK;
    }
    return err_set(err, STATUS_DEVICE,
                   "this build has no device %s; take --device host, or configure --with-%s", name,
                   name);
}
