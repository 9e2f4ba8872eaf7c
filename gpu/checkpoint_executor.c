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

static enum status read_from_executor(void *context, void *to, const void *from, uint64_t bytes,
                                      struct err *err)
{
    return executor_read(context, to, from, bytes, err);
}

enum status checkpoint_write_rank(const struct checkpoint *checkpoint, uint32_t rank,
                                  struct executor *executor, struct err *err)
{
    struct checkpoint_memory memory = {
        .context = executor, .member = member_of_executor, .read = read_from_executor};
    const enum status status = executor_scaler(executor, &memory.scaler, err);

    return status == STATUS_OK ? checkpoint_write_memory(checkpoint, rank, &memory, err) : status;
}
