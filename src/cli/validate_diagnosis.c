/*
 * What may be wrong with one run that takes much longer, or less, than predicted; see validate.h.
 *
 * Compute misses its prediction by a factor of two at most, if the kernels are those that are meant;
 * what lies further off is the network, memory at its limit, or a row that says something else than
 * what was run.
 */
#include "src/cli/page.h"
#include "src/cli/validate.h"

static const double COMPUTE_MAY_MISS = 2, SLOWER_NEAR_LIMIT = 1.25;

/* How many times slower collectives have to be, if they alone make up for what is missing. */
static double network_factor(const struct validated_row *row)
{
    const double missing_s = row->run->step_s - row->predicted_s;
    const double comm_s = row->comm_share * row->predicted_s;
    const double hidden_s = comm_s - row->exposed_share * row->predicted_s;

    return (comm_s + hidden_s + missing_s) / comm_s;
}

static void add_slower(const struct validated_row *row, double factor, struct text *out)
{
    const struct measured_run *run = row->run;

    if (row->near_memory_limit && factor <= SLOWER_NEAR_LIMIT) {
        text_add(out, " suspect memory: it is near the limit, where retries of the allocator made "
                      "measured runs up to 25 %% slower, and are not all predicted.");
        return;
    }
    if (factor <= COMPUTE_MAY_MISS) {
        text_add(out, " suspect the kernels: a power limit, an older attention (--attention) or "
                      "operators one by one (--ops) make up for such a factor.");
        return;
    }
    if (run->gpus == 1 || row->comm_share == 0) {
        text_add(out, " suspect the row: one GPU sends nothing, and kernels are not so slow.");
        return;
    }
    text_add(out,
             " suspect the network, because compute does not get %.1f times as slow: collectives "
             "that take %.1f times as long as predicted would explain it",
             factor, network_factor(row));
    if (run->gpus > run->gpus_per_node)
        text_add(out, " (--nic says how fast a GPU's adapter is)");
    text_add(out, ".");
}

void validate_diagnosis(const struct validated_row *row, struct text *out)
{
    const double factor = row->run->step_s / row->predicted_s;
    struct text line;

    if (row->run->step_s >= row->low_s && row->run->step_s <= row->high_s) {
        text_add(out, "\nThe measured time is within the interval.\n");
        return;
    }
    text_init(&line);
    if (factor > 1) {
        text_add(&line, "%.2g times the model's time:", factor);
        add_slower(row, factor, &line);
    } else {
        text_add(&line,
                 "%.2g times as fast as the model: suspect the row, or kernels that are newer than "
                 "those which are meant (--attention, --ops, --loss).",
                 1 / factor);
    }
    text_add(out, "\n");
    page_wrap(line.at, 0, 0, out);
    text_release(&line);
}
