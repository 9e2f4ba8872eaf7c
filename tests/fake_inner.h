/*
 * Inside the fake CUDA: what tests/fake_cuda.c (memory, the driver, the test's side) and
 * tests/fake_stream.c (streams, events, graphs) share. Nobody else includes it.
 */
#ifndef TESTS_FAKE_INNER_H
#define TESTS_FAKE_INNER_H

#include <cuda_runtime_api.h>

#include "tests/fake_cuda.h"

#define FAIL_POINT()                   \
    do {                               \
        if (fake_cuda_fails(__func__)) \
            return cudaErrorUnknown;   \
    } while (0)

/* As CUDA does of a thread that captures and has not said that it knows better. */
#define REFUSE_IN_CAPTURE()                           \
    do {                                              \
        if (fake_streams_refuse())                    \
            return cudaErrorStreamCaptureUnsupported; \
    } while (0)

void fake_streams_init(struct fake_setup *setup); /* its seed goes on with each choice */
void fake_streams_run(void);                      /* all that can be done is done */
bool fake_streams_refuse(void);

#endif
