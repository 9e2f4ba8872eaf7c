/*
 * Where things are: buffers among a task's accesses, and the addresses of their members.
 */
#include "gpu/bind_inner.h"

char *bind_address(struct bind *bind, uint32_t step, uint32_t expanded_id)
{
    const struct place *place = placement_place(bind->setup.placement, step, expanded_id);

    if (!place || place->segment == UINT32_MAX)
        return NULL;
    return bind->setup.device->segment_base(bind->setup.device_self, place->segment) +
           place->offset;
}

char *binding_member(const struct binding *of, uint32_t buffer, uint32_t member)
{
    return bind_address(of->bind, of->launch->step, binding_buffer(of, buffer)->expanded + member);
}

uint32_t binding_find(const struct binding *of, enum buffer_role role, uint32_t n)
{
    const struct access *accesses = &of->bind->program->accesses[of->task->access];

    for (uint32_t i = 0; i < of->task->n_access; i++)
        if (binding_buffer(of, accesses[i].buffer)->role == role && n-- == 0)
            return accesses[i].buffer;
    return NO_BUFFER;
}

uint32_t binding_source(const struct binding *of)
{
    const struct access *accesses = &of->bind->program->accesses[of->task->access];

    for (uint32_t i = 0; i < of->task->n_access; i++)
        if (accesses[i].mode == ACCESS_READ)
            return accesses[i].buffer;
    return NO_BUFFER;
}

uint32_t binding_target(const struct binding *of, enum access_mode *mode)
{
    const struct access *accesses = &of->bind->program->accesses[of->task->access];

    for (uint32_t i = of->task->n_access; i-- > 0;)
        if (accesses[i].mode != ACCESS_READ) {
            *mode = (enum access_mode)accesses[i].mode;
            return accesses[i].buffer;
        }
    return NO_BUFFER;
}
