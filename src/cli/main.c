/*
 * The program `unshard`: finds the subcommand, parses its options, prints what it answers.
 *
 * The only place that writes to stdout and, but for progress, to stderr. The exit code is the command's status.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/command.h"
#include "src/cli/help.h"
#include "src/cli/plan_file.h"
#include "src/version.h"

const char unshard_version[] = UNSHARD_VERSION;

static const char *const list_or_show[] = {"list", "show", NULL};
static const char *const history_words[] = {"list", NULL};
static const char *const trace_words[] = {"export", "check", "show", NULL};
static const char *const device_words[] = {"list", "check", "store", NULL};
static const char *const benchmarks[] = {"host", "search", "sim", "store", "trace", NULL};

#define MODEL_WORDS                                                                              \
    "MODEL is a name of 'unshard model list', a Hugging Face config.json (llama, mpt, gpt2), a " \
    "folder that holds one (weights beside it must agree with it), or what 'unshard model show " \
    "--json' printed."

const struct command commands[] = {
    {"sim", COMMAND_SIM, "MODEL", "simulate a training step: its time, its memory, does it fit",
     .about =
         "Simulate one training step under FSDP2: how long it takes, how much communication "
         "is exposed, how much memory is needed and what is in it. The third step is reported "
         "(the mean of several where the allocator retries), with the memory of the first and of "
         "initialisation beside it. " MODEL_WORDS,
     .operand = "model", .operand_hint = "give a name of 'unshard model list' or a config.json",
     .run = cmd_sim},
    {"plan", COMMAND_PLAN, "MODEL", "the best way to cut a model into units, or several compared",
     .about =
         "Find the best way to cut a model into units: under a limit of memory the plan whose step "
         "is fastest, some that tie with it in fewer units, and others that need less. Every plan is "
         "judged by the event simulation; small spaces are gone through whole, and of others it is "
         "said how much slower the first can be than the fastest. What an option fixes is not searched. With "
         "--units plans are compared that are named: --units, --reshard, --prefetch, "
         "--prefetch-backward, --ac, --allocator, --batch and others take several values, separated by commas, "
         "and every combination is a plan; ';' separates plans of --units that are lists of patterns, "
         "as in 'block;model.layers.*,lm_head'. Where a search finds nothing that fits, or nothing "
         "fits into an explicit --memory, the exit code is 1. In the units that were found NxM is N units of M blocks, k after them says that "
         "they keep their parameters from forward to backward. " MODEL_WORDS,
     .operand = "model", .operand_hint = "give a name of 'unshard model list' or a config.json",
     .run = cmd_plan},
    {"run", COMMAND_RUN, "MODEL", "really run training steps, on ranks of this machine",
     .about =
         "Execute the program that 'unshard sim --ops native --behavior unshard' simulates: real "
         "memory at the same addresses, real casts and collectives, real gradients, on processes "
         "of this machine. What was measured is stored and printed beside the prediction. A run "
         "that fails is stored with what each rank finished last; its exit code is 5. " MODEL_WORDS,
     .operand = "model", .operand_hint = "give a name of 'unshard model list' or a config.json",
     .run = cmd_run},
    {"explain", COMMAND_EXPLAIN, "RUN | MODEL", "why a step takes that long, and what would help",
     .about = "Tell why a step takes as long as it does: its critical path; the time in which "
              "nothing computes, by what held it; the five costliest stalls; and remedies, each "
              "of them simulated, by what they gain. With --program print the program instead: "
              "every allocation, launch, event and wait, in the order in which the host issues "
              "them. RUN is a number of 'unshard history list', or 'last'; it is simulated again "
              "from its model and its options, but for those that are given. " MODEL_WORDS,
     .operand = "run or model",
     .operand_hint = "give a number of 'unshard history list', a name of 'unshard model list' or "
                     "a config.json",
     .run = cmd_explain},
    {"compare", COMMAND_COMPARE, "RUN RUN", "two runs side by side, task by task",
     .about = "Put two stored runs beside one another: whether they are the same program at the "
              "same addresses, the options that differ, each number with its difference, and the "
              "durations of tasks by kind and, where the programs are the same, one by one. Bytes "
              "differ exactly, times in percent of the second run. RUN is a number of 'unshard "
              "history list', or 'last'; the usual pair is a simulation and a real run.",
     .operand = "run", .operand_hint = "give two numbers of 'unshard history list', or last",
     .n_more = 1, .run = cmd_compare},
    {"validate", COMMAND_VALIDATE, "FILE.csv", "measured runs beside what is predicted for them",
     .about = "Predict each run of a table of measurements, and tell how far off that is: a line a "
              "run, and for each platform the errors, whether runs of one model are put in the "
              "right order, and how many lie between low and high. A run that cannot be expressed "
              "is listed with its reason; one of low trust enters no statistic. Of a single run "
              "that misses its prediction it is told what to suspect. Columns are those of "
              "doc/accuracy.md.",
     .operand = "file", .operand_hint = "give a CSV table of measured runs", .run = cmd_validate},
    {"check", COMMAND_CHECK, "MODEL", "may these parameters share their units?",
     .about = "Tell which behavior can execute which arrangement of a model whose parameters "
              "compute in several dtypes, and for each that cannot, the rules that stand against "
              "it. The exit code is 1 where the units as they are (native) cannot be executed "
              "under --behavior. " MODEL_WORDS,
     .operand = "model", .operand_hint = "give a name of 'unshard model list' or a config.json",
     .run = cmd_check},
    {"model", COMMAND_MODEL, "list | show MODEL", "built-in models; a model's parameters and sizes",
     .about = "List the models that need no file, or show one with the shapes of its "
              "parameters. " MODEL_WORDS
              " A safetensors file, or the index of several, can be shown too.",
     .actions = list_or_show, .operand = "model",
     .operand_hint = "give a name of 'unshard model list' or a config.json", .run = cmd_model},
    {"cluster", COMMAND_CLUSTER, "list | show NAME", "GPUs and links that steps are priced on",
     .about = "List the clusters that are built in, or show one with every number, its spread and "
              "its source. NAME is a name of the list, or a file like those.",
     .actions = list_or_show, .operand = "cluster",
     .operand_hint = "give a name of 'unshard cluster list' or a file", .run = cmd_cluster},
    {"history", COMMAND_HISTORY, "list", "the runs that were stored",
     .about = "List the newest runs of the history, in which every sim and every row of a plan is "
              "stored.",
     .actions = history_words, .run = cmd_history},
    {"query", COMMAND_QUERY, "SQL [PARAM]...", "SQL over the runs that were stored",
     .about =
         "Run one SQL statement that reads the history, best through its views v_run, v_unit, "
         "v_task, v_memory, v_memory_peak, v_collective, v_exposed and, of runs that really ran, "
         "v_real, v_step, v_rank and v_check; checks of devices are in v_device. Each PARAM is bound to a ? of the statement: as a "
         "number where it is spelled as that number is printed (7, -3, 0.5), else as text (007, "
         "1e3).",
     .operand = "SQL", .operand_hint = "give a statement, as in 'select * from v_run'",
     .n_more = OPTIONS_MAX_OPERANDS - 1, .run = cmd_query},
    {"trace", COMMAND_TRACE, "export RUN -o FILE | check FILE | show FILE",
     "a run as a Chrome trace; is a trace sound? what does it say?",
     .about = "Write a stored run as a Chrome trace for Perfetto, chrome://tracing, HTA, TraceLens "
              "and speedscope, or tell whether these will take a trace from anywhere; or show what a "
              "profile of PyTorch (Kineto, plain or gzip) says: kernels, streams, collectives, "
              "products, launches and marked ranges, and what it cannot say. RUN is a number of "
              "'unshard history list', or 'last'.",
     .actions = trace_words, .operand = "run or file",
     .operand_hint = "usage: unshard trace export RUN -o FILE | check FILE | show FILE", .run = cmd_trace},
    {"calibrate", COMMAND_CALIBRATE, "[FILE]... [-o FILE|DIR]",
     "a cluster file with rates that were measured",
     .about = "Measure what a step is priced by on this machine: products, attention, the delta rule, "
              "memory, packing, the host's launches, and collectives between ranks. The answer is a "
              "cluster file for --cluster, in which each number says what was measured and in what "
              "range it holds; of a GPU what is not measured is that of --cluster. It takes some "
              "seconds, on a GPU minutes; nothing else should run. With --from nccl-tests nothing is "
              "measured: FILE... are outputs of nccl-tests, and what they say replaces the collectives "
              "of --cluster. Where one does not say it, a line '# 2 nodes 16 ranks all_gather' above "
              "its table does. With --from trace FILE... are profiles of PyTorch, one of each rank: they "
              "tell the host's launches and all-gathers, products and attention whose shapes were "
              "recorded, and collectives inside a node; the rest is that of --cluster. "
              "With --from runs at most six constants of each platform are fitted to a table of measured "
              "runs (a seventh to runs in FP8), and what that gains is printed; rows of the split test "
              "and of low trust are left out, and of one row only the derate of products is taken.",
     .operand = "file", .n_more = OPTIONS_MAX_OPERANDS - 1, .run = cmd_calibrate},
    {"device", COMMAND_DEVICE, "list | check PART | store FILE...", "is a device right, and as fast as it should be?",
     .about = "List the parts of the device check, or run one of them on --device: casts, packing and "
              "what follows a reduction against the host's own, bit by bit; packing against copies of "
              "the same device; a small step beside the same step on the host. The answer is TAP "
              "without a plan, since a script joins parts (tests/device_check.sh); the exit code is 1 "
              "where something is not as it should be. On the host sizes are small, and speeds are told "
              "but not judged. store puts what parts left as JSON into the history, where v_device "
              "shows it.",
     .actions = device_words, .operand = "part or file",
     .operand_hint = "give a name of 'unshard device list', or files that 'device check' wrote",
     .n_more = OPTIONS_MAX_OPERANDS - 2, .run = cmd_device},
    {"bench", COMMAND_BENCH, "host | search | sim | store | trace",
     "how fast unshard itself is on this machine",
     .about = "Measure unshard on one core: sim, the stages of a simulation; store, runs into a "
              "database; trace, runs to Chrome traces, and their check; search, plans that are judged "
              "and placed. All with llama3-405b on 512 GPUs, torchtitan units, search with 98 of its "
              "blocks; files are in TMPDIR, and removed. Each number is the "
              "median of several runs after a warm-up; those with cpu in their names are CPU "
              "time, which other programs disturb less. host measures real steps of a small model "
              "on two ranks: packing against memcpy, the host's time for an instruction, and how "
              "much of the forward pass' all-gathers is hidden under which plan.",
     .actions = benchmarks, .run = cmd_bench},
    {"help", COMMAND_HELP, "[COMMAND]", "this overview, or the options of a command",
     .about = "Print the overview, or what a command does and which options it takes.",
     .operand = "command", .run = cmd_help},
    {.name = NULL},
};

const struct command *command_find(const char *name)
{
    const struct command *command = commands;
    while (command->name && strcmp(command->name, name))
        command++;
    return command->name ? command : NULL;
}

enum status command_unknown(const char *name, struct err *err)
{
    const char *names[sizeof commands / sizeof *commands];
    size_t n = 0;
    while (commands[n].name) {
        names[n] = commands[n].name;
        n++;
    }
    names[n] = NULL;
    err_set(err, STATUS_USAGE, "unknown command '%.80s'", name);
    return options_hint(err, name, names, "see 'unshard help'");
}

enum status cmd_help(struct options *options, struct output *out, struct err *err)
{
    const char *name = options->operands[0];
    const struct command *command = name ? command_find(name) : NULL;
    if (name && !command)
        return command_unknown(name, err);
    if (command)
        help_command(command, &out->result);
    else
        help_overview(&out->result);
    return STATUS_OK;
}

/* All that a command needs must be there before it runs; what it may leave out has no hint. */
static enum status check_operands(const struct command *command, const struct options *options,
                                  struct err *err)
{
    size_t n = 0;
    if (command->actions && !options->operands[n++])
        return err_set(err, STATUS_USAGE, "say what to do; usage: unshard %s %s", command->name,
                       command->synopsis);
    bool is_list = command->actions && !strcmp(options->operands[0], "list");
    if (is_list && options->operands[n])
        return err_set(err, STATUS_USAGE, "extra argument '%.80s'; see 'unshard help %s'",
                       options->operands[n], command->name);
    if (!is_list && command->operand_hint && !options->operands[n])
        return err_set(err, STATUS_USAGE, "no %s; %s", command->operand, command->operand_hint);
    return STATUS_OK;
}

static enum status run_command(const struct command *command, int argc, char **argv,
                               struct output *out, struct err *err)
{
    struct options options;
    enum status status = options_parse(command, argc, argv, &options, err);
    if (status != STATUS_OK)
        return status;
    out->term = term_open((enum color_mode)option_number(&options, OPTION_COLOR));
    if (option_given(&options, OPTION_HELP)) {
        help_command(command, &out->result);
        return STATUS_OK;
    }
    struct arena arena; /* what a file of --plan says */
    arena_init(&arena);
    status = check_operands(command, &options, err);
    if (status == STATUS_OK)
        status = plan_file_take(command, &options, &arena, &out->warnings, err);
    if (status == STATUS_OK)
        status = command->run(&options, out, err);
    arena_release(&arena);
    return status;
}

/* Words before any command: --version, --help, or what is no command at all. */
static enum status run_word(const char *word, struct output *out, struct err *err)
{
    if (!strcmp(word, "--version")) {
        text_add(&out->result, "unshard %s\n", unshard_version);
        return STATUS_OK;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        help_overview(&out->result);
        return STATUS_OK;
    }
    if (*word == '-')
        return err_set(err, STATUS_USAGE, "options come after a command; see 'unshard help'");
    return command_unknown(word, err);
}

static enum status print(const struct text *text, FILE *to, struct err *err)
{
    if (text->length > 0 && fwrite(text->at, 1, text->length, to) != text->length)
        return err_set(err, STATUS_INPUT, "cannot write the result: %s", strerror(errno));
    if (fflush(to) != 0)
        return err_set(err, STATUS_INPUT, "cannot write the result: %s", strerror(errno));
    return STATUS_OK;
}

static void print_warnings(const char *who, const struct text *warnings)
{
    for (const char *line = warnings->at; line && *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(stderr, "%s: %.*s\n", who, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

int main(int argc, char **argv)
{
    struct output out = {.term = term_open(COLOR_NEVER)};
    struct err err = {0};
    char who[32] = "unshard";
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    enum status status;

    if (command) {
        snprintf(who, sizeof who, "unshard %s", command->name);
        status = run_command(command, argc - 1, argv + 1, &out, &err);
    } else if (argc > 1) {
        status = run_word(argv[1], &out, &err);
    } else {
        status = err_set(&err, STATUS_USAGE, "no command; see 'unshard help'");
    }

    struct err print_err = {0};
    enum status printed = print(&out.result, stdout, &print_err);
    print_warnings(who, &out.warnings);
    if (status != STATUS_OK && *err.text)
        fprintf(stderr, "%s: %s\n", who, err.text);
    if (printed != STATUS_OK)
        fprintf(stderr, "%s: %s\n", who, print_err.text);
    text_release(&out.result);
    text_release(&out.warnings);
    return (int)(status != STATUS_OK ? status : printed);
}
