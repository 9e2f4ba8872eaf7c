/*
 * What is measured: llama3-405b on 512 GPUs, and runs as long as one likes made of its step.
 *
 * A repeated run is one that could be: nothing overlaps on a stream, samples are in order of time,
 * labels recur as they do from step to step.
 */
#include "src/cli/bench.h"
#include "src/cli/evaluate.h"
#include "src/cli/record.h"

enum status bench_prepare(struct options *options, struct prepared *out, struct err *err)
{
    static char sim[] = "sim", model[] = "llama3-405b", gpus[] = "--gpus=512";
    static char *argv[] = {sim, model, gpus, NULL}; /* the options point into it */
    enum status status = options_parse(command_find("sim"), 3, argv, options, err);
    return status == STATUS_OK ? prepare(options, out, err) : status;
}

enum status bench_step_make(struct bench_step *step, struct err *err)
{
    *step = (struct bench_step){0};
    enum status status = bench_prepare(&step->options, &step->prepared, err);
    if (status == STATUS_OK)
        status = evaluate(&step->options, &step->prepared, &step->report, err);
    if (status == STATUS_OK)
        record_run(&step->report, RUN_SIM, "unshard sim llama3-405b --gpus=512",
                   &step->prepared.arena, &step->run);
    return status;
}

void bench_step_release(struct bench_step *step)
{
    prepared_release(&step->prepared);
}

/* From the first thing that happens in a run to the last. */
static int64_t length_ns(const struct run *run)
{
    int64_t begin_ns = 0, end_ns = 0;
    for (uint32_t i = 0; i < run->n_task; i++) {
        const struct run_task *task = &run->tasks[i];
        const int64_t first_ns =
            task->launch_ns < task->start_ns ? task->launch_ns : task->start_ns;
        const int64_t last_ns = task->launched_ns > task->end_ns ? task->launched_ns : task->end_ns;
        begin_ns = first_ns < begin_ns ? first_ns : begin_ns;
        end_ns = last_ns > end_ns ? last_ns : end_ns;
    }
    return end_ns - begin_ns;
}

void bench_repeat(const struct run *step, uint32_t n_task, uint32_t n_sample, struct arena *arena,
                  struct run *out)
{
    const int64_t period_ns = length_ns(step);
    *out = *step;
    out->n_task = n_task;
    out->tasks = arena_take(arena, n_task * sizeof *out->tasks);
    for (uint32_t i = 0; i < n_task; i++) {
        const int64_t later_ns = i / step->n_task * period_ns;
        struct run_task *task = &out->tasks[i];
        *task = step->tasks[i % step->n_task];
        task->launch_ns += later_ns;
        task->launched_ns += later_ns;
        task->start_ns += later_ns;
        task->end_ns += later_ns;
    }
    out->n_sample = n_sample;
    out->samples = arena_take(arena, n_sample * sizeof *out->samples);
    for (uint32_t i = 0; i < n_sample; i++) {
        out->samples[i] = step->samples[i % step->n_sample];
        out->samples[i].at_ns += i / step->n_sample * period_ns;
    }
}
