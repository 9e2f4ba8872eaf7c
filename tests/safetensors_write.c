/*
 * A header that is written is read back as the list it was made of, with each tensor on a multiple
 * of its element's size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/safetensors.h"
#include "tests/tap.h"

enum { MOST = 20 };

static struct arena arena;
static uint64_t random_state;
static char folder[] = "safetensors-write-XXXXXX"; /* in the build folder */

static struct tensor random_tensor(uint32_t i)
{
    static const enum dtype dtypes[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_FP16};
    struct tensor tensor = {.name = arena_printf(&arena, "layers.%u.weight", i),
                            .stored = safetensors_dtype(dtypes[tap_below(&random_state, 3)]),
                            .n_dim = (uint8_t)tap_below(&random_state, 4)};
    for (unsigned d = 0; d < tensor.n_dim; d++)
        tensor.shape[d] = 1 + tap_below(&random_state, 5);
    return tensor;
}

static void write_file(const char *path, const struct safetensors_head *head)
{
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(head->at, 1, head->bytes, out) != head->bytes || fclose(out) != 0 ||
        truncate(path, (off_t)head->file_bytes) != 0)
        tap_bail("cannot write a file of this test");
}

static uint64_t count_wrong(const struct tensor_list *want, const struct tensor_list *got)
{
    uint64_t wrong = want->n != got->n;
    for (uint32_t i = 0; i < want->n && !wrong; i++) {
        const struct tensor *a = &want->at[i], *b = tensor_list_find(got, a->name);
        const uint64_t element = strcmp(a->stored, "F32") == 0 ? 4 : 2;
        wrong += !b || strcmp(a->stored, b->stored) != 0 || a->at_bytes != b->at_bytes ||
                 tensor_check_shape(a, b->n_dim, b->shape, "the file", NULL) != STATUS_OK ||
                 b->at_bytes % element != 0;
    }
    return wrong;
}

static void test_round_trips(void)
{
    enum { ROUNDS = 300 };
    const char *path = arena_printf(&arena, "%s/any.safetensors", folder);
    uint64_t wrong = 0;

    for (int round = 0; round < ROUNDS && !wrong; round++) {
        struct tensor tensors[MOST];
        struct tensor_list list = {.at = tensors,
                                   .n = 1 + (uint32_t)tap_below(&random_state, MOST)};
        struct tensor_list got = {0};
        struct err err = {0};
        for (uint32_t i = 0; i < list.n; i++)
            tensors[i] = random_tensor(i);
        const struct safetensors_head head = safetensors_lay_out(&list, &arena);
        write_file(path, &head);
        if (safetensors_read(path, &arena, &got, &err) != STATUS_OK)
            tap_bail(err.text);
        wrong += count_wrong(&list, &got) + (head.bytes % 8 != 0);
    }
    is_int(wrong, 0, "%d files are read as they were laid out", ROUNDS);
    unlink(path);
}

static void test_dtypes(void)
{
    static const enum dtype dtypes[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_FP16};
    enum dtype dtype;

    for (int i = 0; i < 3; i++)
        ok(safetensors_dtype_of(safetensors_dtype(dtypes[i]), &dtype) && dtype == dtypes[i],
           "%s is %s in a file", dtype_name(dtypes[i]), safetensors_dtype(dtypes[i]));
    ok(!safetensors_dtype_of("F64", &dtype), "what nothing here computes with is no dtype");
}

int main(void)
{
    arena_init(&arena);
    random_state = tap_seed(5);
    if (!mkdtemp(folder))
        tap_bail("cannot make a folder for this test");
    test_round_trips();
    test_dtypes();
    rmdir(folder);
    arena_release(&arena);
    return tap_done();
}
