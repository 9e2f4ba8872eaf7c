/*
 * Ranks for tests: fork, wait, and bytes of which every rank knows what they have to be.
 */
#include "tests/ranks_rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

enum { MAX_BYTES = 300000, ROUNDS = 8 };

void *ranks_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        tap_bail("no memory to share");
    return memory;
}

void ranks_await(const _Atomic uint32_t *counted, uint32_t n)
{
    while (*counted < n)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static pid_t start(uint32_t rank, rank_body *body, void *context)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0)
        tap_bail("cannot fork");
    if (pid == 0) {
        const int status = body(rank, context);
        fflush(stdout);
        _exit(status);
    }
    return pid;
}

static uint32_t rank_of(const pid_t *pids, uint32_t ranks, pid_t pid)
{
    uint32_t rank = 0;
    while (rank < ranks && pids[rank] != pid)
        rank++;
    return rank;
}

static void kill_all(const pid_t *pids, const int *statuses, uint32_t ranks)
{
    for (uint32_t i = 0; i < ranks; i++) {
        if (statuses[i] < 0)
            kill(pids[i], SIGKILL);
    }
}

/* One rank that has ended, or NULL rank: none has. */
static bool reap(const pid_t *pids, uint32_t ranks, struct shm_region *region, int *statuses)
{
    int status;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    const uint32_t rank = rank_of(pids, ranks, pid);

    if (pid <= 0 || rank == ranks)
        return false;
    statuses[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : RIG_KILLED;
    if (statuses[rank] != 0 && region)
        shm_region_abort(region, rank);
    return true;
}

uint32_t ranks_run(uint32_t ranks, struct shm_region *region, rank_body *body, void *context,
                   int *statuses)
{
    pid_t pids[RIG_MAX_RANKS];
    int own[RIG_MAX_RANKS];
    uint32_t n_bad = 0, n_left = ranks;
    const time_t limit = time(NULL) + RIG_LIMIT_S;

    for (uint32_t i = 0; i < ranks; i++) {
        own[i] = -1;
        pids[i] = start(i, body, context);
    }
    while (n_left > 0) {
        if (reap(pids, ranks, region, own))
            n_left--;
        else
            nanosleep(&(struct timespec){0, 200000}, NULL);
        if (time(NULL) > limit)
            kill_all(pids, own, ranks);
    }
    for (uint32_t i = 0; i < ranks; i++)
        n_bad += own[i] != 0;
    if (statuses)
        memcpy(statuses, own, ranks * sizeof(*own));
    return n_bad;
}

struct comm_group rig_group(uint32_t rank, uint32_t first, uint32_t stride, uint32_t count)
{
    uint32_t *ranks = ranks_memory(sizeof(*ranks) * (count + 1));
    struct comm_group group = {.n = 0, .ranks = ranks};

    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = first + i * stride;
        if (ranks[i] == rank) {
            group.n = count;
            group.me = i;
        }
    }
    return group;
}

void rig_setup(uint32_t rank, uint32_t ranks, int64_t timeout_ns, struct transport_setup *out)
{
    const uint32_t half = (ranks + 1) / 2;

    *out = (struct transport_setup){.rank = rank, .ranks = ranks, .timeout_ns = timeout_ns};
    out->groups[COMM_SHARD] = rig_group(rank, 0, 1, ranks);
    out->groups[COMM_REPLICATE] =
        rank < half ? rig_group(rank, 0, 1, half) : rig_group(rank, half, 1, ranks - half);
    out->groups[COMM_KEPT] = rig_group(rank, rank % 2, 2, (ranks + 1 - rank % 2) / 2);
    out->groups[GROUP_CONTROL] = rig_group(rank, 0, 1, ranks);
}

/* What rank from sends to rank to: the same wherever it is asked. */
static void fill(uint64_t seed, uint32_t from, uint32_t to, unsigned char *bytes, size_t n)
{
    uint64_t state = seed * 1000003 + from * 1009 + to;
    for (size_t i = 0; i < n; i += sizeof(state)) {
        const uint64_t word = tap_random(&state);
        memcpy(bytes + i, &word, n - i < sizeof(word) ? n - i : sizeof(word));
    }
}

static size_t pick_bytes(uint64_t *state)
{
    static const size_t corners[] = {0, 1, 65535, 65536, 65537, 131072, 131073, MAX_BYTES};
    const uint64_t pick = tap_below(state, 16);
    return pick < 8 ? corners[pick] : (size_t)tap_below(state, MAX_BYTES);
}

struct talk {
    const struct transport_ops *ops;
    void *self;
    uint32_t number;
    struct comm_group group;
    uint64_t seed;
    int n_bad;
};

static int round_of(struct talk *talk, uint64_t seed, size_t bytes)
{
    const struct comm_group *group = &talk->group;
    const uint32_t me = group->ranks[group->me];
    const void *send[RIG_MAX_RANKS];
    void *recv[RIG_MAX_RANKS];
    unsigned char *room = malloc((2 * (size_t)group->n + 1) * (bytes + 1)), *want;
    struct err err = {0};
    int n_bad = 0;

    for (uint32_t i = 0; i < group->n; i++) {
        send[i] = room + 2 * i * (bytes + 1);
        recv[i] = room + (2 * i + 1) * (bytes + 1);
        fill(seed, me, group->ranks[i], room + 2 * i * (bytes + 1), bytes);
    }
    want = room + 2 * group->n * (bytes + 1);
    enum status status = talk->ops->exchange(talk->self, talk->number, send, recv, bytes, &err);
    if (status == STATUS_OK)
        status = talk->ops->wait(talk->self, talk->number, &err);
    if (status != STATUS_OK)
        tap_note("rank %u, group %u: %s", me, talk->number, err.text);
    for (uint32_t i = 0; i < group->n && status == STATUS_OK; i++) {
        fill(seed, group->ranks[i], me, want, bytes);
        n_bad += i != group->me && memcmp(want, recv[i], bytes) != 0;
    }
    free(room);
    return n_bad + (status != STATUS_OK);
}

static void *talk_thread(void *context)
{
    struct talk *talk = context;
    uint64_t state = talk->seed + talk->number + 100 * (uint64_t)talk->group.ranks[0];

    for (uint64_t i = 0; i < ROUNDS; i++) {
        const size_t bytes = pick_bytes(&state);
        talk->n_bad += round_of(talk, talk->seed * 64 + talk->number * 16 + i, bytes);
    }
    return NULL;
}

int rig_check_exchanges(const struct transport_ops *ops, void *self,
                        const struct transport_setup *setup, uint64_t seed)
{
    struct talk talks[GROUP_N] = {0};
    pthread_t threads[GROUP_N];
    int n_bad = 0;

    for (uint32_t i = 0; i < GROUP_N; i++) {
        talks[i] = (struct talk){ops, self, i, setup->groups[i], seed, 0};
        if (talks[i].group.n && pthread_create(&threads[i], NULL, talk_thread, &talks[i]) != 0)
            return 1;
    }
    for (uint32_t i = 0; i < GROUP_N; i++) {
        if (talks[i].group.n)
            pthread_join(threads[i], NULL);
        n_bad += talks[i].n_bad;
    }
    return n_bad;
}
