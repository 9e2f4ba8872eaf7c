/*
 * Memory of the host device: what is mapped is what the system reports, and what it holds.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/device_rig.h"
#include "tests/tap.h"

static const uint64_t MIB = 1 << 20;

static enum status no_call(void *context, uint64_t what, struct err *err)
{
    (void)context, (void)what, (void)err;
    return STATUS_OK;
}

static void open_rig(struct device_rig *rig, bool poison)
{
    device_rig_init(rig, no_call, NULL);
    rig->setup.debug.poison = poison;
    device_rig_open(rig);
}

static char *apply(struct device_rig *rig, enum segment_act act, bool expandable, uint32_t segment,
                   uint64_t offset, uint64_t bytes)
{
    const struct segment_op op = {(uint8_t)act, 0, expandable, segment, offset, bytes};
    struct err err = {0};
    if (rig->ops->segment(rig->device, &op, &err) != STATUS_OK)
        tap_bail(err.text);
    return act == SEGMENT_RELEASE ? NULL : rig->ops->segment_base(rig->device, segment);
}

static bool is_filled(const char *at, uint64_t bytes, unsigned char value)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if ((unsigned char)at[i] != value)
            return false;
    }
    return true;
}

static void is_mapped(struct device_rig *rig, uint64_t mib, const char *when)
{
    is_int(rig->ops->mapped_bytes(rig->device) / MIB, mib, "%s: %d MiB", when, (int)mib);
}

static void test_caching(void)
{
    struct device_rig rig;
    open_rig(&rig, false);
    is_mapped(&rig, 0, "nothing reserved");
    apply(&rig, SEGMENT_RESERVE, false, 0, 0, 2 * MIB);
    is_mapped(&rig, 2, "a segment");
    char *second = apply(&rig, SEGMENT_RESERVE, false, 1, 0, 20 * MIB);
    memset(second, 7, 20 * MIB);
    is_mapped(&rig, 22, "two of them");
    apply(&rig, SEGMENT_RESERVE, false, 7, 0, 5 * MIB);
    is_mapped(&rig, 27, "a number is left out");
    ok(is_filled(second, 20 * MIB, 7), "other segments leave one alone");
    apply(&rig, SEGMENT_RELEASE, false, 1, 0, 20 * MIB);
    is_mapped(&rig, 7, "one given back");
    apply(&rig, SEGMENT_RESERVE, false, 1, 0, 4 * MIB);
    is_mapped(&rig, 11, "its number used again");
    device_rig_release(&rig);
}

/* How a process ends that writes there. */
static int signal_of_write(char *at)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's own report would only be noise */
        *(volatile char *)at = 1;
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_expandable(void)
{
    struct device_rig rig;
    open_rig(&rig, false);
    char *base = apply(&rig, SEGMENT_RESERVE, true, 0, 0, 1024 * MIB);
    is_mapped(&rig, 0, "addresses alone");
    apply(&rig, SEGMENT_MAP, true, 0, 0, 20 * MIB);
    is_mapped(&rig, 20, "a part mapped");
    apply(&rig, SEGMENT_MAP, true, 0, 20 * MIB, 2 * MIB);
    is_mapped(&rig, 22, "the next part");
    memset(base, 3, 22 * MIB);
    is_int(signal_of_write(base + 22 * MIB), SIGSEGV, "behind it nobody may write");
    apply(&rig, SEGMENT_UNMAP, true, 0, 4 * MIB, 8 * MIB);
    is_mapped(&rig, 14, "a hole");
    is_int(signal_of_write(base + 4 * MIB), SIGSEGV, "nor in the hole");
    is_int(signal_of_write(base + 12 * MIB), 0, "but behind the hole");
    apply(&rig, SEGMENT_MAP, true, 0, 4 * MIB, 8 * MIB);
    is_mapped(&rig, 22, "the hole mapped again");
    ok(is_filled(base + 4 * MIB, 8 * MIB, 0), "memory mapped again is fresh");
    ok(is_filled(base, 4 * MIB, 3) && is_filled(base + 12 * MIB, 10 * MIB, 3),
       "what stayed mapped stayed as it was");
    apply(&rig, SEGMENT_UNMAP, true, 0, 0, 22 * MIB);
    apply(&rig, SEGMENT_RELEASE, true, 0, 0, 1024 * MIB);
    is_mapped(&rig, 0, "all given back");
    device_rig_release(&rig);
}

static void test_poison(void)
{
    struct device_rig rig;
    open_rig(&rig, true);
    ok(is_filled(apply(&rig, SEGMENT_RESERVE, false, 0, 0, 2 * MIB), 2 * MIB, 0xa5),
       "poison: a fresh segment is 0xA5");
    char *base = apply(&rig, SEGMENT_RESERVE, true, 1, 0, 64 * MIB);
    apply(&rig, SEGMENT_MAP, true, 1, 2 * MIB, 2 * MIB);
    ok(is_filled(base + 2 * MIB, 2 * MIB, 0xa5), "and so is a part");
    device_rig_release(&rig);
}

/* Whoever takes memory away waits for those who use it. */
static void test_release_drains(void)
{
    struct device_rig rig;
    open_rig(&rig, false);
    char *base = apply(&rig, SEGMENT_RESERVE, false, 0, 0, 64 * MIB);
    struct err err = {0};
    for (int i = 0; i < 8; i++) {
        struct work *fill = rig_work(&rig, WORK_FILL);
        fill->is.fill = (struct work_fill){base, 64 * MIB, (uint8_t)i};
        rig_try(&rig, STREAM_C, fill, 0, NULL, &err);
    }
    apply(&rig, SEGMENT_RELEASE, false, 0, 0, 64 * MIB);
    ok(true, "memory goes only when all that was submitted is done");
    device_rig_release(&rig);
}

int main(void)
{
    test_caching();
    test_expandable();
    test_poison();
    test_release_drains();
    return tap_done();
}
