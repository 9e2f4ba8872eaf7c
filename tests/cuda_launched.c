/*
 * Ranks of the CUDA device that were started one by one and met at a file (gpu/rendezvous.h) make their
 * communicators by what went over TCP, and compute what forked ranks of the host compute.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/rendezvous.h"
#include "tests/fake_cuda.h"
#include "tests/outcome_rig.h"
#include "tests/ranks_rig.h"
#include "tests/tap.h"

static const int64_t TIMEOUT_NS = 20000000000;

struct launched {
    struct outcome_case of;
    char file[64];
};

static int be_rank(uint32_t rank, void *context)
{
    struct launched *launched = context;
    const struct run_job job = outcome_job(&launched->of, &cuda_device_ops);
    struct run_log *log = NULL;
    struct meeting meeting;
    struct err err = {0};
    enum status status =
        rendezvous_meet(launched->file, rank, job.ranks, TIMEOUT_NS, &meeting, &err);

    if (status == STATUS_OK)
        status = run_log_new(job.ranks, job.steps, job.program->n_task, &log, &err);
    if (status == STATUS_OK) {
        struct tcp_transport *transport = tcp_transport_new(&meeting);
        status = run_launched(&job, rank, &tcp_transport_ops, transport, log, &err);
        tcp_transport_free(transport);
    }
    if (status != STATUS_OK)
        tap_note("rank %u: %s", rank, err.text);
    for (uint32_t r = 0; log && rank == 0 && r < job.ranks; r++)
        for (uint32_t s = 0; s < job.steps; s++)
            launched->of.outcome->losses[r][s] = log->rank[r].results[s + 1].loss;
    run_log_free(log);
    return (int)status;
}

static void check(const char *folder, enum small small, const char *words)
{
    struct launched launched;
    struct outcome host;

    outcome_case_init(&launched.of, small, words);
    const struct run_job job = outcome_job(&launched.of, &host_device_ops);
    snprintf(launched.file, sizeof launched.file, "%s/meet", folder);
    outcome_run(&launched.of, &job, &host);
    *launched.of.outcome = (struct outcome){.shards = {0}};
    fake_cuda_init(&(struct fake_setup){.n_device = OUTCOME_MAX_RANKS, .driver = 13000});
    fake_nccl_share(job.ranks);
    is_int(ranks_run(job.ranks, NULL, be_rank, &launched, NULL), 0, "%s %s: launched ranks run",
           small_name(small), words);
    fake_nccl_unshare();
    ok(memcmp(&host, launched.of.outcome, sizeof host) == 0 && host.losses[0][0] > 0,
       "and give the bits of forked ranks on the host");
    outcome_case_release(&launched.of);
}

int main(void)
{
    char folder[] = "/tmp/unshard-cuda_launched-XXXXXX";

    if (!mkdtemp(folder))
        tap_bail("no folder");
    check(folder, SMALL_LLAMA, "--gpus 2 --param-dtype bf16");
    check(folder, SMALL_KDA, "--replicas 2 --param-dtype bf16");
    rmdir(folder);
    return tap_done();
}
