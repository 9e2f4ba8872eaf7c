/*
 * Starting from a checkpoint: its numbers as a run's values, under any plan and world.
 *
 * All files are checked when they are opened, so that a run which begins has what it needs; data
 * are read when and where a rank asks for them. Weights may be another program's: other dtypes are
 * cast to what the plan stores, and names may lack the family's prefix.
 */
#ifndef GPU_RESUME_H
#define GPU_RESUME_H

#include "gpu/checkpoint.h"

struct resume;

/*
 * STATUS_INPUT with file and place: a file that is missing, cut short or not as checkpoint.h says;
 * a parameter of the model that is missing or of another shape; moments of another optimizer, or
 * of other parameters than this plan updates. The plan outlives it. Forked processes may share it.
 */
enum status resume_open(const char *dir, const struct plan *plan, bool adamw, struct resume **out,
                        struct err *err);
void resume_free(struct resume *resume);

const struct checkpoint_state *resume_state(const struct resume *resume);

/* A rank's values; tokens go on where the checkpoint ends. Plan and rank of seeded are the
   caller's, all else is set. */
struct resumed_values {
    const struct resume *resume;
    struct seeded_values seeded;
    struct values tokens;
};
struct values values_resumed(struct resumed_values *context);

#endif
