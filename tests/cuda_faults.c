/*
 * A call of CUDA, cuBLASLt or NCCL that fails ends the run with an error that says which call it was,
 * leaves nothing behind and does not hang; whichever call it is (tests/fake_cuda.h).
 *
 * Every call of the opening and of the first step, then one in so many: programs repeat. And a device
 * that is not there says what is missing.
 */
#include <string.h>

#include "gpu/ranks.h"
#include "src/exec.h"
#include "tests/fake_cuda.h"
#include "tests/real_case.h"
#include "tests/tap.h"

enum { TIMEOUT_S = 5, EVERY = 400, STRIDE = 37 };

struct subject {
    struct made made;
    struct placement placement;
    struct seeded_values seeded;
};

static void subject_init(struct subject *subject, enum small small, const char *words,
                         const struct alloc_config *config)
{
    const struct real_case real = {.small = small, .words = words};

    real_case_make(&real, &subject->made);
    place_program(&subject->made.program, config, &subject->made.arena, &subject->placement);
    subject->seeded = (struct seeded_values){.plan = &subject->made.plan};
}

static enum status make_values(void *context, uint32_t rank, struct values *out, struct err *err)
{
    struct subject *subject = context;
    (void)rank, (void)err;
    *out = values_seeded(&subject->seeded);
    return STATUS_OK;
}

static struct run_job job_of(struct subject *subject)
{
    return (struct run_job){.program = &subject->made.program,
                            .placement = &subject->placement,
                            .device = &cuda_device_ops,
                            .ranks = (uint32_t)subject->made.plan.world,
                            .steps = 2,
                            .optimizer = {.adamw = true, .lr = 0.01, .eps = 1e-3},
                            .timeout_ns = (int64_t)TIMEOUT_S * 1000000000,
                            .die_rank = -1,
                            .hang_rank = -1,
                            .context = subject,
                            .values = make_values};
}

/* In this process, so that what is left behind is seen. */
static enum status run_here(struct subject *subject, uint64_t fail_at, struct err *err)
{
    const struct run_job job = job_of(subject);
    struct run_log *log = NULL;

    fake_cuda_init(&(struct fake_setup){.n_device = 1, .driver = 13000, .fail_at = fail_at});
    enum status status = run_log_new(job.ranks, job.steps, subject->made.program.n_task, &log, err);
    if (status == STATUS_OK)
        status = run_rank(&job, 0, NULL, NULL, log, err);
    run_log_free(log);
    return status;
}

/* By the call's name; launches by the kernel's, and what packing asks of the device by its purpose. */
static bool is_named(const char *call, const struct err *err)
{
    return strstr(err->text, call) || strstr(err->text, "cannot launch") ||
           strstr(err->text, "a device's processors") || strstr(err->text, "a packing kernel");
}

/* Whether the run ends as it should when this call fails. Closing goes on whatever fails in it. */
static bool fails_well(struct subject *subject, uint64_t fail_at)
{
    struct err err = {0};
    const enum status status = run_here(subject, fail_at, &err);
    const char *call = fake_cuda_failed();
    const bool ends =
        call && (status == STATUS_OK || is_named(call, &err)) && fake_cuda_live() == 0;

    if (!ends)
        tap_note("call %llu, %s: '%s', %lld left", (unsigned long long)fail_at,
                 call ? call : "none", err.text, (long long)fake_cuda_live());
    return ends;
}

static void check_every_call(const char *name, enum small small, const char *words,
                             const struct alloc_config *config)
{
    struct subject subject;
    struct err err = {0};
    uint32_t n_bad = 0, n = 0;

    subject_init(&subject, small, words, config);
    ok(run_here(&subject, 0, &err) == STATUS_OK, "%s: runs %s", name, err.text);
    is_int(fake_cuda_live(), 0, "%s: and leaves nothing", name);
    ok(fake_cuda_launches() > 0 && fake_cuda_products() > 0, "%s: it did launch", name);
    const uint64_t calls = fake_cuda_calls();
    for (uint64_t at = 1; at <= calls; at += at < EVERY ? 1 : STRIDE, n++)
        n_bad += !fails_well(&subject, at);
    ok(n_bad == 0, "%s: %u of %llu calls fail one by one, each with its name", name, n,
       (unsigned long long)calls);
    make_release(&subject.made);
}

static void check_missing(int driver, int n_device, const char *lacks, const char *words)
{
    struct err err = {0};

    fake_cuda_init(&(struct fake_setup){.n_device = n_device, .driver = driver, .lacks = lacks});
    ok(cuda_device_ops.probe(&err) == STATUS_DEVICE && strstr(err.text, words),
       "what is missing is said: %s", err.text);
}

/* Of two ranks, forked, which both have the call fail, or one is left alone by the other. */
static bool fails_on_two(struct subject *subject, uint64_t fail_at)
{
    const struct run_job job = job_of(subject);
    struct run_log *log = NULL;
    struct err err = {0};

    fake_nccl_share(job.ranks);
    fake_cuda_init(
        &(struct fake_setup){.n_device = 2, .driver = 13000, .fail_at = fail_at, .of = "nccl"});
    enum status status =
        run_log_new(job.ranks, job.steps, subject->made.program.n_task, &log, &err);
    if (status == STATUS_OK)
        status = run_forked(&job, log, &err);
    run_log_free(log);
    fake_nccl_unshare();
    if (fail_at == 0)
        return status == STATUS_OK;
    if (status == STATUS_OK || !strstr(err.text, "nccl"))
        tap_note("call %llu of NCCL: '%s'", (unsigned long long)fail_at, err.text);
    return status != STATUS_OK && strstr(err.text, "nccl");
}

static void check_nccl(void)
{
    enum { FIRST = 12, LAST = 60, STEP = 8 };
    const struct alloc_config config = alloc_config_default();
    struct subject subject;
    uint32_t n_bad = 0, n = 0;

    subject_init(&subject, SMALL_LLAMA, "--gpus 2 --optimizer adamw-fused", &config);
    ok(fails_on_two(&subject, 0), "two ranks run");
    for (uint64_t at = 1; at <= LAST; at += at < FIRST ? 1 : STEP, n++)
        n_bad += !fails_on_two(&subject, at);
    ok(n_bad == 0, "%u calls of NCCL fail one by one, and the run ends with their names", n);
    make_release(&subject.made);
}

int main(void)
{
    check_missing(0, 0, "libnccl", "no NVIDIA driver");
    check_missing(12040, 1, NULL, "too old: it knows CUDA 12.4, this build needs 13.0");
    check_missing(13000, 0, "libnccl", "no CUDA device");
    check_missing(13000, 1, "libnccl.so.2", "NCCL is not here: no such file");
    check_missing(13000, 1, "libcublasLt.so.13", "cuBLASLt is not here: no such file");
    check_missing(13000, 1, "ncclCommInitRankConfig",
                  "NCCL is too old: libnccl.so.2 has no ncclComm");
    check_nccl();
    struct alloc_config config = alloc_config_default();

    check_every_call("caching", SMALL_LLAMA,
                     "--gpus 1 --param-dtype bf16 --clip 1 --optimizer adamw-fused", &config);
    config.expandable = true;
    config.capacity_bytes = (uint64_t)80 << 30;
    check_every_call("expandable", SMALL_LLAMA, "--gpus 1 --log-loss yes --optimizer adamw-fused",
                     &config);
    return tap_done();
}
