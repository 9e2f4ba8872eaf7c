/*
 * The program with the fake CUDA in CUDA's place (tests/fake_cuda.h): tests/unshard_fake, which finds
 * eight GPUs on any machine. For tests of commands; times of such a device say nothing.
 */
#include "tests/fake_cuda.h"

enum { DEVICES = 8 };

__attribute__((constructor)) static void put_devices(void)
{
    fake_cuda_init(&(struct fake_setup){.n_device = DEVICES, .driver = 13000});
    fake_nccl_share(DEVICES);
}
