/*
 * Time, ns by ns; see slow_engine.h. Between two of them everything that can happen happens, until
 * nothing changes.
 */
#include "tests/slow_engine.h"

enum { SHARES = 3 * 4 * 5 }; /* of a wire, split evenly among up to six */
_Static_assert(COMM_N == 6, "1 to COMM_N divide SHARES");

static const struct task *task_of(const struct slow_engine *slow, int i)
{
    return &slow->rig->program.tasks[slow->calls[i].id];
}

bool slow_engine_is_collective(const struct slow_engine *slow, int i)
{
    return slow->calls[i].op == INSTR_LAUNCH && !slow->calls[i].drain &&
           task_of(slow, i)->comm != COMM_NONE;
}

/* The last RECORD of the event before call i; where there is none the first after it. */
static int find_target(const struct slow_engine *slow, int i)
{
    for (int j = i - 1; j >= 0; j--) {
        if (slow->calls[j].op == INSTR_RECORD && slow->calls[j].id == slow->calls[i].id)
            return j;
    }
    for (int j = i + 1; j < slow->n_call; j++) {
        if (slow->calls[j].op == INSTR_RECORD && slow->calls[j].id == slow->calls[i].id)
            return j;
    }
    return -1;
}

static bool reached(const struct slow_engine *slow, int i)
{
    const int target = slow->calls[i].target;
    return target >= 0 && slow->calls[target].done;
}

/* All calls before i on its stream are done; same_comm: all collectives of its communicator are. */
static bool heads(const struct slow_engine *slow, int i, bool same_comm)
{
    for (int j = 0; j < i; j++) {
        const struct call *call = &slow->calls[j];
        if (call->done || call->op == INSTR_HOST_WAIT || call->drain)
            continue;
        if (same_comm ? slow_engine_is_collective(slow, j) &&
                            task_of(slow, j)->comm == task_of(slow, i)->comm
                      : call->stream == slow->calls[i].stream)
            return false;
    }
    return true;
}

static void issue_launch(struct slow_engine *slow, struct call *call)
{
    const struct prices *prices = &slow->rig->prices;
    const struct task *task = &slow->rig->program.tasks[call->id];
    const bool unshard =
        task->kind == TASK_COPY_IN || task->kind == TASK_ALL_GATHER || task->kind == TASK_COPY_OUT;
    int64_t cost = task->kernels * prices->host_launch_ns;
    int64_t first = task->kernels > 0 ? prices->host_launch_ns : 0;

    if (prices->host_all_gather_ns > 0 && unshard)
        first = cost = task->kind == TASK_ALL_GATHER ? prices->host_all_gather_ns : 0;
    call->worked_ns = -1;
    call->first_ns = slow->now_ns + first;
    call->last_ns = slow->now_ns + cost + prices->last_ns[call->id];
    call->left = prices->task_ns[call->id] *
                 (task->comm != COMM_NONE ? SHARES : 1000 + prices->contention_permille);
    slow->host_busy_ns = slow->now_ns + cost;
    slow->giving_back = false;
}

/* True where the host makes its next call now. */
static bool host_goes_on(struct slow_engine *slow)
{
    if (slow->n_issued == slow->n_call || slow->now_ns < slow->host_busy_ns)
        return false;
    struct call *call = &slow->calls[slow->n_issued];
    if (call->drain) {
        for (int i = 0; i < slow->n_issued; i++) {
            if (!slow->calls[i].done)
                return false;
        }
        call->done = true;
        if (!slow->giving_back)
            slow->host_busy_ns = slow->now_ns + slow->rig->prices.host_retry_ns;
        slow->giving_back = true;
    } else if (call->takes) {
        slow->giving_back = false;
        call->done = true;
    } else if (call->op == INSTR_HOST_WAIT) {
        if (!reached(slow, slow->n_issued))
            return false;
        call->done = true;
    } else if (call->op == INSTR_LAUNCH) {
        issue_launch(slow, call);
    }
    slow->n_issued++;
    return true;
}

/* True where something about an issued call changes now. */
static bool call_goes_on(struct slow_engine *slow, int i)
{
    struct call *call = &slow->calls[i];

    if (call->done || !heads(slow, i, false))
        return false;
    if (call->op == INSTR_RECORD)
        return call->done = true;
    if (call->op == INSTR_WAIT)
        return call->done = reached(slow, i);
    if (!call->started) {
        if (slow->now_ns < call->first_ns ||
            (slow_engine_is_collective(slow, i) && !heads(slow, i, true)))
            return false;
        call->start_ns = slow->now_ns;
        return call->started = true;
    }
    if (call->left > 0)
        return false;
    if (call->worked_ns < 0)
        call->worked_ns = slow->now_ns;
    if (slow->now_ns < call->last_ns)
        return false;
    call->end_ns = slow->now_ns;
    return call->done = true;
}

static bool runs(const struct slow_engine *slow, int i)
{
    const struct call *call = &slow->calls[i];
    return call->op == INSTR_LAUNCH && call->started && !call->done;
}

/* Shards use the same wire whatever they do, replicas another if they alone cross nodes, or not. */
static bool same_wire(const struct slow_engine *slow, int i, int j)
{
    const enum comm a = (enum comm)task_of(slow, i)->comm, b = (enum comm)task_of(slow, j)->comm;
    const struct comm_ranks x = comm_ranks_of(&slow->rig->plan, a);
    const struct comm_ranks y = comm_ranks_of(&slow->rig->plan, b);
    const bool x_inside = x.ranks == x.per_node, y_inside = y.ranks == y.per_node;

    if (a != COMM_REPLICATE && b != COMM_REPLICATE)
        return true;
    return a == b || x_inside == y_inside;
}

/* Work that i does in the next ns. */
static int64_t speed(const struct slow_engine *slow, int i)
{
    const int64_t full = 1000 + slow->rig->prices.contention_permille;
    const bool collective = slow_engine_is_collective(slow, i);
    int64_t n = 0, n_on_wire = 0;

    for (int j = 0; j < slow->n_issued; j++) {
        if (!slow_engine_is_collective(slow, j) || !runs(slow, j))
            continue;
        n++;
        n_on_wire += collective && same_wire(slow, i, j);
    }
    if (collective)
        return SHARES / n_on_wire;
    return slow->calls[i].stream == STREAM_C && n > 0 ? 1000 : full;
}

/* One ns passes; false where nobody waits for time, so that nothing will ever change. */
static bool time_goes_on(struct slow_engine *slow)
{
    bool waiting = slow->now_ns < slow->host_busy_ns;

    for (int i = 0; i < slow->n_issued; i++) {
        struct call *call = &slow->calls[i];
        waiting |= runs(slow, i) ||
                   (call->op == INSTR_LAUNCH && !call->done && slow->now_ns < call->first_ns);
        if (runs(slow, i))
            call->left -= speed(slow, i);
    }
    slow->now_ns++;
    return waiting;
}

void slow_engine_run(struct slow_engine *slow)
{
    for (int i = 0; i < slow->n_call; i++)
        slow->calls[i].target = find_target(slow, i);
    do {
        bool changed;
        do {
            changed = host_goes_on(slow);
            for (int i = 0; i < slow->n_issued; i++)
                changed |= call_goes_on(slow, i);
        } while (changed);
    } while (time_goes_on(slow));
    for (int i = 0; i < slow->n_call; i++)
        slow->deadlock |= !slow->calls[i].done;
}
