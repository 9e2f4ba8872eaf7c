/*
 * The parser that reads a command line with the option table; see options.h.
 *
 * Every option has a long name; -h and -o are the only letters. Which command takes which option is
 * a column of the table, so that a new command needs no parser of its own.
 */
#include "src/cli/options.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/command.h"

enum {
    OPERAND = 1,      /* getopt's answer for what is no option */
    FIRST_LONG = 256, /* past all letters */
};

static size_t count_names(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

enum status options_hint(struct err *err, const char *name, const char *const *names,
                         const char *otherwise)
{
    int nearest = text_nearest(name, names, count_names(names));
    size_t length = strlen(err->text);
    char *end = err->text + length;
    if (nearest >= 0)
        snprintf(end, sizeof err->text - length, "; did you mean '%s'?", names[nearest]);
    else
        snprintf(end, sizeof err->text - length, "; %s", otherwise);
    return err->status;
}

void options_set(struct options *options, enum option_id id, uint64_t number, const char *text)
{
    options->values[id].number = number;
    options->values[id].text = text;
}

static enum status parse_word(const struct option_info *info, const char *text, uint64_t *out,
                              struct err *err)
{
    for (size_t i = 0; info->words[i]; i++) {
        if (!strcmp(text, info->words[i])) {
            *out = i;
            return STATUS_OK;
        }
    }
    char all[160] = "it takes";
    for (size_t i = 0; info->words[i]; i++) {
        size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s %s", i ? "," : "", info->words[i]);
    }
    if (info->kind == OPTION_WORD_OR_COUNT)
        snprintf(all + strlen(all), sizeof all - strlen(all), ", or %s",
                 info->before_count ? info->argument : "a number");
    err_set(err, STATUS_USAGE, "--%s: unknown value '%.80s'", info->name, text);
    return options_hint(err, text, info->words, all);
}

static enum status parse_words(const struct option_info *info, const char *text, uint64_t *out,
                               struct err *err)
{
    *out = 0;
    for (const char *word = text;; word++) {
        const size_t length = strcspn(word, ",");
        char one[96];
        uint64_t index = 0;
        snprintf(one, sizeof one, "%.*s", (int)length, word);
        enum status status = parse_word(info, one, &index, err);
        if (status != STATUS_OK)
            return status;
        *out |= UINT64_C(1) << index;
        word += length;
        if (!*word)
            return STATUS_OK;
    }
}

static enum status parse_count(const struct option_info *info, const char *text, uint64_t *out,
                               struct err *err)
{
    uint64_t most = info->most ? info->most : UINT64_MAX;
    if (!*text || text[strspn(text, "0123456789")])
        return err_set(err, STATUS_USAGE, "--%s: '%.80s' is not a whole number from %llu on",
                       info->name, text, (unsigned long long)info->least);
    if (!text_to_u64(text, out) || *out > most)
        return err_set(err, STATUS_USAGE, "--%s: %.80s is too large, at most %llu", info->name,
                       text, (unsigned long long)most);
    if (*out < info->least)
        return err_set(err, STATUS_USAGE, "--%s: %.80s is too small, at least %llu", info->name,
                       text, (unsigned long long)info->least);
    return STATUS_OK;
}

/* What is a size but for its number passes 64 bits. */
static bool is_large_size(const char *text)
{
    char one[32];
    uint64_t bytes;
    size_t digits = strspn(text, "0123456789");
    snprintf(one, sizeof one, "1%.30s", text + digits);
    return digits > 0 && text_to_bytes(one, &bytes);
}

static enum status parse_bytes(const struct option_info *info, const char *text, uint64_t *out,
                               struct err *err)
{
    if (text_to_bytes(text, out))
        return *out > 0 ? STATUS_OK
                        : err_set(err, STATUS_USAGE, "--%s: '%.80s' is too small, at least 1 byte",
                                  info->name, text);
    if (is_large_size(text))
        return err_set(err, STATUS_USAGE, "--%s: '%.80s' is too large, at most %llu bytes",
                       info->name, text, (unsigned long long)UINT64_MAX);
    return err_set(err, STATUS_USAGE,
                   "--%s: '%.80s' is not a size; write it like 72GiB, 80GB or plain bytes",
                   info->name, text);
}

/* A number above 0, in decimal notation. */
static enum status parse_real(const struct option_info *info, const char *text, double *out,
                              struct err *err)
{
    char *end;
    const double value = strtod(text, &end);
    if (!*text || *end || text[strspn(text, "0123456789.eE+-")] || !(value > 0 && value < 1e300))
        return err_set(err, STATUS_USAGE, "--%s: '%.80s' is not a number above 0", info->name,
                       text);
    *out = value;
    return STATUS_OK;
}

/* The number in a value that is no word, or NULL. */
static const char *find_count(const struct option_info *info, const char *text)
{
    const char *before = info->before_count;
    if (before)
        return strncmp(text, before, strlen(before)) ? NULL : text + strlen(before);
    return *text && !text[strspn(text, "0123456789")] ? text : NULL;
}

/* A number is kept beside the index that comes after all words. */
static enum status parse_word_or_count(const struct option_info *info, const char *text,
                                       struct option_value *out, struct err *err)
{
    const char *count = find_count(info, text);
    if (!count)
        return parse_word(info, text, &out->number, err);
    out->number = count_names(info->words);
    return parse_count(info, count, &out->count, err);
}

static enum status parse_value(const struct option_info *info, const char *text,
                               struct option_value *out, struct err *err)
{
    switch (info->kind) {
    case OPTION_COUNT:
        return parse_count(info, text, &out->number, err);
    case OPTION_BYTES:
        return parse_bytes(info, text, &out->number, err);
    case OPTION_REAL:
        return parse_real(info, text, &out->real, err);
    case OPTION_WORD:
        return parse_word(info, text, &out->number, err);
    case OPTION_WORD_OR_COUNT:
        return parse_word_or_count(info, text, out, err);
    case OPTION_WORDS:
        return parse_words(info, text, &out->number, err);
    case OPTION_SWITCH:
    case OPTION_TEXT:
        out->number = 1;
        return STATUS_OK;
    }
    return STATUS_OK;
}

enum status options_take(struct options *options, enum option_id id, const char *text,
                         struct err *err)
{
    struct option_value value = {.text = text, .given = true};
    enum status status = parse_value(&option_table[id], text, &value, err);
    if (status == STATUS_OK)
        options->values[id] = value;
    return status;
}

/* A list is kept as it was typed: only who compares its values knows where one ends. */
static enum status set_option(const struct command *command, struct options *options,
                              enum option_id id, const char *text, struct err *err)
{
    if (option_table[id].list && command->bit == COMMAND_PLAN) {
        options->values[id] = (struct option_value){.text = text, .given = true};
        return STATUS_OK;
    }
    return options_take(options, id, text ? text : "yes" /* a switch */, err);
}

const char *option_initial(enum option_id id, unsigned command_bit)
{
    const struct option_info *info = &option_table[id];
    if (command_bit == COMMAND_RUN && info->initial_run)
        return info->initial_run;
    return info->initial;
}

static void set_defaults(const struct command *command, struct options *out)
{
    *out = (struct options){0};
    for (unsigned id = 0; id < OPTION_N; id++) {
        const char *initial = option_initial((enum option_id)id, command->bit);
        if (!initial || !(option_table[id].commands & command->bit))
            continue;
        enum status status = set_option(command, out, (enum option_id)id, initial, NULL);
        assert(status == STATUS_OK);
        (void)status;
        out->values[id].given = false;
    }
}

static bool is_one_of(const char *text, const char *const *names)
{
    while (*names && strcmp(*names, text))
        names++;
    return *names != NULL;
}

/* The next operand; the first one may have to be one of the command's actions. */
static enum status add_operand(const struct command *command, const char *text, struct options *out,
                               struct err *err)
{
    size_t n = 0, most = command->n_more;
    most += (command->actions != NULL) + (command->operand != NULL);
    while (n < most && out->operands[n])
        n++;
    if (n == most)
        return err_set(err, STATUS_USAGE, "extra argument '%.80s'; see 'unshard help %s'", text,
                       command->name);
    if (n == 0 && command->actions && !is_one_of(text, command->actions)) {
        char usage[120];
        snprintf(usage, sizeof usage, "usage: unshard %s %s", command->name, command->synopsis);
        err_set(err, STATUS_USAGE, "unknown word '%.80s'", text);
        return options_hint(err, text, command->actions, usage);
    }
    out->operands[n] = text;
    return STATUS_OK;
}

/* name as typed, without its value. */
static enum status unknown_option(const struct command *command, const char *name, struct err *err)
{
    const char *names[OPTION_N + 1] = {NULL};
    const char *bare = name + strspn(name, "-");
    size_t n = 0;
    for (unsigned id = 0; id < OPTION_N; id++) {
        if (option_table[id].commands & command->bit)
            names[n++] = option_table[id].name;
        else if (!strcmp(bare, option_table[id].name))
            return err_set(err, STATUS_USAGE, "'%s' takes no --%s; see 'unshard help %s'",
                           command->name, bare, command->name);
    }
    int nearest = bare[1] ? text_nearest(bare, names, n) : -1; /* a letter is near to anything */
    if (nearest >= 0)
        return err_set(err, STATUS_USAGE, "unknown option '%s'; did you mean '--%s'?", name,
                       names[nearest]);
    return err_set(err, STATUS_USAGE, "unknown option '%s'; see 'unshard help %s'", name,
                   command->name);
}

/* What getopt refused: optopt is a letter, the value of a long option that it knows, or 0. */
static enum status refused_option(const struct command *command, int answer, char **argv,
                                  struct err *err)
{
    char name[96];
    if (optopt >= FIRST_LONG)
        return err_set(err, STATUS_USAGE, "--%s %s; see 'unshard help %s'",
                       option_table[optopt - FIRST_LONG].name,
                       answer == ':' ? "needs a value" : "takes no value", command->name);
    if (optopt == 0)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[optind - 1], "="), argv[optind - 1]);
    else
        snprintf(name, sizeof name, "-%c", optopt);
    if (optopt == 'o' && answer == ':')
        return err_set(err, STATUS_USAGE, "-o needs a value; see 'unshard help %s'", command->name);
    return unknown_option(command, name, err);
}

static void fill_getopt_table(const struct command *command, struct option *out)
{
    for (unsigned id = 0; id < OPTION_N; id++) {
        const struct option_info *info = &option_table[id];
        if (info->commands & command->bit)
            *out++ = (struct option){
                .name = info->name,
                .has_arg = info->kind == OPTION_SWITCH ? no_argument : required_argument,
                .val = (int)(FIRST_LONG + id),
            };
    }
    *out = (struct option){0};
}

/* getopt takes any beginning of a name, which would bind scripts to the options of today. */
static enum status take_long_option(const struct command *command, unsigned id, char **argv,
                                    struct options *out, struct err *err)
{
    const char *typed = argv[optind - 1];
    if (optarg && optarg == typed) /* "--gpus 8", not "--gpus=8" */
        typed = argv[optind - 2];
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
    if (strcmp(name + strspn(name, "-"), option_table[id].name) != 0)
        return unknown_option(command, name, err);
    return set_option(command, out, (enum option_id)id, optarg, err);
}

static enum status take_argument(const struct command *command, int answer, char **argv,
                                 struct options *out, struct err *err)
{
    switch (answer) {
    case OPERAND:
        return add_operand(command, optarg, out, err);
    case 'h':
        return set_option(command, out, OPTION_HELP, NULL, err);
    case 'o':
        return set_option(command, out, OPTION_OUTPUT, optarg, err);
    case ':':
    case '?':
        return refused_option(command, answer, argv, err);
    default:
        return take_long_option(command, (unsigned)(answer - FIRST_LONG), argv, out, err);
    }
}

enum status options_parse(const struct command *command, int argc, char **argv, struct options *out,
                          struct err *err)
{
    struct option table[OPTION_N + 1];
    fill_getopt_table(command, table);
    set_defaults(command, out);
    out->n_typed = argc;
    out->typed = argv;

    enum status status = STATUS_OK;
    int answer;
    opterr = 0;
    optind = 0; /* from the start, also where this is not the first line that is parsed */
    /* "-": operands come as they stand, POSIXLY_CORRECT or not; ":": report missing values */
    const char *letters = option_table[OPTION_OUTPUT].commands & command->bit ? "-:ho:" : "-:h";
    while (status == STATUS_OK && (answer = getopt_long(argc, argv, letters, table, NULL)) != -1)
        status = take_argument(command, answer, argv, out, err);
    while (status == STATUS_OK && optind < argc) /* after "--" */
        status = add_operand(command, argv[optind++], out, err);
    return status;
}
