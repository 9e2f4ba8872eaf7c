#ifndef TESTS_FAKE_BACKEND_H
#define TESTS_FAKE_BACKEND_H
/*
 * A backend that does nothing but remember: how often it was called, with what, in which order.
 *
 * It can be told to fail at its n-th call; close cannot fail and is counted apart. The log has one
 * line a call, so that a test compares text:
 *
 *     open                      finish            close
 *     launch STEP TASK [OP]     step_end STEP     segment ACT SEGMENT
 *     record STREAM EVENT       wait STREAM EVENT     host_wait EVENT
 *     mark PHASE begin|end
 *     alloc BUFFER              free BUFFER           record_stream STREAM BUFFER
 *     born ID BYTES POOL        dead ID BYTES POOL
 */
#include "src/backend.h"

struct fake_backend {
    uint32_t fail_at;   /* 0: never */
    uint32_t n_call;    /* without close */
    uint32_t n_close;
    struct text log;
};

void fake_backend_init(struct fake_backend *fake, uint32_t fail_at);
void fake_backend_release(struct fake_backend *fake);

extern const struct backend_ops fake_backend;         /* self: struct fake_backend * */
extern const struct backend_ops fake_backend_minimal; /* without the optional members */
extern const struct backend_ops fake_backend_memory;  /* with those for memory as well */
extern const struct backend_ops fake_backend_touch;   /* the minimal one, with touch */

#endif
