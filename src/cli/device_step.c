/*
 * A small step on the device, as `unshard run` has it, beside the same step on the host and beside its
 * simulation: losses, memory, time.
 */
#include <math.h>
#include <stdio.h>

#include "src/cli/device_part.h"
#include "src/cli/run_execute.h"

/* Of BF16 models after a few steps: exp, tanh and sums of products are in another order. */
static const double MOST_APART_PERCENT = 1;

/* Parsed as `unshard run llama-tiny --ranks 1` is; the table of commands is the program's. */
static const struct command run_command = {.name = "run", .bit = COMMAND_RUN, .operand = "model"};

static enum status run_on(enum device device, struct options *options, struct run_execution *out,
                          struct err *err)
{
    static char run[] = "run", model[] = "llama-tiny", ranks[] = "--ranks", one[] = "1";
    static char *argv[] = {run, model, ranks, one, NULL}; /* the options point into it */
    static const char *const names[DEVICE_N] = {
#define X(id, name) [DEVICE_##id] = name,
        DEVICES(X)
#undef X
    };
    enum status status = options_parse(&run_command, 4, argv, options, err);

    if (status == STATUS_OK)
        status = options_take(options, OPTION_DEVICE, names[device], err);
    return status == STATUS_OK ? run_execute(options, NULL, out, err) : status;
}

/* The largest difference of any step, in percent of the host's loss. */
static double losses_apart(const struct run_real *a, const struct run_real *b)
{
    double most = a->n_step == b->n_step ? 0 : INFINITY;

    for (uint32_t i = 0; i < a->n_step && i < b->n_step; i++) {
        const double apart = 100 * fabs(a->steps[i].loss / b->steps[i].loss - 1);
        most = isnan(apart) ? INFINITY : fmax(most, apart);
    }
    return most;
}

static void say(struct device_part_run *run, const struct run_report *there,
                const struct run_report *here)
{
    const double apart = losses_apart(&there->real, &here->real);
    const int64_t predicted_ns = there->sim->time[SPREAD_MID].step_ns;

    device_tell(run, "steps", "steps that ran", CHECK_COUNT, there->real.n_step);
    device_tell(run, "losses_apart", "losses from those of the host, at the most", CHECK_PERCENT,
                apart);
    device_faults(run, "losses", "losses that are further from the host's than 1 %",
                  !(apart <= MOST_APART_PERCENT));
    device_faults(run, "memory", "checks of memory in which reserved bytes are not mapped bytes",
                  !there->memory_agrees);
    device_tell(run, "step_ms", "a step, median", CHECK_MS, (double)there->median_ns * 1e-6);
    device_tell(run, "predicted_ms", "predicted for it by the default cluster", CHECK_MS,
                (double)predicted_ns * 1e-6);
}

enum status device_part_step(struct device_part_run *run, struct err *err)
{
    static struct options options[2];
    struct run_execution there = {0}, here = {0};
    const enum device device = run->ops == &host_device_ops ? DEVICE_HOST : DEVICE_CUDA;
    enum status status = run_on(device, &options[0], &there, err);

    if (status == STATUS_OK)
        status = run_on(DEVICE_HOST, &options[1], &here, err);
    if (status == STATUS_OK)
        say(run, &there.report, &here.report);
    run_execution_release(&there);
    run_execution_release(&here);
    return status;
}
