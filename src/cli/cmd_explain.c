/*
 * `unshard explain`: the program that a step is, as text (src/program_print.h).
 */
#include "src/cli/command.h"
#include "src/cli/prepare.h"
#include "src/program_print.h"

static void print_program(const struct prepared *prepared, const struct options *options,
                          struct text *out)
{
    uint64_t only = option_number(options, OPTION_SECTION);
    bool expand = option_given(options, OPTION_EXPAND);
    text_add(out, "# unshard explain %s --program", prepared->model.name);
    prepared_options_text(options, out);
    text_add(out, "\n#");
    prepared_fixed_text(prepared, out);
    text_add(out, "\n# program %016llx\n", (unsigned long long)program_hash(&prepared->program));
    for (unsigned section = 0; section < SECTION_N; section++) {
        if (only == SECTION_N || only == section)
            program_print(&prepared->program, (enum section_id)section, expand, out);
    }
}

enum status cmd_explain(struct options *options, struct output *out, struct err *err)
{
    if (!option_given(options, OPTION_PROGRAM))
        return err_set(err, STATUS_USAGE, "nothing to explain is named; give --program");
    struct prepared prepared;
    enum status status = prepare(options, &prepared, err);
    if (status == STATUS_OK)
        print_program(&prepared, options, &out->result);
    prepared_release(&prepared);
    return status;
}
