/*
 * Systems and their schedules; see system.h.
 */
#include "src/schedule/system.h"

#include "src/schedule/fsdp1.h"
#include "src/schedule/fsdp2.h"

void schedule_program(const struct plan *plan, const struct layout *layout,
                      const struct body_table *bodies, struct arena *arena, struct program *out)
{
    if (plan->options.system == SYSTEM_FSDP1)
        schedule_fsdp1(plan, layout, bodies, arena, out);
    else
        schedule_fsdp2(plan, layout, bodies, arena, out);
}
