/*
 * What is alive when allocated bytes peak, held against what the allocator says of that moment, class
 * by class: expandable segments round each block to 512 bytes and to nothing else, so that both are
 * equal to the byte.
 */
#include <string.h>

#include "src/alive.h"
#include "src/place.h"
#include "tests/make.h"
#include "tests/tap.h"

struct made_case {
    const char *name, *model;
    enum system system;
    enum checkpointing ac;
    enum ops_profile ops;
    enum behavior behavior;
};

static uint64_t block_bytes(uint64_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

static void test_order(const struct alive *alive, uint32_t n, const char *name)
{
    uint32_t unnamed = 0, falling = 0, strange = 0;

    for (uint32_t i = 0; i < n; i++) {
        unnamed += alive[i].name == NULL || *alive[i].name == '\0';
        strange += alive[i].n == 0 || alive[i].n_unit > alive[i].n;
        falling +=
            i == 0 || alive[i].n * alive[i].each_bytes <= alive[i - 1].n * alive[i - 1].each_bytes;
    }
    is_int(unnamed, 0, "%s: each has a name", name);
    is_int(strange, 0, "%s: and no more units than tensors", name);
    is_int(falling, n, "%s: the largest sum comes first", name);
}

static void test_case(const struct made_case *c)
{
    struct plan_options options = plan_options_default();
    struct alloc_config config = alloc_config_default();
    struct placement placement;
    uint64_t by_class[CLASS_N] = {0};
    struct alive *alive;
    struct made made;

    options.system = c->system;
    options.units = "block";
    options.ac = c->ac;
    options.ops = c->ops;
    options.seq = 1024;
    options.policy.behavior = c->behavior;
    config.expandable = true;
    make_init(&made, c->model, 0, &options);
    place_program(&made.program, &config, &made.arena, &placement);
    const struct place_step *third = placement_step(&placement, 3);
    const uint32_t n = alive_at(&made.program, third->peak_event, UINT32_MAX, &made.arena, &alive);
    for (uint32_t i = 0; i < n; i++)
        by_class[alive[i].memory_class] += alive[i].n * block_bytes(alive[i].each_bytes);
    ok(memcmp(by_class, third->stats.peak_by_class, sizeof by_class) == 0,
       "%s: what is alive is what is allocated, class by class", c->name);
    test_order(alive, n, c->name);

    struct alive *ten;
    is_int(alive_at(&made.program, third->peak_event, 10, &made.arena, &ten), 10, "%s: ten of them",
           c->name);
    make_release(&made);
}

/* Checkpointed blocks keep their input, the last norm and the head theirs. */
static void test_names(void)
{
    struct plan_options options = plan_options_default();
    struct alloc_config config = alloc_config_default();
    struct placement placement;
    struct alive *alive;
    struct made made;

    options.units = "block";
    options.ac = AC_FULL;
    make_init(&made, "llama3-8b", 0, &options);
    place_program(&made.program, &config, &made.arena, &placement);
    const uint32_t n = alive_at(&made.program, placement_step(&placement, 3)->peak_event,
                                UINT32_MAX, &made.arena, &alive);
    uint32_t hidden = 0, units = 0, logits = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (alive[i].memory_class == CLASS_ACTIVATION && !strcmp(alive[i].name, "hidden")) {
            hidden += alive[i].n;
            units = alive[i].n_unit;
        }
        logits += !strcmp(alive[i].name, "log-probabilities") && alive[i].n == 1 &&
                  alive[i].unit == NO_UNIT && alive[i].n_unit == 0;
    }
    is_int(hidden, 34, "what embedding, 32 blocks and norm put out is alive");
    is_int(units, 33, "of 32 blocks and the root");
    is_int(logits, 1, "log-probabilities are once, and of no unit");
    make_release(&made);
}

int main(void)
{
    static const struct made_case cases[] = {
        {"llama", "llama3-8b", SYSTEM_FSDP2, AC_NONE, OPS_TORCH_EAGER, BEHAVIOR_TORCH_2_11},
        {"llama, compiled", "llama3-8b", SYSTEM_FSDP2, AC_OP, OPS_TORCH_COMPILE,
         BEHAVIOR_TORCH_2_11},
        {"llama, FSDP1", "llama2-7b", SYSTEM_FSDP1, AC_FULL, OPS_TORCH_EAGER, BEHAVIOR_TORCH_2_11},
        {"gpt2", "gpt2", SYSTEM_FSDP2, AC_NONE, OPS_TORCH_EAGER, BEHAVIOR_TORCH_2_11},
        {"mpt", "mpt-125m", SYSTEM_FSDP2, AC_FULL, OPS_TORCH_EAGER, BEHAVIOR_TORCH_2_11},
        {"kda", "kda-tiny", SYSTEM_FSDP2, AC_NONE, OPS_TORCH_EAGER, BEHAVIOR_UNSHARD},
        {"native", "llama-tiny", SYSTEM_FSDP2, AC_NONE, OPS_NATIVE, BEHAVIOR_UNSHARD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        test_case(&cases[i]);
    test_names();
    return tap_done();
}
