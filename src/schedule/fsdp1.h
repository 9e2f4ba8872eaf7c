/*
 * FSDP1 (FullyShardedDataParallel): plan and layout become a program, to be simulated.
 *
 * Frees are left to the allocator by RECORD_STREAM, so that memory depends on times and no address
 * is known before it runs: it is not placed, and not run on devices. The hooks are those of release
 * 2.11 with use_orig_params, as tests/oracle has recorded them; what the options say is struct
 * fsdp1_options of src/plan.h.
 */
#ifndef SRC_SCHEDULE_FSDP1_H
#define SRC_SCHEDULE_FSDP1_H

#include "src/program.h"

void schedule_fsdp1(const struct plan *plan, const struct layout *layout,
                    const struct body_table *bodies, struct arena *arena, struct program *out);

#endif
