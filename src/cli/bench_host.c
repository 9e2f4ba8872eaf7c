/*
 * `unshard bench host`: how fast the host is as a device. Packing is a ratio to memcpy, overlap one of
 * two times of the same step, so that both say something on any machine.
 */
#include "src/cli/bench_host.h"

static void print(const struct bench_lines *lines, const struct prepared *prepared,
                  const struct options *options, struct output *out)
{
    const struct bench_fact facts[] = {
        {"instructions", "instructions", prepared->program.n_instr},
        {"tasks", "tasks", prepared->program.n_task},
    };
    const struct bench_report report = {
        .benchmark = "host",
        .prepared = prepared,
        .facts = facts,
        .lines = lines->at,
        .n_fact = sizeof facts / sizeof *facts,
        .n_line = lines->n,
    };
    bench_print(&report, options, out);
}

enum status bench_host(const struct options *options, struct output *out, struct err *err)
{
    struct bench_lines lines = {.n = 0};
    struct bench_plan plan = {0};
    enum status status = bench_pack(&lines, err);

    if (status == STATUS_OK)
        status = bench_run(&lines, &plan, err);
    if (status == STATUS_OK)
        print(&lines, &plan.execution.prepared, options, out);
    run_execution_release(&plan.execution);
    return status;
}
