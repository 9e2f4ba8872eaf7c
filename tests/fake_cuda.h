/*
 * CUDA, cuBLASLt and NCCL on the host, as much of them as the CUDA device calls: a library to link in
 * their place, so that all of the device runs without a GPU.
 *
 * Memory is the host's, fresh memory holds 0xA5. Streams are queues. They run at once; or deferred,
 * when somebody asks, a few items at a time of a stream at random, so that a missing wait shows. Kernels are
 * what a C++ compiler makes of the .cu files (tests/fake_kernel.cuh). Ranks of NCCL are processes that
 * were forked after fake_nccl_share(). Any call can be made to fail.
 */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

struct fake_setup {
    int n_device;          /* 0: a driver without one */
    int driver;            /* 1000 major + 10 minor; 0: none is installed */
    uint64_t device_bytes; /* 0: 80 GiB */
    bool defers;
    bool loses_launches; /* kernels are launched and do nothing */
    uint64_t seed;       /* of the order in which deferred streams run */
    uint64_t fail_at;    /* the call with this number, counted from 1; 0: none */
    const char *lacks;   /* a library, or a call of one, that is not there; NULL: none */
    const char *of;      /* calls whose names begin so are counted; NULL: all */
};

void fake_cuda_init(const struct fake_setup *setup);
uint64_t fake_cuda_calls(void);     /* so far */
const char *fake_cuda_failed(void); /* the name of the call that was made to fail; NULL: none was */
int64_t fake_cuda_live(void);       /* what was made and not yet given back, of any kind */
uint64_t fake_cuda_launches(void);  /* of kernels */
uint64_t fake_cuda_products(void);  /* of cuBLASLt */
uint64_t fake_cuda_collectives(void); /* of NCCL */
uint64_t fake_cuda_graph_launches(void);

/* Before ranks are forked; released by who shared it. */
void fake_nccl_share(uint32_t ranks);
void fake_nccl_unshare(void);

/* For tests/fake_kernel.cuh and the other parts: run(context) on the stream, then drop(context). */
typedef void fake_run(void *context);
void fake_cuda_enqueue(void *stream, fake_run *run, fake_run *drop, void *context);
bool fake_cuda_lacks(const char *name); /* whose name begins so */
/* Counts a call; whether it is to fail. */
bool fake_cuda_fails(const char *call);
void fake_cuda_count(int64_t made); /* +1, -1 */
bool fake_cuda_note_launch(void);   /* whether it is to do anything */
void fake_cuda_note_product(void);
void fake_cuda_note_collective(void);
/* What is enqueued next keeps its place among its like, whatever stream it is on. */
void fake_cuda_order_collective(void);

#endif
