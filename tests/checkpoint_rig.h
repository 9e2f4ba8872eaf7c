#ifndef TESTS_CHECKPOINT_RIG_H
#define TESTS_CHECKPOINT_RIG_H
/*
 * Ranks without a device: memory as a run leaves it, each number told by its place in the model,
 * and cut here by torch's rule, index by index, not by the product's rows.
 */
#include "gpu/checkpoint_inner.h"
#include "gpu/resume.h"
#include "tests/make.h"

/* Of a parameter (which -1) or its moment 0 or 1: whole numbers below 251, exact in any dtype. */
float checkpoint_rig_value(uint32_t param, int which, uint64_t element);
float checkpoint_rig_updates(uint32_t param);

/* What a rank has at the end. Padding is filled with what nobody should see again. In the arena. */
struct checkpoint_memory checkpoint_rig_memory(const struct made *made, uint32_t rank,
                                               struct arena *arena);

/* The whole of a run's part: new, create, each rank, commit. */
enum status checkpoint_rig_save(const struct made *made, const char *dir,
                                const struct checkpoint_state *state, struct err *err);

/* Numbers that do not come back as they should, read whole and in pieces that the seed draws. */
uint64_t checkpoint_rig_wrong(const struct made *made, struct resume *resume, uint64_t *random);

/* Whether the path is there, and a folder with all in it gone. */
bool checkpoint_rig_exists(const char *path);
void checkpoint_rig_remove(const char *dir);

#endif
