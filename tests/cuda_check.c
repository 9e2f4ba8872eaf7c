/*
 * The device check on the CUDA device, over a CUDA of the host's (tests/fake_cuda.h), with the host's small
 * sizes: its parts pass; where kernels are lost every part that looks at bytes says so; and a call that
 * fails leaves what was found before.
 */
#include <string.h>

#include "src/cli/device_part.h"
#include "tests/fake_cuda.h"
#include "tests/tap.h"

static const struct device_part *part_of(const char *name)
{
    const struct device_part *part = device_parts;
    while (strcmp(part->name, name) != 0)
        part++;
    return part;
}

static uint32_t lines_of(const struct device_part_run *run, enum check_verdict verdict)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_line; i++)
        n += run->lines[i].verdict == verdict;
    return n;
}

static enum status run_part(const char *name, const struct fake_setup *setup,
                            struct device_part_run *out, struct err *err)
{
    *out = (struct device_part_run){.n_line = 0};
    *err = (struct err){0};
    arena_init(&out->arena);
    fake_cuda_init(setup);
    return device_part_run(part_of(name), &cuda_device_ops, device_scale(DEVICE_HOST), out, err);
}

static void test_passes(const char *name)
{
    struct device_part_run run;
    struct err err;

    const enum status status =
        run_part(name, &(struct fake_setup){.n_device = 1, .driver = 13000}, &run, &err);
    ok(status == STATUS_OK && lines_of(&run, CHECK_FAILED) == 0 && lines_of(&run, CHECK_PASSED) > 0,
       "%s passes %s", name, err.text);
    is_int(fake_cuda_live(), 0, "and leaves nothing on the device");
    arena_release(&run.arena);
}

/* Poison stays where something should have been written. */
static void test_notices(const char *name)
{
    struct device_part_run run;
    struct err err;

    run_part(name, &(struct fake_setup){.n_device = 1, .driver = 13000, .loses_launches = true},
             &run, &err);
    ok(lines_of(&run, CHECK_FAILED) > 0 && lines_of(&run, CHECK_PASSED) == 0,
       "%s says that kernels did nothing", name);
    arena_release(&run.arena);
}

static void test_failure(void)
{
    struct device_part_run run;
    struct err err;
    const struct fake_setup setup = {
        .n_device = 1, .driver = 13000, .fail_at = 5, .of = "cudaMemsetAsync"};

    ok(run_part("packing", &setup, &run, &err) == STATUS_RUN && strstr(err.text, "cudaMemsetAsync"),
       "a call that fails ends a part: %s", err.text);
    is_int(run.n_line, 4, "and what it found before is kept");
    is_int(fake_cuda_live(), 0, "nothing else is");
    arena_release(&run.arena);
}

static void test_missing(void)
{
    struct device_part_run run;
    struct err err;

    ok(run_part("step", &(struct fake_setup){.n_device = 0, .driver = 13000}, &run, &err) ==
           STATUS_DEVICE,
       "without a device there is no check: %s", err.text);
    arena_release(&run.arena);
}

int main(void)
{
    static const char *const parts[] = {"environment", "packing", "speed", "step", "post", "far"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        test_passes(parts[i]);
    test_notices("packing");
    test_notices("post");
    test_notices("far");
    test_failure();
    test_missing();
    return tap_done();
}
