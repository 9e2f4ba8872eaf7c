/*
 * `unshard compare`: two stored runs side by side. Reads the history and changes nothing; that the
 * runs differ is an answer, not a failure.
 */
#include "src/cli/command.h"
#include "src/cli/compare.h"
#include "src/cli/history.h"

static enum status read_runs(const struct options *options, struct arena *arena,
                             struct stored_run runs[COMPARE_RUNS], struct err *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < COMPARE_RUNS && status == STATUS_OK; i++) {
        if (!options->operands[i])
            return err_set(err, STATUS_USAGE,
                           "no second run; give two numbers of 'unshard history list', or last");
        status = history_read(options, options->operands[i], arena, &runs[i].id, &runs[i].run, err);
    }
    return status;
}

enum status cmd_compare(struct options *options, struct output *out, struct err *err)
{
    struct stored_run runs[COMPARE_RUNS];
    struct comparison comparison;
    struct arena arena;
    arena_init(&arena);
    enum status status = read_runs(options, &arena, runs, err);
    if (status == STATUS_OK)
        status = compare_runs(runs, &arena, &comparison, err);
    if (status != STATUS_OK)
        goto out;
    compare_paired(&comparison, &arena);
    if (option_given(options, OPTION_JSON))
        compare_json(&comparison, &out->result);
    else
        compare_text(&comparison, &arena, &out->term, &out->result);
out:
    arena_release(&arena);
    return status;
}
