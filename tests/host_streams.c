/*
 * Streams, events and communicators of the host device: what runs after what, and what does not.
 *
 * Memory that a wait has to order is plain, so that the thread sanitizer judges the order too.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "gpu/bell.h"
#include "tests/device_rig.h"
#include "tests/tap.h"

enum { MAX_LOG = 3 * 4096 + 100 };

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static void spin_until(_Atomic bool *flag)
{
    while (!*flag)
        nanosleep(&(struct timespec){0, 20000}, NULL);
}

/* What ran on a stream, in order. */
struct log {
    uint32_t n;
    uint32_t what[MAX_LOG];
};
static struct log logs[STREAM_N];

static enum status log_call(void *context, uint64_t what, struct err *err)
{
    struct log *log = &logs[what >> 32];
    (void)context, (void)err;
    log->what[log->n++] = (uint32_t)what;
    return STATUS_OK;
}

static bool is_counting(const struct log *log, uint32_t n)
{
    for (uint32_t i = 0; i < log->n; i++) {
        if (log->what[i] != i)
            return false;
    }
    return log->n == n;
}

static void test_order(uint64_t jitter_seed, uint32_t n)
{
    struct device_rig rig;
    bool good = true;

    memset(logs, 0, sizeof(logs));
    device_rig_init(&rig, log_call, NULL);
    rig.setup.debug.jitter_seed = jitter_seed;
    device_rig_open(&rig);
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t stream = 0; stream < STREAM_N; stream++)
            rig_submit(&rig, (enum stream)stream, stream << 32 | i, NULL);
    }
    rig_drain(&rig);
    for (uint32_t stream = 0; stream < STREAM_N; stream++)
        good &= is_counting(&logs[stream], n);
    ok(good, "%u items of each stream run in their order (jitter %llu)", n,
       (unsigned long long)jitter_seed);
    device_rig_release(&rig);
}

/* Each of two items goes on when the other one has begun. */
static _Atomic bool begun[2];

static enum status meet_call(void *context, uint64_t what, struct err *err)
{
    (void)context, (void)err;
    begun[what] = true;
    spin_until(&begun[1 - what]);
    return STATUS_OK;
}

static void test_side_by_side(void)
{
    struct device_rig rig;
    device_rig_init(&rig, meet_call, NULL);
    device_rig_open(&rig);
    begun[0] = begun[1] = false;
    rig_submit(&rig, STREAM_C, 0, NULL);
    rig_submit(&rig, STREAM_RS, 1, NULL);
    rig_drain(&rig);
    ok(true, "streams run side by side: two items that wait for one another both end");
    device_rig_release(&rig);
}

static enum status nap_call(void *context, uint64_t what, struct err *err)
{
    (void)context, (void)what, (void)err;
    nanosleep(&(struct timespec){0, 50000}, NULL);
    return STATUS_OK;
}

/* Longer than it takes to fall asleep again. */
static void test_sleep(void)
{
    enum { ITEMS = 400 };
    struct device_rig rig;
    struct rusage before, after;

    device_rig_init(&rig, nap_call, NULL);
    device_rig_open(&rig);
    for (uint64_t i = 0; i < ITEMS; i++)
        rig_submit(&rig, STREAM_C, i, NULL);
    getrusage(RUSAGE_THREAD, &before);
    rig_drain(&rig);
    getrusage(RUSAGE_THREAD, &after);
    const long sleeps = after.ru_nvcsw - before.ru_nvcsw;
    ok(sleeps < ITEMS / 10, "who waits for the last of %d items is not woken for each (%ld times)",
       ITEMS, sleeps);
    device_rig_release(&rig);
}

/* Item 0 writes, item 1 looks whether it was written. */
struct pair {
    int plain;
    _Atomic int value;
    bool is_ordered;
    int seen;
};

static enum status pair_call(void *context, uint64_t what, struct err *err)
{
    struct pair *pair = context;
    (void)err;
    if (what == 0) {
        if (pair->is_ordered) {
            nap_ms(1); /* longer than what the other stream is delayed */
            pair->plain = 1;
        }
        pair->value = 1;
    } else {
        pair->seen = pair->is_ordered ? pair->plain : pair->value;
    }
    return STATUS_OK;
}

/* In how many of n jitter seeds the second stream sees what the first one wrote. */
static int count_seen(int n, bool is_ordered)
{
    int seen = 0;
    for (int seed = 1; seed <= n; seed++) {
        struct pair pair = {.is_ordered = is_ordered};
        struct device_rig rig;
        device_rig_init(&rig, pair_call, &pair);
        rig.setup.debug.jitter_seed = (uint64_t)seed;
        device_rig_open(&rig);
        rig_submit(&rig, STREAM_AG, 0, NULL);
        rig_record(&rig, 3, STREAM_AG);
        if (is_ordered)
            rig_wait(&rig, 3, STREAM_C);
        rig_submit(&rig, STREAM_C, 1, NULL);
        rig_drain(&rig);
        seen += pair.seen;
        device_rig_release(&rig);
    }
    return seen;
}

static void test_waits(void)
{
    enum { SEEDS = 40 };
    is_int(count_seen(SEEDS, true), SEEDS, "behind a wait the write is always there");
    const int seen = count_seen(SEEDS, false);
    ok(seen < SEEDS, "without it, not under every jitter seed (%d of %d)", seen, SEEDS);
}

/* A number that goes back and forth between two streams, in plain memory. */
struct relay {
    int slot, bad;
};

static enum status relay_call(void *context, uint64_t what, struct err *err)
{
    struct relay *relay = context;
    const int step = (int)(what >> 1);
    (void)err;
    if (what & 1)
        relay->bad += relay->slot != step;
    else
        relay->slot = step;
    return STATUS_OK;
}

static void test_reuse(uint64_t jitter_seed, int steps)
{
    struct relay relay = {0};
    struct device_rig rig;

    device_rig_init(&rig, relay_call, &relay);
    rig.setup.debug.jitter_seed = jitter_seed;
    device_rig_open(&rig);
    for (int step = 0; step < steps; step++) {
        rig_wait(&rig, 1, STREAM_C); /* of the step before; in the first there is none */
        rig_submit(&rig, STREAM_C, (uint64_t)step << 1, NULL);
        rig_record(&rig, 0, STREAM_C);
        rig_wait(&rig, 0, STREAM_RS);
        rig_submit(&rig, STREAM_RS, (uint64_t)step << 1 | 1, NULL);
        rig_record(&rig, 1, STREAM_RS);
    }
    rig_drain(&rig);
    is_int(relay.bad, 0, "two events serve %d steps (jitter %llu)", steps,
           (unsigned long long)jitter_seed);
    device_rig_release(&rig);
}

/* Item 0 is held until the gate is open; the others note that they ran. */
static _Atomic bool gate, ran[8];

static enum status gate_call(void *context, uint64_t what, struct err *err)
{
    (void)context, (void)err;
    if (what == 0)
        spin_until(&gate);
    ran[what] = true;
    return STATUS_OK;
}

static void gate_open_rig(struct device_rig *rig)
{
    device_rig_init(rig, gate_call, NULL);
    gate = false;
    for (int i = 0; i < 8; i++)
        ran[i] = false;
    device_rig_open(rig);
}

static void test_record_moves(void)
{
    struct device_rig rig;
    gate_open_rig(&rig);
    rig_submit(&rig, STREAM_AG, 0, NULL);
    rig_record(&rig, 5, STREAM_AG);
    rig_wait(&rig, 5, STREAM_C);
    rig_submit(&rig, STREAM_C, 1, NULL);
    rig_submit(&rig, STREAM_RS, 2, NULL);
    rig_record(&rig, 5, STREAM_RS);
    rig_wait(&rig, 5, STREAM_AR);
    rig_submit(&rig, STREAM_AR, 3, NULL);
    spin_until(&ran[3]);
    nap_ms(5);
    ok(!ran[1], "a wait is for the record before it, not for a later one of the same event");
    gate = true;
    rig_drain(&rig);
    ok(ran[1], "and ends with that");
    device_rig_release(&rig);
}

static void test_host_wait(void)
{
    struct device_rig rig;
    struct err err = {0};
    gate_open_rig(&rig);
    is_int(rig.ops->host_wait(rig.device, 9, &err), STATUS_OK, "no record, nothing to wait for");
    rig_submit(&rig, STREAM_AG, 0, NULL);
    rig_submit(&rig, STREAM_C, 1, NULL);
    rig_record(&rig, 9, STREAM_C);
    is_int(rig.ops->host_wait(rig.device, 9, &err), STATUS_OK, "the host waits for an event");
    ok(ran[1] && !ran[0], "and for no other stream");
    gate = true;
    rig_drain(&rig);
    ok(ran[0], "drain waits for all");
    device_rig_release(&rig);
}

/* Two collectives of one rank, the first of which has a stream that is held. */
static void two_gathers(enum comm second_comm, struct stamp *first, struct stamp *second,
                        int64_t *opened_ns)
{
    struct device_rig rig;
    float numbers[2] = {0};

    gate_open_rig(&rig);
    rig_submit(&rig, STREAM_AG, 0, NULL);
    rig_gather(&rig, STREAM_AG, COMM_SHARD, numbers, 1, first);
    rig_gather(&rig, STREAM_RS, second_comm, numbers + 1, 1, second);
    rig_record(&rig, 0, STREAM_RS);
    if (second_comm == COMM_SHARD)
        nap_ms(5);
    else
        rig.ops->host_wait(rig.device, 0, NULL);
    *opened_ns = bell_now_ns();
    gate = true;
    rig_drain(&rig);
    device_rig_release(&rig);
}

static void test_communicators(void)
{
    struct stamp first = {0}, second = {0};
    int64_t opened_ns;

    two_gathers(COMM_SHARD, &first, &second, &opened_ns);
    ok(first.start_ns >= opened_ns, "a collective does not start before it heads its stream");
    ok(second.start_ns >= first.end_ns, "nor before it heads its communicator");
    two_gathers(COMM_REDUCE, &first, &second, &opened_ns);
    ok(second.end_ns < opened_ns, "another communicator does not wait for it");
    ok(first.start_ns >= opened_ns, "which still waits for its stream");
}

static void test_slow_comm(void)
{
    struct device_rig rig;
    struct stamp stamps[2];
    static float numbers[1000];

    device_rig_init(&rig, log_call, NULL);
    rig.setup.debug.slow_comm = true;
    rig.setup.debug.slow_bytes_per_s = 1e5;
    device_rig_open(&rig);
    rig_gather(&rig, STREAM_AG, COMM_SHARD, numbers, 1000, &stamps[0]);
    rig_gather(&rig, STREAM_AG, COMM_SHARD, numbers, 0, &stamps[1]);
    rig_drain(&rig);
    ok(stamps[0].end_ns - stamps[0].start_ns >= 40000000, "4000 bytes take 40 ms at 100 kB/s");
    ok(stamps[1].end_ns - stamps[1].start_ns < 40000000, "and nothing takes no time");
    device_rig_release(&rig);
}

/* Counts, and looks what the work before it wrote. */
static void observe(void *context, const struct submission *submission)
{
    uint32_t *n = context;
    const struct log *log = &logs[STREAM_C];
    *n += log->n == submission->task + 1 && log->what[log->n - 1] == submission->task;
}

static void test_notes(void)
{
    struct device_rig rig;
    _Atomic uint32_t last_task[STREAM_N] = {0};
    struct stamp stamps[100];
    uint32_t n_observed = 0;
    int n_bad = 0;

    memset(logs, 0, sizeof(logs));
    device_rig_init(&rig, log_call, NULL);
    rig.setup.observe = observe;
    rig.setup.observe_context = &n_observed;
    rig.setup.last_task = last_task;
    device_rig_open(&rig);
    for (uint64_t i = 0; i < 100; i++)
        rig_submit(&rig, STREAM_C, i, &stamps[i]);
    rig_drain(&rig);
    is_int(n_observed, 100, "the observer is called right after each work");
    is_int(last_task[STREAM_C], 100, "a stream tells what it has finished last");
    is_int(last_task[STREAM_AG], 0, "one that did nothing tells nothing");
    for (int i = 0; i < 100; i++) {
        n_bad += stamps[i].start_ns > stamps[i].end_ns;
        n_bad += i > 0 && stamps[i].start_ns < stamps[i - 1].end_ns;
    }
    is_int(n_bad, 0, "stamps of a stream are disjoint and in order");

    device_rig_release(&rig);
}

/* Work for one end of a task each: the stamp goes from the first to the last. */
static void test_parts(void)
{
    static const uint8_t parts[] = {STAMP_START, 0, STAMP_END};
    static const struct work nothing = {.kind = WORK_NOTHING};
    struct device_rig rig;
    _Atomic uint32_t last_task[STREAM_N] = {0};
    struct stamp stamp = {0};
    struct err err = {0};

    device_rig_init(&rig, log_call, NULL);
    rig.setup.last_task = last_task;
    device_rig_open(&rig);
    for (int i = 0; i < 3; i++) {
        is_int(last_task[STREAM_C], 0, "a task is not finished before its part %d", i);
        const struct submission part = {&nothing, 1, 7, parts[i], &stamp};
        rig.ops->submit(rig.device, STREAM_C, &part, &err);
        rig_drain(&rig);
        nap_ms(1);
    }
    is_int(last_task[STREAM_C], 8, "and is finished with the last");
    ok(stamp.end_ns - stamp.start_ns >= 2000000, "it has one stamp");
    device_rig_release(&rig);
}

static enum status slow_start_call(void *context, uint64_t what, struct err *err)
{
    if ((uint32_t)what == 0)
        nap_ms(20);
    return log_call(context, what, err);
}

static void test_full(void)
{
    enum { N = 3 * 4096 };
    struct device_rig rig;

    memset(logs, 0, sizeof(logs));
    device_rig_init(&rig, slow_start_call, NULL);
    device_rig_open(&rig);
    const int64_t start_ns = bell_now_ns();
    for (uint64_t i = 0; i < N; i++)
        rig_submit(&rig, STREAM_C, i, NULL);
    ok(bell_now_ns() - start_ns >= 20000000, "a queue that is full makes the host wait");
    rig_drain(&rig);
    ok(is_counting(&logs[STREAM_C], N), "and loses nothing");
    device_rig_release(&rig);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { IS_SLOW = 1 };
#else
enum { IS_SLOW = 0 };
#endif

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* submit, record and wait as a unit of a program has them, all streams awake and asleep. */
static void test_cost(void)
{
    enum { BATCHES = 41, UNITS = 100, CALLS = 6 * UNITS };
    int64_t ns[BATCHES];
    struct device_rig rig;

    device_rig_init(&rig, log_call, NULL);
    device_rig_open(&rig);
    for (int batch = 0; batch < BATCHES; batch++) {
        memset(logs, 0, sizeof(logs));
        const int64_t start_ns = bell_now_ns();
        for (uint64_t i = 0; i < UNITS; i++) {
            rig_submit(&rig, STREAM_C, i, NULL);
            rig_record(&rig, 0, STREAM_C);
            rig_wait(&rig, 0, STREAM_RS);
            rig_submit(&rig, STREAM_RS, (uint64_t)STREAM_RS << 32 | i, NULL);
            rig_record(&rig, 1, STREAM_RS);
            rig_wait(&rig, 1, STREAM_C);
        }
        ns[batch] = (bell_now_ns() - start_ns) / CALLS;
        rig_drain(&rig);
    }
    qsort(ns, BATCHES, sizeof(*ns), by_value);
    tap_note("a call: %lld ns in the median, %lld to %lld", (long long)ns[BATCHES / 2],
             (long long)ns[0], (long long)ns[BATCHES - 1]);
    if (IS_SLOW)
        tap_skip("a sanitizer is in the way of time");
    else
        ok(ns[0] < 2000, "a call of the host takes less than 2 us");
    device_rig_release(&rig);
}

int main(void)
{
    test_order(0, 1000);
    test_order(tap_seed(61), 60);
    test_side_by_side();
    test_sleep();
    test_waits();
    test_reuse(0, 2000);
    test_reuse(62, 60);
    test_record_moves();
    test_host_wait();
    test_communicators();
    test_slow_comm();
    test_notes();
    test_parts();
    test_full();
    test_cost();
    return tap_done();
}
