/*
 * Puts the CUDA device's operators in the place of the host's, for the trials of tests/op_trial.h: the
 * programs that try the host's kernels, linked with this file and a CUDA of the host's, try those.
 *
 * Products are taken from the library where it has them, else from the device's own kernel. Scratch is
 * as large as it is asked for, so that the address sanitizer sees a step too far.
 */
#include <stdlib.h>

#include "gpu/cuda_inner.h"
#include "gpu/cuda_library.h"
#include "tests/fake_cuda.h"
#include "tests/op_trial.h"
#include "tests/tap.h"

static cudaStream_t stream;
static struct cuda_products *products;

static void start(void)
{
    struct err err;

    if (stream)
        return;
    fake_cuda_init(&(struct fake_setup){.n_device = 1, .driver = 13000});
    if (cudaStreamCreateWithPriority(&stream, 0, 0) != cudaSuccess ||
        cuda_libraries_load(&err) != STATUS_OK || cuda_products_new(&products, &err) != STATUS_OK)
        tap_bail("no fake device");
}

static void run(const struct op_call *call)
{
    struct cuda_op op = {.call = *call, .shape = *call->shape};
    struct cuda_product *product = NULL;
    struct err err;
    enum status status = STATUS_OK;

    start();
    if (call->kind == OP_MM)
        status = cuda_products_prepare(products, call, &product, &err);
    op.scratch = malloc(product ? cuda_product_scratch_bytes(call) : cuda_op_scratch_bytes(call));
    if (status == STATUS_OK)
        status = product ? cuda_products_run(products, product, &op, stream, &err)
                         : cuda_op_run(&op, stream, &err);
    cuda_products_reset(products);
    free(op.scratch);
    if (status != STATUS_OK)
        tap_bail(err.text);
}

static host_op *find(enum op_kind kind, enum op_pass pass)
{
    return host_op_find(kind, pass) ? run : NULL;
}

__attribute__((constructor)) static void take_over(void)
{
    op_trial_find = find;
}
