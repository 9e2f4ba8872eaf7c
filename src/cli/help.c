/*
 * Help as text; see help.h. The layout of an option's line is relied on by the completion and by
 * the tests: two blanks, the option, its value, then words that end with the default in brackets. A
 * line of a value that ends with a bar goes on with the first word of the next one.
 */
#include "src/cli/help.h"

#include <string.h>

enum { VALUE_COLUMN = 6, TEXT_COLUMN = 30 };

/* Words from this column on. */
static void add_words(const char *words, unsigned column, struct text *out)
{
    const struct term_margins margins = {
        .columns = TERM_HELP_COLUMNS, .at = column, .hanging = column};
    term_wrap(words, margins, out);
}

/* *line: where the line begins in out. */
static void add_choice(const char *choice, bool last, size_t *line, struct text *out)
{
    if (out->length - *line + strlen(choice) + !last > TERM_HELP_COLUMNS) {
        text_add(out, "\n");
        *line = out->length;
        text_pad(out, VALUE_COLUMN);
    }
    text_add(out, "%s%s", choice, last ? "" : "|");
}

static void add_value(const struct option_info *info, size_t line, struct text *out)
{
    const char *const *word = info->words;

    if (word || info->argument)
        text_add(out, " ");
    for (; word && *word; word++)
        add_choice(*word, !word[1] && !info->argument, &line, out);
    if (info->argument)
        add_choice(info->argument, true, &line, out);
}

static void add_option(const struct command *command, enum option_id id, struct text *out)
{
    const struct option_info *info = &option_table[id];
    const char *initial = option_initial(id, command->bit);
    size_t start = out->length;
    text_add(out, "  --%s", info->name);
    add_value(info, start, out);
    if (out->length - start > TEXT_COLUMN - 2)
        text_add(out, "\n");
    text_pad(out, TEXT_COLUMN);

    struct text words;
    text_init(&words);
    text_add(&words, "%s", info->help);
    if (info->list && command->bit == COMMAND_PLAN)
        text_add(&words, "; several are compared");
    if (initial)
        text_add(&words, " [%s]", initial);
    if (info->otherwise)
        text_add(&words, " (default: %s)", info->otherwise);
    add_words(words.at, TEXT_COLUMN, out);
    text_release(&words);
}

void help_command(const struct command *command, struct text *out)
{
    text_add(out, "usage: unshard %s %s%s[OPTION]...\n\n", command->name, command->synopsis,
             *command->synopsis ? " " : "");
    add_words(command->about, 0, out);
    text_add(out, "\noptions:\n");
    for (unsigned id = 0; id < OPTION_N; id++) {
        if (option_table[id].commands & command->bit)
            add_option(command, (enum option_id)id, out);
    }
}

void help_overview(struct text *out)
{
    text_add(out, "usage: unshard COMMAND [OPTION]...\n\n");
    add_words("How to cut a model into FSDP units, and what a training step then costs in time and "
              "memory: answered by simulation, before anybody buys GPU time.",
              0, out);
    text_add(out, "\ncommands:\n");
    for (const struct command *command = commands; command->name; command++) {
        size_t start = out->length;
        text_add(out, "  %s %s", command->name, command->synopsis);
        if (out->length - start > TEXT_COLUMN - 2)
            text_add(out, "\n");
        text_pad(out, TEXT_COLUMN);
        add_words(command->summary, TEXT_COLUMN, out);
    }
    text_add(out, "\n'unshard help COMMAND' tells a command's options, 'unshard --version' the "
                  "version.\n\nexit codes:\n");
    text_add(out, "  0  ok\n"
                  "  1  the answer is no: over an explicit --memory, findings in a trace\n"
                  "  2  the command line asks for something that does not exist\n"
                  "  3  a device that is not usable here\n"
                  "  4  a file that cannot be read or written, or makes no sense\n"
                  "  5  the program that was built is not safe to run, or a run failed\n"
                  "  6  the run history cannot be read or written\n");
}
