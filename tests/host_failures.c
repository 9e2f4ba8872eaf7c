/*
 * Failures on the host device: the first one is told by every later call, and all threads end.
 */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "gpu/bell.h"
#include "tests/device_rig.h"
#include "tests/tap.h"

static const int64_t MS = 1000000;
static _Atomic int n_ran;
static _Atomic bool release;

enum what { FINE, FAIL, FAIL_LATER, HOLD };

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * MS}, NULL);
}

static enum status failing_call(void *context, uint64_t what, struct err *err)
{
    (void)context;
    n_ran++;
    switch ((enum what)what) {
    case FAIL:
        return err_set(err, STATUS_INPUT, "no more input");
    case FAIL_LATER:
        while (!release)
            nap_ms(1);
        return err_set(err, STATUS_RUN, "the second one");
    case HOLD:
        while (!release)
            nap_ms(1);
        return STATUS_OK;
    default:
        return STATUS_OK;
    }
}

static void open_rig(struct device_rig *rig, int64_t timeout_ms)
{
    device_rig_init(rig, failing_call, NULL);
    rig->setup.timeout_ns = timeout_ms * MS;
    n_ran = 0;
    release = false;
    device_rig_open(rig);
}

static void until_ran(int n)
{
    while (n_ran < n)
        nap_ms(1);
}

static void until_failed(struct device_rig *rig)
{
    while (rig->ops->record(rig->device, 1, STREAM_AR, NULL) == STATUS_OK)
        nap_ms(1);
}

static void test_first_stays(void)
{
    static const char *const want = "stream 'C': no more input";
    struct device_rig rig;
    struct err err = {0};
    const struct segment_op segment = {.act = SEGMENT_RESERVE, .bytes = 4096};
    const struct work nothing = {.kind = WORK_NOTHING};

    open_rig(&rig, 60000);
    rig_submit(&rig, STREAM_RS, FAIL_LATER, NULL);
    until_ran(1);
    rig_submit(&rig, STREAM_C, FINE, NULL);
    rig_submit(&rig, STREAM_C, FAIL, NULL);
    until_failed(&rig);
    release = true;
    nap_ms(5); /* time for the second one, that must change nothing */
    is_int(rig.ops->drain(rig.device, &err), STATUS_INPUT, "drain returns the status of a failure");
    is_str(err.text, want, "and its reason");
    err = (struct err){0};
    is_int(rig_try(&rig, STREAM_AG, &nothing, 0, NULL, &err), STATUS_INPUT, "so does submit");
    is_str(err.text, want, "the first of two failures");
    is_int(rig.ops->record(rig.device, 0, STREAM_C, NULL), STATUS_INPUT, "and record");
    is_int(rig.ops->wait(rig.device, 0, STREAM_C, NULL), STATUS_INPUT, "and wait");
    is_int(rig.ops->host_wait(rig.device, 0, NULL), STATUS_INPUT, "and host_wait");
    is_int(rig.ops->segment(rig.device, &segment, NULL), STATUS_INPUT, "and segment");
    is_int(n_ran, 3, "nothing else ran");
    device_rig_release(&rig);
}

static void test_drops(void)
{
    struct device_rig rig;
    open_rig(&rig, 60000);
    rig_submit(&rig, STREAM_C, HOLD, NULL);
    rig_record(&rig, 0, STREAM_C);
    rig_wait(&rig, 0, STREAM_RS);
    rig_submit(&rig, STREAM_RS, FINE, NULL);
    for (int i = 0; i < 100; i++)
        rig_submit(&rig, STREAM_C, FINE, NULL);
    until_ran(1);
    rig_submit(&rig, STREAM_AG, FAIL, NULL);
    until_failed(&rig);
    release = true;
    const int64_t start_ns = bell_now_ns();
    device_rig_release(&rig);
    is_int(n_ran, 2, "what was queued is dropped, on the stream that failed and on others");
    ok(bell_now_ns() - start_ns < 20000 * MS, "and close does not wait for it");
}

static void test_silence(void)
{
    struct device_rig rig;
    struct err err = {0};
    open_rig(&rig, 100);
    rig_submit(&rig, STREAM_AR, HOLD, NULL);
    rig_record(&rig, 2, STREAM_AR);
    const int64_t start_ns = bell_now_ns();
    is_int(rig.ops->host_wait(rig.device, 2, &err), STATUS_RUN, "a stream that hangs is a failure");
    is_str(err.text, "stream 'AR' stands still: nothing was finished for 0.1 s", "that says so");
    const int64_t ns = bell_now_ns() - start_ns;
    ok(ns > 100 * MS && ns < 20000 * MS, "in time (%lld ms)", (long long)(ns / MS));
    release = true;
    device_rig_release(&rig);
}

static enum status slow_call(void *context, uint64_t what, struct err *err)
{
    (void)context, (void)what, (void)err;
    nap_ms(50);
    return STATUS_OK;
}

/* Long is not silent. */
static void test_long(void)
{
    struct device_rig rig;
    device_rig_init(&rig, slow_call, NULL);
    rig.setup.timeout_ns = 1000 * MS;
    device_rig_open(&rig);
    for (int i = 0; i < 50; i++)
        rig_submit(&rig, i % 2 ? STREAM_C : STREAM_AG, 0, NULL);
    is_int(rig.ops->drain(rig.device, NULL), STATUS_OK,
           "what takes longer than the time allowed, but goes on, is no failure");
    device_rig_release(&rig);
}

static void test_no_operator(void)
{
    struct device_rig rig;
    struct err err = {0};
    static const struct op_call call = {.kind = OP_POW, .pass = PASS_FORWARD};
    open_rig(&rig, 60000);
    struct work *work = rig_work(&rig, WORK_OP);
    work->is.op = &call;
    rig_try(&rig, STREAM_C, work, 0, NULL, &err);
    is_int(rig.ops->drain(rig.device, &err), STATUS_RUN, "an operator that the host has not");
    is_str(err.text, "stream 'C': the host has no operator 'pow' in this pass", "is named");
    device_rig_release(&rig);
}

static void test_close_unopened(void)
{
    struct device_rig rig;
    device_rig_init(&rig, failing_call, NULL);
    device_rig_release(&rig);
    ok(true, "a device that was never opened can be closed");
}

int main(void)
{
    test_first_stays();
    test_drops();
    test_silence();
    test_long();
    test_no_operator();
    test_close_unopened();
    return tap_done();
}
