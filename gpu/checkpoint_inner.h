/*
 * What writing and reading of checkpoints share; see checkpoint.h. Internal to gpu/checkpoint*.c
 * and gpu/resume.c.
 */
#ifndef GPU_CHECKPOINT_INNER_H
#define GPU_CHECKPOINT_INNER_H

#include "gpu/checkpoint.h"
#include "src/safetensors.h"

/* X(ENUM, name): files of tensors */
#define CHECKPOINT_FILES(X)                 \
    X(PARAMETERS, "parameters.safetensors") \
    X(OPTIMIZER, "optimizer.safetensors")

enum checkpoint_file {
#define X(id, name) FILE_##id,
    CHECKPOINT_FILES(X)
#undef X
        CHECKPOINT_FILE_N
};
const char *checkpoint_file_name(enum checkpoint_file file);
#define CHECKPOINT_STATE_NAME "state.json"

/* What AdamW keeps of a parameter, in the order in which a unit's buffer has them. X(ENUM, name) */
#define CHECKPOINT_MOMENTS(X) \
    X(STEP, "step")           \
    X(EXP_AVG, "exp_avg")     \
    X(EXP_AVG_SQ, "exp_avg_sq")

enum checkpoint_moment {
#define X(id, name) MOMENT_##id,
    CHECKPOINT_MOMENTS(X)
#undef X
        CHECKPOINT_MOMENT_N
};
/* "NAME.exp_avg" */
const char *checkpoint_moment_name(const struct param *param, enum checkpoint_moment moment,
                                   struct arena *arena);

/* The optimizer has moments of it: what is trained, and what is reduced as zeros. */
static inline bool checkpoint_is_updated(const struct plan *plan, uint32_t param)
{
    return plan->policy[param].has_grad || plan_fills_zeros(plan, &plan->policy[param]);
}

/* checkpoint_state.c. model: the name it was opened by, for people. */
void checkpoint_state_print(const struct checkpoint_state *state, const char *model,
                            struct text *out);
enum status checkpoint_state_read(const char *path, struct checkpoint_state *out, struct err *err);

struct checkpoint_tensors {
    struct tensor_list list;
    struct safetensors_head head;
};

struct checkpoint {
    struct checkpoint_setup setup;
    struct arena arena;
    const char *dir, *partial;
    /* By parameter; three a parameter that is updated, from moments[parameter] on. */
    struct checkpoint_tensors files[CHECKPOINT_FILE_N];
    uint32_t *moments;
    bool created; /* and not yet committed */
};

static inline const char *checkpoint_partial_path(const struct checkpoint *checkpoint,
                                                  const char *name, struct arena *arena)
{
    return arena_printf(arena, "%s/%s", checkpoint->partial, name);
}

static inline bool checkpoint_has_file(const struct checkpoint *checkpoint, int file)
{
    return checkpoint->files[file].list.n > 0;
}

/* All bytes, or STATUS_INPUT with the path. */
enum status checkpoint_write_at(int fd, const char *path, const void *from, uint64_t bytes,
                                uint64_t at_bytes, struct err *err);
/* STATUS_INPUT "cannot write 'PATH': " and errno's text. */
enum status checkpoint_fail_write(const char *path, struct err *err);

/* checkpoint_rank.c: a rank's memory by address, and the scaler at the end. */
struct checkpoint_memory {
    void *context;
    char *(*member)(void *context, uint32_t buffer, uint32_t member);
    enum status (*read)(void *context, void *to, const void *from, uint64_t bytes, struct err *err);
    struct scaler_state scaler;
};
enum status checkpoint_write_memory(const struct checkpoint *checkpoint, uint32_t rank,
                                    const struct checkpoint_memory *memory, struct err *err);

#endif
