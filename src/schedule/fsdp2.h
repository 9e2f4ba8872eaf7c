/*
 * FSDP2 (fully_shard), also with replicas and a second mesh: plan and layout become a program.
 *
 * Of any behavior. Follows pseudo-code (a) of spec FSDP2; anything that could be decided elsewhere
 * (bytes, bodies, addresses, times) is.
 */
#ifndef SRC_SCHEDULE_FSDP2_H
#define SRC_SCHEDULE_FSDP2_H

#include "src/program.h"

void schedule_fsdp2(const struct plan *plan, const struct layout *layout,
                    const struct body_table *bodies, struct arena *arena, struct program *out);

/*
 * The steady step alone, for a search that looks at nothing else: section init bears all that lives
 * for the run and launches nothing, section first is empty.
 */
void schedule_fsdp2_steady(const struct plan *plan, const struct layout *layout,
                           const struct body_table *bodies, struct arena *arena,
                           struct program *out);

#endif
