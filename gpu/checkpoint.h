/*
 * Saving a run: its parameters, its optimizer's states and where it stood, in a folder of files.
 *
 *   parameters.safetensors  whole parameters by name, in the dtype of storage; of a tied weight one
 *   optimizer.safetensors   AdamW alone, of each parameter that is updated: NAME.step (FP32, [1]),
 *                           NAME.exp_avg and NAME.exp_avg_sq as the parameter is stored
 *   state.json              "unshard.checkpoint/1": struct checkpoint_state
 *
 * Nothing in them tells how the run was arranged, so that gpu/resume.h reads them under another
 * plan and world. Of system fsdp2 alone; numbers are little-endian, as the machines are.
 *
 * Invariant: DIR is there when all of it is. Until then its files lie in DIR.partial, at full size
 * from the beginning, and each rank writes its own rows of them in place.
 */
#ifndef GPU_CHECKPOINT_H
#define GPU_CHECKPOINT_H

#include "gpu/values.h"

struct executor; /* gpu/execute.h */

/* Where a run stands. */
struct checkpoint_state {
    uint64_t steps;     /* in all, skipped ones too */
    uint64_t sequences; /* that were trained with, on all ranks */
    uint64_t seed;      /* below 2^53: JSON holds no larger number exactly */
    bool adamw;         /* else SGD, which has no states */
    struct scaler_state scaler;
};
/* After so many more steps of the plan. */
void checkpoint_state_advance(struct checkpoint_state *state, const struct plan *plan,
                              uint64_t steps);

struct checkpoint_setup {
    const char *dir;
    const struct program *program; /* outlives the checkpoint */
    struct checkpoint_state state; /* at the end of the run; the scaler's is seen then */
};

/* A folder on its way. Computes places alone, so that every process of a run has the same one. */
struct checkpoint;
struct checkpoint *checkpoint_new(const struct checkpoint_setup *setup);

/*
 * By one process, before the others need it: DIR.partial with its files, their space reserved.
 * STATUS_INPUT where DIR or DIR.partial is there, or cannot be written; then nothing is left of it.
 */
enum status checkpoint_create(struct checkpoint *checkpoint, struct err *err);

/*
 * By each rank when it has done its last step: the rows that it holds, where it is in the first
 * replica; rank 0 adds what all have in common. They are on the disk when it returns.
 */
enum status checkpoint_write_rank(const struct checkpoint *checkpoint, uint32_t rank,
                                  struct executor *executor, struct err *err);

/* By who created it, after all ranks have written: DIR is there. On failure DIR.partial is kept. */
enum status checkpoint_commit(struct checkpoint *checkpoint, struct err *err);

/* Removes the files of what this process created and never committed. */
void checkpoint_free(struct checkpoint *checkpoint);

#endif
