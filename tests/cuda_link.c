/*
 * A program with the CUDA kernels in it: it starts where there is no CUDA, and then says so.
 */
#include <string.h>

#include "gpu/cuda_pack.h"
#include "tests/tap.h"

int main(void)
{
    struct cuda_pack_grid grid = {0};
    struct err err = {0};
    if (cuda_pack_grid_init(0, &grid, &err) == STATUS_OK) {
        ok(grid.pack_blocks > 0 && grid.post_blocks > 0, "a device takes %u and %u blocks",
           grid.pack_blocks, grid.post_blocks);
        return tap_done();
    }
    tap_note("%s", err.text);
    is_int(err.status, STATUS_RUN, "no device: an error, not a crash");
    ok(strncmp(err.text, "cannot ", 7) == 0, "that says what cannot be done");
    return tap_done();
}
