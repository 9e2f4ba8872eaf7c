/*
 * A plan as Python: a module whose apply(model, mesh) calls fully_shard so that PyTorch runs that plan.
 *
 * It is made of the plan alone; the model's code is the reader's, and has to call its modules as this
 * program does. What PyTorch has no call for is never left out in silence: it stands as a comment in the
 * code, and is a warning. Invariant: the text compiles, and apply() makes exactly the plan's units
 * (tests/emit_torch.sh).
 */
#ifndef SRC_CLI_EMIT_TORCH_H
#define SRC_CLI_EMIT_TORCH_H

#include "src/cli/plan_row.h"
#include "src/cli/prepare.h"

/*
 * prepared: with the plan of the row. STATUS_USAGE for a plan of FSDP1, which has no fully_shard.
 */
enum status emit_torch(const struct prepared *prepared, const struct plan_row *row,
                       struct arena *arena, struct text *out, struct text *warnings,
                       struct err *err);

#endif
