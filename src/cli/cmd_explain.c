/*
 * `unshard explain`: the program that a step is, as text (src/program_print.h).
 */
#include "src/cli/command.h"
#include "src/cli/prepare.h"
#include "src/program_print.h"

/* A comment of its own, however many lines that takes. */
static void add_comment(const char *words, struct text *out)
{
    const struct term_margins margins = {
        .columns = TERM_PAGE_COLUMNS, .at = 2, .hanging = 4, .lead = "#"};
    text_add(out, "# ");
    term_wrap(words, margins, out);
}

static void add_head(const struct prepared *prepared, const struct options *options,
                     struct text *out)
{
    char name[TERM_NAME_BYTES];
    struct text words;
    text_init(&words);
    text_add(&words, "unshard explain %s --program", term_name(prepared->model.name, name));
    prepared_options_text(options, &words);
    add_comment(words.at, out);
    text_release(&words);
    prepared_fixed_text(&words);
    add_comment(words.at, out);
    text_release(&words);
    text_add(out, "# program %016llx\n", (unsigned long long)program_hash(&prepared->program));
}

static void print_program(const struct prepared *prepared, const struct options *options,
                          struct text *out)
{
    uint64_t only = option_number(options, OPTION_SECTION);
    bool expand = option_given(options, OPTION_EXPAND);
    add_head(prepared, options, out);
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
