/*
 * The end of a step on a CUDA device: norms, clipping, scaling, optimizers, the state; C calls this.
 *
 * Each call is a few launches in stream order, the same each time; what an element becomes is
 * gpu/step_body.h's. Lists are the host's, what they point to is the device's. Errors: STATUS_RUN,
 * with what CUDA says.
 */
#ifndef GPU_CUDA_STEP_H
#define GPU_CUDA_STEP_H

#include "gpu/work.h"
#include "src/err.h"

struct CUstream_st; /* a cudaStream_t points to it */

/* What WORK_SQUARES and WORK_UPDATE need. */
uint64_t cuda_squares_scratch_bytes(const struct work_squares *squares);
uint64_t cuda_update_scratch_bytes(const struct work_update *update);

enum status cuda_squares(const struct work_squares *squares, const struct step_state *state,
                         void *scratch, struct CUstream_st *stream, struct err *err);
enum status cuda_scale(const struct work_scale *scale, struct CUstream_st *stream, struct err *err);
enum status cuda_update(const struct work_update *update, struct step_state *state, void *scratch,
                        struct CUstream_st *stream, struct err *err);
enum status cuda_loss(float *to, const struct step_state *state, struct CUstream_st *stream,
                      struct err *err);
enum status cuda_verdict(const float *verdict, struct step_state *state, struct CUstream_st *stream,
                         struct err *err);
/* result: where the device can write. */
enum status cuda_step_end(struct step_state *state, struct step_result *result,
                          struct CUstream_st *stream, struct err *err);

/* For debugging: the stream does nothing for so long. */
enum status cuda_delay(uint64_t ns, struct CUstream_st *stream, struct err *err);

#endif
