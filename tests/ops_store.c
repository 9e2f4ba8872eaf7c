/*
 * How operators read and write their tensors, bit by bit, and which operators there are.
 */
#include "gpu/ops.h"

#include <stdlib.h>
#include <string.h>

#include "tests/number.h"
#include "tests/tap.h"

enum {
    N = 3000,
    FIRST = 7,
    END = 2900
}; /* more than is widened at a time, and not from the start */

static const enum dtype dtypes[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_FP16};

struct array {
    struct op_tensor tensor;
    double values[N];
};

static void array_init(struct array *array, enum dtype dtype, uint8_t mode, uint64_t *seed)
{
    array->tensor = (struct op_tensor){
        .at = malloc(N * dtype_bytes(dtype)), .n = N, .dtype = (uint8_t)dtype, .mode = mode};
    for (uint64_t i = 0; i < N; i++) {
        number_set(dtype, array->tensor.at, i, (double)tap_below(seed, 100001) / 1000 - 50);
        array->values[i] = number_get(dtype, array->tensor.at, i);
    }
}

static void check_widen(enum dtype dtype, uint64_t *seed)
{
    struct array array;
    float wide[N];
    uint32_t bad = 0;
    array_init(&array, dtype, OP_READ, seed);
    host_widen(&array.tensor, FIRST, END - FIRST, wide);
    for (uint64_t i = FIRST; i < END; i++)
        bad += (double)wide[i - FIRST] != array.values[i];
    is_int(bad, 0, "%s: elements from the first that is asked for", dtype_name(dtype));
    free(array.tensor.at);
}

/* What element i has to be once value was stored in mode over before. */
static double expected(enum dtype dtype, uint8_t mode, double before, double value)
{
    const double rounded = number_nearest(dtype, value);
    return mode == OP_UPDATE ? number_nearest(dtype, before + rounded) : rounded;
}

static void check_store(enum dtype dtype, uint8_t mode, uint64_t *seed)
{
    struct array array;
    float more[N];
    uint32_t bad = 0, touched = 0;
    array_init(&array, dtype, mode, seed);
    for (uint64_t i = 0; i < N; i++)
        more[i] = (float)((double)tap_below(seed, 1000001) / 100000 - 5);
    host_store(&array.tensor, FIRST, END - FIRST, more + FIRST);
    for (uint64_t i = 0; i < N; i++) {
        const double got = number_get(dtype, array.tensor.at, i);
        if (i < FIRST || i >= END)
            touched += got != array.values[i];
        else
            bad += got != expected(dtype, mode, array.values[i], (double)more[i]);
    }
    is_int(bad, 0, "%s, %s: each element is rounded as the mode says", dtype_name(dtype),
           mode == OP_UPDATE ? "update" : "write");
    is_int(touched, 0, "%s: what lies beside is left alone", dtype_name(dtype));
    free(array.tensor.at);
}

static void check_two_roundings(void)
{
    uint16_t at = (uint16_t)number_bits(DTYPE_BF16, 256);
    const struct op_tensor tensor = {.at = &at, .n = 1, .dtype = DTYPE_BF16, .mode = OP_UPDATE};
    const float value = 1 + 0x1p-9f;
    host_store(&tensor, 0, 1, &value);
    is_int(at, number_bits(DTYPE_BF16, 256),
           "256 + (1 + 2^-9) is 256 in BF16: 1 first, then a tie, not 257.002 to 258");
    host_store(&(struct op_tensor){.at = NULL}, 0, 1, &value);
    ok(true, "a tensor that is absent is not written");
}

static void check_table(void)
{
    static const enum op_kind both[] = {
        OP_SDPA,       OP_SWIGLU,        OP_GELU,  OP_ADD,      OP_L2_NORM, OP_SIGMOID,
        OP_DELTA_RULE, OP_CROSS_ENTROPY, OP_MEAN,  OP_TO,       OP_MM,      OP_RMS,
        OP_LAYER_NORM, OP_SHORT_CONV,    OP_DECAY, OP_GATED_RMS};
    static const enum op_kind weighty[] = {OP_EMBEDDING,  OP_POSITIONS,  OP_MM,    OP_RMS,
                                           OP_LAYER_NORM, OP_SHORT_CONV, OP_DECAY, OP_GATED_RMS};
    bool all = host_op_find(OP_SUM, PASS_WGRAD) != NULL, same = true;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        all &= host_op_find(both[i], PASS_FORWARD) && host_op_find(both[i], PASS_DGRAD);
    for (size_t i = 0; i < sizeof weighty / sizeof *weighty; i++)
        all &= host_op_find(weighty[i], PASS_FORWARD) && host_op_find(weighty[i], PASS_WGRAD);
    for (int kind = 0; kind < OP_KIND_N; kind++)
        same &= host_op_find((enum op_kind)kind, PASS_RECOMPUTE) ==
                host_op_find((enum op_kind)kind, PASS_FORWARD);
    ok(all, "each operator of the list is there in each of its passes");
    ok(same, "recomputation is forward");
    ok(!host_op_find(OP_POW, PASS_FORWARD), "an operator of another profile is not there");
    ok(!host_op_find(OP_EMBEDDING, PASS_DGRAD), "nor is a pass that an operator has not");
}

int main(void)
{
    uint64_t seed = tap_seed(1);
    for (uint32_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        check_widen(dtypes[i], &seed);
        check_store(dtypes[i], OP_WRITE, &seed);
        check_store(dtypes[i], OP_UPDATE, &seed);
    }
    check_two_roundings();
    check_table();
    return tap_done();
}
