/*
 * A checkpoint of what an executor has on its device; see checkpoint.h. All else of checkpoints
 * knows addresses alone.
 */
#include "gpu/checkpoint_inner.h"
#include "gpu/execute.h"

static char *member_of_executor(void *context, uint32_t buffer, uint32_t member)
{
    return executor_member(context, buffer, member);
}

enum status checkpoint_write_rank(const struct checkpoint *checkpoint, uint32_t rank,
                                  struct executor *executor, struct err *err)
{
    const struct checkpoint_memory memory = {
        .context = executor, .member = member_of_executor, .scaler = executor_scaler(executor)};
    return checkpoint_write_memory(checkpoint, rank, &memory, err);
}
