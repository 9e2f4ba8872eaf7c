/*
 * `unshard validate`: a table of measured runs beside what is predicted for each.
 *
 * Reading, predicting and counting are validate*.c's; this decides what is shown and the exit code.
 */
#include <math.h>
#include <string.h>

#include "src/cli/command.h"
#include "src/cli/validate.h"

/* Of the rows those of the split that was asked for. */
static void take_rows(const struct options *options, const struct measured *measured,
                      struct arena *arena, struct validation *out)
{
    const char *split = option_text(options, OPTION_SPLIT);

    out->rows = arena_array(arena, struct validated_row, measured->n);
    for (uint32_t i = 0; i < measured->n; i++)
        if (!strcmp(split, "all") || !strcmp(split, measured->runs[i].split))
            out->rows[out->n++].run = &measured->runs[i];
}

static void print(const struct options *options, const struct validation *validation,
                  struct output *out)
{
    if (option_given(options, OPTION_JSON))
        validate_json(validation, &out->result);
    else if (option_given(options, OPTION_MARKDOWN))
        validate_markdown(validation, &out->result);
    else
        validate_text(validation, &out->term, &out->result);
}

enum status cmd_validate(struct options *options, struct output *out, struct err *err)
{
    const bool judged = option_given(options, OPTION_TOLERANCE);
    struct validation validation = {
        .file = options->operands[0],
        .without = option_text(options, OPTION_WITHOUT),
        .tolerance_pct = judged ? options->values[OPTION_TOLERANCE].real : NAN,
    };
    struct measured measured;
    struct arena arena;
    enum status status;

    arena_init(&arena);
    status = measured_read(validation.file, &arena, &measured, err);
    if (status == STATUS_OK) {
        take_rows(options, &measured, &arena, &validation);
        status = validate_rows(option_text(options, OPTION_CALIBRATED), &arena, &validation, err);
    }
    if (status == STATUS_OK) {
        print(options, &validation, out);
        status = validation.within ? STATUS_OK : STATUS_NO;
    }
    arena_release(&arena);
    return status;
}
