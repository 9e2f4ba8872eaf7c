/*
 * Ranks that were started one by one meet at a file and exchange bytes by TCP; whoever does not come,
 * is not of the run, dies or hangs is named by the others, within the time.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/bell.h"
#include "gpu/meeting_note.h"
#include "gpu/rendezvous.h"
#include "tests/ranks_rig.h"
#include "tests/tap.h"

static const int64_t MS = 1000000, SECOND_NS = 1000000000;
static char folder[] = "/tmp/unshard-host_tcp-XXXXXX";
static char file[64];

struct told {
    struct err err;
    int64_t after_ns;
};

static struct told *told; /* by process, shared */
static _Atomic uint32_t
    *n_done; /* processes of a case that have come so far as others wait for; shared */

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- bytes --------------------------------------------------------------------------------- */

struct bytes_case {
    uint32_t ranks;
    uint64_t seed;
};

static int bytes_body(uint32_t rank, void *context)
{
    const struct bytes_case *of = context;
    struct transport_setup setup;
    struct meeting meeting;
    struct err err = {0};

    if (rendezvous_meet(file, rank, of->ranks, 20 * SECOND_NS, &meeting, &err) != STATUS_OK) {
        tap_note("rank %u: %s", rank, err.text);
        return 1;
    }
    struct tcp_transport *transport = tcp_transport_new(&meeting);
    rig_setup(rank, of->ranks, 20 * SECOND_NS, &setup);
    int n_bad = tcp_transport_ops.open(transport, &setup, &err) != STATUS_OK;
    n_bad += rig_check_exchanges(&tcp_transport_ops, transport, &setup, of->seed);
    tcp_transport_ops.close(transport);
    tcp_transport_free(transport);
    return n_bad > 0;
}

static void test_bytes(void)
{
    const uint64_t seed = tap_seed(43);

    for (uint32_t ranks = 1; ranks <= 5; ranks++) {
        struct bytes_case of = {.ranks = ranks, .seed = seed + ranks};
        is_int(ranks_run(ranks, NULL, bytes_body, &of, NULL), 0,
               "%u ranks get each other's bytes in several groups at a time", ranks);
        ok(access(file, F_OK) != 0, "and leave no file");
    }
}

/* ---- ranks that are lost ------------------------------------------------------------------- */

enum { LOST_RANKS = 3, LOST_RANK = 1 };

/* Exchanges until it fails; afterwards the control group has what those say who are there. */
static int lose_body(uint32_t rank, void *context)
{
    const bool exits = *(const bool *)context;
    static char words[LOST_RANKS][4000], heard[LOST_RANKS][4000];
    const void *send[LOST_RANKS] = {words[0], words[1], words[2]};
    void *recv[LOST_RANKS] = {heard[0], heard[1], heard[2]};
    struct transport_setup setup;
    struct meeting meeting;
    struct err err = {0};

    if (rendezvous_meet(file, rank, LOST_RANKS, 20 * SECOND_NS, &meeting, &err) != STATUS_OK)
        return 1;
    struct tcp_transport *transport = tcp_transport_new(&meeting);
    rig_setup(rank, LOST_RANKS, exits ? 60 * SECOND_NS : 2 * SECOND_NS, &setup);
    enum status status = tcp_transport_ops.open(transport, &setup, &err);
    const int64_t start_ns = bell_now_ns();
    for (int i = 0; status == STATUS_OK; i++) {
        if (rank == LOST_RANK && i == 3 && !exits)
            ranks_await(n_done, LOST_RANKS - 1);
        if (rank == LOST_RANK && i == 3)
            _exit(0);
        status = tcp_transport_ops.exchange(transport, COMM_SHARD, send, recv, 4000, &err);
        if (status == STATUS_OK)
            status = tcp_transport_ops.wait(transport, COMM_SHARD, &err);
    }
    told[rank] = (struct told){.err = err, .after_ns = bell_now_ns() - start_ns};
    ++*n_done;
    if (tcp_transport_ops.exchange(transport, COMM_SHARD, send, recv, 1, NULL) == STATUS_OK)
        return 1;
    memset(words, 'a' + (int)rank, sizeof words);
    tcp_transport_ops.exchange(transport, GROUP_CONTROL, send, recv, 4000, NULL);
    status = tcp_transport_ops.wait(transport, GROUP_CONTROL, NULL);
    const uint32_t other = 2 - rank;
    return status == STATUS_OK || heard[other][3999] != 'a' + (int)other;
}

static void test_losses(void)
{
    for (int exits = 0; exits < 2; exits++) {
        bool context = exits;
        const char *want = exits ? "rank 1 is gone" : "rank 1 is late: waited 2 s for it";
        *n_done = 0;
        is_int(ranks_run(LOST_RANKS, NULL, lose_body, &context, NULL), 0,
               "a rank %s: the others still hear one another", exits ? "exits" : "hangs");
        for (uint32_t r = 0; r < LOST_RANKS; r += 2) {
            is_str(told[r].err.text, want, "rank %u names it", r);
            ok(told[r].after_ns < 20 * SECOND_NS, "within time");
        }
    }
}

/* ---- meetings that fail, or nearly --------------------------------------------------------- */

/* What a process says that it is: each line of the table is a meeting of up to three. */
enum { ABSENT = -1, STRANGER = -2, SILENT = -3, FORGER = -4 };
struct guest {
    int rank; /* or one of these: they connect, and say something else, nothing, or no place */
    uint32_t ranks;
    const char *want;        /* what it is told; NULL: it meets the others */
    int late_ms, timeout_ms; /* 0: long enough for any machine */
    uint32_t after;          /* it begins when so many that are no ranks are done */
    bool when_written;       /* it begins when the file is there */
    bool starts_twice;       /* it is killed, mostly when it was heard, and started anew */
};

struct meeting_case {
    const char *name, *left; /* what the file holds before */
    struct guest guests[3];
};

/* An address where nobody listens: the port is the discard service's. */
#define LEFT "unshard rendezvous 2\nrun 00000000000000aa\nport 9\nat 127.0.0.1\n"

#define MISSED "rank 2 of 3 did not come to '"
#define UNLIKE "rank 1 was started as one of 3, rank 0 as one of 2"
#define TWICE "two processes are rank 1"

static const struct meeting_case cases[] = {
    {.name = "two ranks meet",
     .guests = {{.rank = 0, .ranks = 2}, {.rank = 1, .ranks = 2}, {.rank = ABSENT}}},
    {.name = "one that an earlier run has left is passed over",
     .left = LEFT,
     .guests = {{.rank = 0, .ranks = 2, .late_ms = 150},
                {.rank = 1, .ranks = 2},
                {.rank = ABSENT}}},
    {.name = "and one that makes no sense",
     .left = "unshard rendezvous 2\nrun x\n",
     .guests = {{.rank = 0, .ranks = 2, .late_ms = 150},
                {.rank = 1, .ranks = 2},
                {.rank = ABSENT}}},
    {.name = "a stranger is turned away",
     .guests = {{.rank = 0, .ranks = 2}, {.rank = 1, .ranks = 2, .after = 1}, {.rank = STRANGER}}},
    {.name = "no rank 0",
     .guests = {{.rank = ABSENT},
                {.rank = 1, .ranks = 2, .want = "rank 0 did not write '", .timeout_ms = 300},
                {.rank = ABSENT}}},
    {.name = "no rank 0, and an old file",
     .left = LEFT,
     .guests = {{.rank = ABSENT},
                {.rank = 1, .ranks = 2, .want = "an earlier run left it", .timeout_ms = 1200},
                {.rank = ABSENT}}},
    {.name = "a rank that does not come",
     .guests = {{.rank = 0, .ranks = 3, .want = MISSED, .timeout_ms = 2500},
                {.rank = 1, .ranks = 3, .want = MISSED},
                {.rank = ABSENT}}},
    {.name = "is named to one whose own time is over before rank 0's",
     .guests = {{.rank = 0, .ranks = 3, .want = MISSED, .timeout_ms = 3500},
                {.rank = 1, .ranks = 3, .want = MISSED, .timeout_ms = 2000, .when_written = true},
                {.rank = ABSENT}}},
    {.name = "nor do many that say nothing keep rank 0 from telling in time",
     .guests = {{.rank = 0, .ranks = 3, .want = MISSED, .timeout_ms = 2500},
                {.rank = 1, .ranks = 3, .want = MISSED, .after = 1},
                {.rank = SILENT}}},
    {.name = "who says that it is nowhere is a stranger",
     .guests = {{.rank = 0, .ranks = 2}, {.rank = 1, .ranks = 2, .after = 1}, {.rank = FORGER}}},
    {.name = "a rank that was killed and started anew is the same rank",
     .guests = {{.rank = 0, .ranks = 3},
                {.rank = 1, .ranks = 3, .when_written = true, .starts_twice = true},
                {.rank = 2, .ranks = 3, .after = 1}}},
    {.name = "another WORLD_SIZE",
     .guests = {{.rank = 0, .ranks = 2, .want = UNLIKE},
                {.rank = 1, .ranks = 3, .want = UNLIKE},
                {.rank = ABSENT}}},
    {.name = "a rank twice",
     .guests = {{.rank = 0, .ranks = 3, .want = TWICE},
                {.rank = 1, .ranks = 3, .want = TWICE},
                {.rank = 1, .ranks = 3, .want = TWICE}}},
};

static void until_written(struct meeting_note *note)
{
    while (!meeting_note_read(file, note))
        sleep_ms(5);
}

/* Finds rank 0 as others do. What is no stranger stays until the ranks are done; what is silent comes
   in a crowd, of which each one may cost some time. */
static int disturb(int kind)
{
    const uint32_t nowhere[] = {1, 2, UINT32_MAX}; /* rank, ranks, addresses */
    struct meeting_note note;
    char text[200];
    bool good = true;

    until_written(&note);
    memset(text, 'x', sizeof text);
    for (int i = 0; i < (kind == SILENT ? 12 : 1); i++) {
        const int fd = net_connect(0x0100007f, note.at.port, bell_after(20 * SECOND_NS));
        good &= fd >= 0;
        if (kind == FORGER) {
            memcpy(text, &note.run, sizeof note.run);
            memcpy(text + sizeof note.run, nowhere, sizeof nowhere);
        }
        if (kind != SILENT)
            good &= net_send(fd, text, sizeof text, bell_after(20 * SECOND_NS));
        if (kind == STRANGER)
            close(fd);
    }
    ++*n_done;
    if (kind != STRANGER)
        ranks_await(n_done, 3);
    return !good;
}

static void be_killed(const struct guest *guest)
{
    struct meeting meeting;
    const pid_t pid = fork();

    if (pid == 0) {
        rendezvous_meet(file, (uint32_t)guest->rank, guest->ranks, 60 * SECOND_NS, &meeting, NULL);
        _exit(0);
    }
    sleep_ms(300);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ++*n_done;
    sleep_ms(300); /* so that mostly all have been there before it is anew */
}

static int guest_body(uint32_t process, void *context)
{
    const struct guest *guest = &((const struct meeting_case *)context)->guests[process];
    const int64_t start_ns = bell_now_ns();
    const int64_t timeout_ns = guest->timeout_ms ? guest->timeout_ms * MS : 60 * SECOND_NS;
    struct meeting_note note;
    struct meeting meeting;
    struct err err = {0};

    if (guest->rank < 0)
        return guest->rank != ABSENT && disturb(guest->rank);
    sleep_ms(guest->late_ms);
    ranks_await(n_done, guest->after);
    if (guest->when_written)
        until_written(&note);
    if (guest->starts_twice)
        be_killed(guest);
    if (rendezvous_meet(file, (uint32_t)guest->rank, guest->ranks, timeout_ns, &meeting, &err) ==
        STATUS_OK)
        meeting_release(&meeting);
    told[process] = (struct told){.err = err, .after_ns = bell_now_ns() - start_ns};
    ++*n_done;
    return 0;
}

static bool is_told(const struct guest *guest, const struct told *what)
{
    const bool right =
        guest->want ? strstr(what->err.text, guest->want) != NULL : what->err.status == STATUS_OK;

    if (!right)
        tap_note("rank %d is told '%s'", guest->rank, what->err.text);
    return right && what->after_ns < 20 * SECOND_NS;
}

static void put_file(const char *text)
{
    FILE *to = fopen(file, "w");
    if (!to || fputs(text, to) < 0 || fclose(to) != 0)
        tap_bail("cannot write the file");
}

static void test_meetings(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct meeting_case of = cases[i];
        uint32_t n_bad = 0;

        unlink(file);
        *n_done = 0;
        if (of.left)
            put_file(of.left);
        n_bad += ranks_run(3, NULL, guest_body, &of, NULL);
        for (uint32_t p = 0; p < 3; p++)
            n_bad += of.guests[p].rank >= 0 && !is_told(&of.guests[p], &told[p]);
        is_int(n_bad, 0, "%s", of.name);
    }
    unlink(file);
}

static void test_folder(void)
{
    struct meeting meeting;
    struct err err = {0};

    is_int(rendezvous_meet("/nowhere/at/all", 0, 2, SECOND_NS, &meeting, &err), STATUS_INPUT,
           "a file that cannot be written");
    is_str(err.text, "cannot write '/nowhere/at/all.part': No such file or directory", "says so");
}

int main(void)
{
    if (!mkdtemp(folder))
        tap_bail("no folder");
    snprintf(file, sizeof file, "%s/meet", folder);
    told = ranks_memory(sizeof *told * RIG_MAX_RANKS);
    n_done = ranks_memory(sizeof *n_done);
    test_bytes();
    test_losses();
    test_meetings();
    test_folder();
    rmdir(folder);
    return tap_done();
}
