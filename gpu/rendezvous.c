/*
 * Ranks meet; see rendezvous.h.
 *
 * A rank says hello with the number of the run that it read from the file. Rank 0 answers at once how
 * long it will wait for the others, and again when all are there or when it knows that they will not
 * be: a rank that was heard does not leave before, so that it hears who is missing. Whatever else
 * connects is not answered.
 */
#include "gpu/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "gpu/bell.h"

enum { NAP_NS = 20000000, LOOK_MS = 250 };

/* For a connection, and for a hello, which is small. */
static const int64_t SHORT_NS = 2000000000;

/* What the file says. */
struct note {
    uint64_t run;
    struct net_place at;
};

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

/* ---- the file ------------------------------------------------------------------------------ */

static void print_note(const struct note *note, FILE *to)
{
    fprintf(to, "unshard rendezvous 2\nrun %016" PRIx64 "\nport %" PRIu32 "\n", note->run,
            note->at.port);
    for (uint32_t i = 0; i < note->at.n; i++) {
        char text[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &note->at.addresses[i], text, sizeof text);
        fprintf(to, "at %s\n", text);
    }
}

/* Whole or not at all: others read while it is written. */
static enum status write_note(const char *file, const struct note *note, struct err *err)
{
    char part[4096];
    FILE *to = NULL;

    if (snprintf(part, sizeof part, "%s.part", file) < (int)sizeof part)
        to = fopen(part, "w");
    if (!to)
        return err_set(err, STATUS_INPUT, "cannot write '%s.part': %s", file, strerror(errno));
    print_note(note, to);
    const bool kept = fflush(to) == 0 && fsync(fileno(to)) == 0;
    if (fclose(to) == 0 && kept && rename(part, file) == 0)
        return STATUS_OK;
    const int reason = errno;
    unlink(part);
    return err_set(err, STATUS_INPUT, "cannot write '%s': %s", file, strerror(reason));
}

static bool read_note(const char *file, struct note *out)
{
    struct note note = {.run = 0};
    char text[INET_ADDRSTRLEN];
    FILE *from = fopen(file, "r");

    if (!from)
        return false;
    if (fscanf(from, "unshard rendezvous 2 run %" SCNx64 " port %" SCNu32, &note.run,
               &note.at.port) == 2)
        while (note.at.n < NET_ADDRESSES && fscanf(from, " at %15s", text) == 1)
            note.at.n += inet_pton(AF_INET, text, &note.at.addresses[note.at.n]) == 1;
    fclose(from);
    *out = note;
    return note.at.n > 0;
}

/* ---- rank 0 -------------------------------------------------------------------------------- */

struct host {
    struct meeting *meeting;
    const char *file;
    int *fds; /* by rank; -1: it has not come */
    uint32_t n_come;
};

static enum status judge_hello(const struct host *host, const struct hello *hello, struct err *err)
{
    const uint32_t ranks = host->meeting->ranks;

    if (hello->ranks != ranks)
        return err_set(err, STATUS_RUN,
                       "rank %" PRIu32 " was started as one of %" PRIu32
                       ", rank 0 as one of %" PRIu32 ": WORLD_SIZE has to be the same",
                       hello->rank, hello->ranks, ranks);
    if (hello->rank == 0 || hello->rank >= ranks || host->fds[hello->rank] >= 0)
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

/* Of who knows the run, which the connection then belongs to; anybody else is turned away. */
static enum status take_hello(struct host *host, int fd, int64_t until_ns, struct err *err)
{
    struct hello hello;
    struct answer answer;

    if (!net_receive(fd, &hello, sizeof hello, bell_after(SHORT_NS)) ||
        hello.run != host->meeting->run) {
        close(fd);
        return STATUS_OK;
    }
    const enum status status = judge_hello(host, &hello, err);
    answer = status == STATUS_OK ? (struct answer){.run = hello.run, .wait_ns = wait_ns(until_ns)}
                                 : (struct answer){.run = hello.run, .why = *err};
    net_send(fd, &answer, sizeof answer, bell_after(SHORT_NS));
    if (status != STATUS_OK) {
        close(fd);
        return status;
    }
    host->fds[hello.rank] = fd;
    host->meeting->places[hello.rank] = hello.place;
    host->n_come++;
    return STATUS_OK;
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

static enum status await_all(struct host *host, int64_t timeout_ns, struct err *err)
{
    const int64_t until_ns = bell_after(timeout_ns);
    enum status status = STATUS_OK;

    while (status == STATUS_OK && host->n_come + 1 < host->meeting->ranks) {
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

static enum status invite(const char *file, int64_t timeout_ns, struct meeting *meeting,
                          struct err *err)
{
    struct host host = {
        .meeting = meeting, .file = file, .fds = malloc(meeting->ranks * sizeof *host.fds)};

    if (!host.fds)
        err_out_of_memory(meeting->ranks * sizeof *host.fds);
    for (uint32_t r = 0; r < meeting->ranks; r++)
        host.fds[r] = -1;
    enum status status =
        write_note(file, &(struct note){.run = meeting->run, .at = meeting->places[0]}, err);
    if (status == STATUS_OK) {
        status = await_all(&host, timeout_ns, err);
        unlink(file);
        status = answer_all(&host, status, err);
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
static bool has_answered(int fd, const char *file, const struct note *note, int64_t until_ns)
{
    struct note now;

    while (bell_now_ns() < until_ns) {
        if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1,
                 net_patience_ms(until_ns, LOOK_MS)) > 0)
            return true;
        if (read_note(file, &now) && now.run != note->run)
            return false;
    }
    return false;
}

/* The last answer: rank 0 may wait longer than this rank would. */
static bool hear(int fd, const char *file, const struct note *note, int64_t until_ns,
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
static bool ask(const char *file, const struct note *note, int64_t until_ns,
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
    struct note note;
    bool seen = false;

    while (bell_now_ns() < until_ns) {
        const bool is_there = read_note(file, &note);
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
