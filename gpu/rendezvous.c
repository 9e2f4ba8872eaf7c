/*
 * Ranks meet; see rendezvous.h.
 *
 * A rank says hello with the number of the run that it read from the file. Rank 0 answers at once how
 * long it will wait for the others, and again when all are there or when it knows that they will not
 * be: a rank that was heard does not leave before, so that it hears who is missing. Whatever else
 * connects is not answered, and holds nobody up for long.
 */
#include "gpu/rendezvous.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gpu/bell.h"
#include "gpu/meeting_note.h"

enum { NAP_NS = 20000000, LOOK_MS = 250 };

/* For a connection, and for an answer, which is small. A hello comes right behind its connection: one
   that is late is said again. */
static const int64_t SHORT_NS = 2000000000, HELLO_NS = 500000000;

struct hello {
    uint64_t run;
    uint32_t rank, ranks;
    struct net_place place;
};

/* Before the places, where all is well and nothing is waited for. */
struct answer {
    uint64_t run;
    int64_t wait_ns; /* > 0: others are not there yet, another answer follows within this time */
    struct err why;
};

/* ---- rank 0 -------------------------------------------------------------------------------- */

struct host {
    struct meeting *meeting;
    const char *file;
    int *fds; /* by rank; -1: it has not come */
    uint32_t n_come;
};

/* Of a rank that knows the run. */
static bool read_hello(int fd, uint64_t run, int64_t until_ns, struct hello *out)
{
    return net_receive(fd, out, sizeof *out, until_ns) && out->run == run && out->place.n > 0 &&
           out->place.n <= NET_ADDRESSES;
}

static bool is_gone(int fd)
{
    char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* A rank comes again that did not wait for its answer, or that was started anew. */
static bool comes_again(const struct host *host, const struct hello *hello)
{
    const struct net_place *before = &host->meeting->places[hello->rank];

    return is_gone(host->fds[hello->rank]) ||
           (before->n == hello->place.n && before->port == hello->place.port &&
            !memcmp(before->addresses, hello->place.addresses,
                    before->n * sizeof *before->addresses));
}

static enum status judge_hello(const struct host *host, const struct hello *hello, struct err *err)
{
    const uint32_t ranks = host->meeting->ranks;

    if (hello->ranks != ranks)
        return err_set(err, STATUS_RUN,
                       "rank %" PRIu32 " was started as one of %" PRIu32
                       ", rank 0 as one of %" PRIu32 ": WORLD_SIZE has to be the same",
                       hello->rank, hello->ranks, ranks);
    if (hello->rank == 0 || hello->rank >= ranks ||
        (host->fds[hello->rank] >= 0 && !comes_again(host, hello)))
        return err_set(err, STATUS_RUN,
                       "two processes are rank %" PRIu32
                       ": does each have a RANK of its own, and each run a file of its own?",
                       hello->rank);
    return STATUS_OK;
}

/* Until another answer: what is left, and the time that it may take. */
static int64_t wait_ns(int64_t until_ns)
{
    const int64_t now_ns = bell_now_ns();

    if (until_ns == BELL_NEVER)
        return BELL_NEVER;
    return (until_ns > now_ns ? until_ns - now_ns : 0) + SHORT_NS;
}

static void keep(struct host *host, const struct hello *hello, int fd)
{
    if (host->fds[hello->rank] >= 0)
        close(host->fds[hello->rank]);
    else
        host->n_come++;
    host->fds[hello->rank] = fd;
    host->meeting->places[hello->rank] = hello->place;
}

/* Of who knows the run, which the connection then belongs to; anybody else is turned away. */
static enum status take_hello(struct host *host, int fd, int64_t until_ns, struct err *err)
{
    const int64_t hello_ns = bell_after(HELLO_NS);
    struct hello hello;
    struct answer answer;

    if (!read_hello(fd, host->meeting->run, hello_ns < until_ns ? hello_ns : until_ns, &hello)) {
        close(fd);
        return STATUS_OK;
    }
    const enum status status = judge_hello(host, &hello, err);
    answer = status == STATUS_OK ? (struct answer){.run = hello.run, .wait_ns = wait_ns(until_ns)}
                                 : (struct answer){.run = hello.run, .why = *err};
    if (net_send(fd, &answer, sizeof answer, bell_after(SHORT_NS)) && status == STATUS_OK)
        keep(host, &hello, fd);
    else
        close(fd);
    return status;
}

static enum status miss(const struct host *host, int64_t timeout_ns, struct err *err)
{
    uint32_t rank = 1;

    while (host->fds[rank] >= 0)
        rank++;
    return err_set(err, STATUS_RUN,
                   "rank %" PRIu32 " of %" PRIu32 " did not come to '%s' within %g s, %" PRIu32
                   " did: was it started with this --rendezvous and this WORLD_SIZE?",
                   rank, host->meeting->ranks, host->file, (double)timeout_ns / 1e9, host->n_come);
}

/* One that has come and is gone again has not come: it may be started anew. */
static bool are_all_there(struct host *host)
{
    for (uint32_t r = 1; r < host->meeting->ranks && host->n_come + 1 == host->meeting->ranks;
         r++) {
        if (!is_gone(host->fds[r]))
            continue;
        close(host->fds[r]);
        host->fds[r] = -1;
        host->n_come--;
    }
    return host->n_come + 1 == host->meeting->ranks;
}

static enum status await_all(struct host *host, int64_t timeout_ns, struct err *err)
{
    const int64_t until_ns = bell_after(timeout_ns);
    enum status status = STATUS_OK;

    while (status == STATUS_OK && !are_all_there(host)) {
        const int fd = net_accept(host->meeting->listener, until_ns);
        status = fd < 0 ? miss(host, timeout_ns, err) : take_hello(host, fd, until_ns, err);
    }
    return status;
}

/* What all get to know: the places, or why there are none. */
static enum status answer_all(const struct host *host, enum status status, struct err *err)
{
    const struct meeting *meeting = host->meeting;
    const struct answer answer = {.run = meeting->run,
                                  .why = status == STATUS_OK ? (struct err){0} : *err};
    const size_t bytes = status == STATUS_OK ? meeting->ranks * sizeof *meeting->places : 0;

    for (uint32_t r = 1; r < meeting->ranks; r++) {
        if (host->fds[r] < 0)
            continue;
        const bool sent = net_send(host->fds[r], &answer, sizeof answer, bell_after(SHORT_NS)) &&
                          net_send(host->fds[r], meeting->places, bytes, bell_after(SHORT_NS));
        if (!sent && status == STATUS_OK)
            status = err_set(err, STATUS_RUN, "rank %" PRIu32 " is gone", r);
        close(host->fds[r]);
    }
    return status;
}

/* Where there is no meeting: those that have connected since, whom nobody would answer. */
static void answer_late(const struct host *host, const struct err *why)
{
    const struct answer answer = {.run = host->meeting->run, .why = *why};
    const int64_t until_ns = bell_after(SHORT_NS);
    struct hello hello;
    int fd;

    while ((fd = net_accept(host->meeting->listener, 0)) >= 0) {
        if (read_hello(fd, answer.run, until_ns, &hello))
            net_send(fd, &answer, sizeof answer, until_ns);
        close(fd);
    }
}

static enum status invite(const char *file, int64_t timeout_ns, struct meeting *meeting,
                          struct err *err)
{
    struct host host = {
        .meeting = meeting, .file = file, .fds = malloc(meeting->ranks * sizeof *host.fds)};

    if (!host.fds)
        err_out_of_memory(meeting->ranks * sizeof *host.fds);
    for (uint32_t r = 0; r < meeting->ranks; r++)
        host.fds[r] = -1;
    enum status status = meeting_note_write(
        file, &(struct meeting_note){.run = meeting->run, .at = meeting->places[0]}, err);
    if (status == STATUS_OK) {
        status = await_all(&host, timeout_ns, err);
        meeting_note_remove(file, meeting->run);
        status = answer_all(&host, status, err);
        if (status != STATUS_OK)
            answer_late(&host, err);
    }
    free(host.fds);
    return status;
}

/* ---- the others ---------------------------------------------------------------------------- */

/* By any of the addresses; -1: nobody is there. */
static int connect_to(const struct net_place *place, int64_t until_ns)
{
    int fd = -1;

    for (uint32_t i = 0; i < place->n && fd < 0 && bell_now_ns() < until_ns; i++)
        fd = net_connect(place->addresses[i], place->port, bell_after(SHORT_NS));
    return fd;
}

/* Something has come, and rank 0 has not written another file since. */
static bool has_answered(int fd, const char *file, const struct meeting_note *note,
                         int64_t until_ns)
{
    struct meeting_note now;

    while (bell_now_ns() < until_ns) {
        if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1,
                 net_patience_ms(until_ns, LOOK_MS)) > 0)
            return true;
        if (meeting_note_read(file, &now) && now.run != note->run)
            return false;
    }
    return false;
}

/* The last answer: rank 0 may wait longer than this rank would. */
static bool hear(int fd, const char *file, const struct meeting_note *note, int64_t until_ns,
                 struct answer *answer)
{
    do {
        if (!has_answered(fd, file, note, until_ns) ||
            !net_receive(fd, answer, sizeof *answer, bell_after(SHORT_NS)) ||
            answer->run != note->run)
            return false;
        until_ns = bell_after(answer->wait_ns);
    } while (answer->wait_ns > 0);
    return true;
}

/* False: whoever is there is not rank 0 of this run, or it is gone. */
static bool ask(const char *file, const struct meeting_note *note, int64_t until_ns,
                struct meeting *meeting, struct answer *answer)
{
    const struct hello hello = {.run = note->run,
                                .rank = meeting->rank,
                                .ranks = meeting->ranks,
                                .place = meeting->places[meeting->rank]};
    const size_t bytes = meeting->ranks * sizeof *meeting->places;
    const int fd = connect_to(&note->at, until_ns);

    if (fd < 0)
        return false;
    bool answered =
        net_send(fd, &hello, sizeof hello, until_ns) && hear(fd, file, note, until_ns, answer);
    if (answered && answer->why.status == STATUS_OK)
        answered = net_receive(fd, meeting->places, bytes, bell_after(SHORT_NS));
    close(fd);
    meeting->run = note->run;
    return answered;
}

static enum status give_up(const char *file, bool seen, int64_t timeout_ns, struct err *err)
{
    const double timeout_s = (double)timeout_ns / 1e9;

    if (seen)
        return err_set(err, STATUS_RUN,
                       "no rank 0 answers where '%s' says, within %g s: an earlier run left it, or "
                       "rank 0 is gone",
                       file, timeout_s);
    return err_set(err, STATUS_RUN,
                   "rank 0 did not write '%s' within %g s: was it started, and do all ranks see "
                   "this file?",
                   file, timeout_s);
}

static enum status join(const char *file, int64_t timeout_ns, struct meeting *meeting,
                        struct err *err)
{
    const int64_t until_ns = bell_after(timeout_ns);
    struct answer answer = {.run = 0};
    struct meeting_note note;
    bool seen = false;

    while (bell_now_ns() < until_ns) {
        const bool is_there = meeting_note_read(file, &note);
        seen |= is_there;
        if (is_there && ask(file, &note, until_ns, meeting, &answer))
            return answer.why.status == STATUS_OK
                       ? STATUS_OK
                       : err_set(err, STATUS_RUN, "%.500s", answer.why.text);
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    return give_up(file, seen, timeout_ns, err);
}

enum status rendezvous_meet(const char *file, uint32_t rank, uint32_t ranks, int64_t timeout_ns,
                            struct meeting *out, struct err *err)
{
    struct meeting meeting = {.rank = rank, .ranks = ranks, .listener = -1};

    meeting.places = calloc(ranks, sizeof *meeting.places);
    if (!meeting.places)
        err_out_of_memory(ranks * sizeof *meeting.places);
    enum status status = net_listen(&meeting.listener, &meeting.places[rank], err);
    if (status == STATUS_OK && rank == 0 &&
        getrandom(&meeting.run, sizeof meeting.run, 0) != (ssize_t)sizeof meeting.run)
        status = err_set(err, STATUS_RUN, "no random number for the run: %s", strerror(errno));
    if (status == STATUS_OK)
        status = rank == 0 ? invite(file, timeout_ns, &meeting, err)
                           : join(file, timeout_ns, &meeting, err);
    if (status == STATUS_OK)
        *out = meeting;
    else
        meeting_release(&meeting);
    return status;
}

void meeting_release(struct meeting *meeting)
{
    if (meeting->listener >= 0)
        close(meeting->listener);
    free(meeting->places);
    *meeting = (struct meeting){.listener = -1};
}
