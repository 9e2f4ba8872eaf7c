/*
 * A measured run as the command line that predicts it; see validate.h.
 *
 * Columns become options, one by one; what their words mean stands in the tables below. The habits of
 * a framework come behind them: they say more exactly what a column only names.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/validate.h"

enum { MAX_WORDS = 128, FIRST_OPTION = 2 /* behind the verb and the model */ };

struct builder {
    struct arena *arena;
    char *argv[MAX_WORDS];
    int argc;
};

/* A word of a column, and the value of the option that it is. */
struct meaning {
    const char *word, *value;
};

static const struct meaning compile_words[] = {
    {"yes", "torch-compile"}, {"no", "torch-eager"}, {"unknown", "torch-eager"}, {NULL, NULL}};
static const struct meaning ac_words[] = {
    {"none", "none"}, {"full", "full"}, {"selective-op", "op"}, {NULL, NULL}};

static enum status fail(struct err *err, const char *column, const char *word)
{
    return err_set(err, STATUS_USAGE, "%s '%.80s' is nothing that is modelled", column, word);
}

/* In the place of what was said of the option before, if anything was. */
static void add(struct builder *b, const char *option, const char *value)
{
    char *name = arena_printf(b->arena, "--%s", option);
    int at = FIRST_OPTION;

    while (at < b->argc && strcmp(b->argv[at], name) != 0)
        at += 2;
    b->argv[at] = name;
    b->argv[at + 1] = arena_strdup(b->arena, value);
    if (at == b->argc)
        b->argc += 2;
}

static void add_count(struct builder *b, const char *option, uint64_t value)
{
    add(b, option, arena_printf(b->arena, "%" PRIu64, value));
}

/* A column whose words are the option's own; an empty one leaves the default. */
static void add_word(struct builder *b, const char *option, const char *word)
{
    if (*word)
        add(b, option, word);
}

static enum status add_meaning(struct builder *b, const char *column, const char *option,
                               const char *word, const struct meaning *meanings, struct err *err)
{
    for (; meanings->word; meanings++)
        if (!strcmp(meanings->word, word)) {
            add(b, option, meanings->value);
            return STATUS_OK;
        }
    return fail(err, column, word);
}

/* "full on N layers": the first N blocks. */
static enum status add_checkpointing(struct builder *b, const struct measured_run *run,
                                     struct err *err)
{
    static const char begin[] = "full on ", end[] = " layers";
    const size_t length = strlen(run->ac), n_begin = sizeof begin - 1, n_end = sizeof end - 1;

    if (length <= n_begin + n_end || strncmp(run->ac, begin, n_begin) ||
        strcmp(run->ac + length - n_end, end))
        return add_meaning(b, "ac", "ac", run->ac, ac_words, err);
    add(b, "ac", "full");
    add(b, "ac-layers",
        arena_printf(b->arena, "%.*s", (int)(length - n_begin - n_end), run->ac + n_begin));
    return STATUS_OK;
}

/* Parallelism that only one rank has is no question of units. */
static enum status check_parallel(const struct measured_run *run, struct err *err)
{
    const struct {
        const char *name;
        uint64_t ranks;
    } kinds[] = {{"tensor", run->tp}, {"pipeline", run->pp}, {"context", run->cp}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].ranks > 1)
            return err_set(err, STATUS_USAGE,
                           "%s parallelism over %" PRIu64 " ranks is not modelled", kinds[i].name,
                           kinds[i].ranks);
    if (run->shard > 0 && run->shard != run->gpus / run->replicate)
        return err_set(err, STATUS_USAGE,
                       "%" PRIu64 " GPUs and %" PRIu64 " replicas do not make shards over %" PRIu64,
                       run->gpus, run->replicate, run->shard);
    return STATUS_OK;
}

/* That of the platform and GPU, where a platform has several; else that of the platform. */
static const char *find_cluster(struct builder *b, const struct measured_run *run,
                                const char *clusters)
{
    if (!clusters || strchr(run->platform, '/') || strchr(run->gpu, '/'))
        return run->gpu;
    const char *both = arena_printf(b->arena, "%s/%s.%s.json", clusters, run->platform, run->gpu);
    const char *one = arena_printf(b->arena, "%s/%s.json", clusters, run->platform);
    if (access(both, R_OK) == 0)
        return both;
    return access(one, R_OK) == 0 ? one : run->gpu;
}

static void add_cluster(struct builder *b, const struct measured_run *run, const char *clusters)
{
    add(b, "cluster", find_cluster(b, run, clusters));
    if (run->nic_gbps_per_gpu > 0)
        add(b, "nic", arena_printf(b->arena, "%.15g", run->nic_gbps_per_gpu));
    if (*run->torch)
        add(b, "host", arena_printf(b->arena, "torch-%s", run->torch));
    add_count(b, "gpus", run->gpus);
    add_count(b, "nodes", (run->gpus + run->gpus_per_node - 1) / run->gpus_per_node);
    if (run->replicate > 1)
        add_count(b, "replicas", run->replicate);
}

/* fully_shard has a switch, FullyShardedDataParallel a strategy. "yes" is the framework's own way. */
static enum status add_reshard(struct builder *b, const struct measured_run *run, struct err *err)
{
    const bool is_fsdp1 = !strcmp(run->system, "fsdp1");

    if (!strcmp(run->reshard, "no"))
        add(b, is_fsdp1 ? "fsdp1-strategy" : "reshard", is_fsdp1 ? "grad-op" : "no");
    else if (strcmp(run->reshard, "yes") != 0)
        return fail(err, "reshard", run->reshard);
    return STATUS_OK;
}

static bool is_any_or(const char *word, const char *of_row)
{
    return *word == '\0' || !strcmp(word, of_row);
}

/* What reduce_dtype tells of a framework's age a row that names its release says better. */
static bool is_of_its_age(const struct habit *habit, const struct measured_run *run)
{
    return *habit->reduce == '\0' ||
           (*run->torch == '\0' && !strcmp(habit->reduce, run->reduce_dtype));
}

static void add_habits(struct builder *b, const struct measured_run *run)
{
    for (uint32_t i = 0; i < n_validate_habits; i++) {
        const struct habit *habit = &validate_habits[i];
        if (!strncmp(run->source, habit->source, strlen(habit->source)) &&
            is_any_or(habit->system, run->system) && is_any_or(habit->compile, run->compile) &&
            is_of_its_age(habit, run) && is_any_or(habit->loss, run->loss) &&
            strcmp(run->date, habit->from) >= 0 && strcmp(run->date, habit->until) < 0)
            add(b, habit->option, habit->value);
    }
}

static void add_shapes(struct builder *b, const struct measured_run *run)
{
    add_count(b, "seq", run->seq_len);
    add_count(b, "batch", run->micro_batch);
    add_count(b, "accum", run->grad_accum);
    add(b, "clip", "1"); /* all of these train with gradients clipped */
}

static void add_kinds(struct builder *b, const struct measured_run *run)
{
    add(b, "system", run->system);
    add_word(b, "attention", run->attention);
    add_word(b, "loss", run->loss);
    add_word(b, "optimizer", run->optimizer);
    add_word(b, "param-dtype", run->param_dtype);
    add_word(b, "reduce-dtype", run->reduce_dtype);
    if (!strcmp(run->linear_fp8, "yes"))
        add(b, "linear-dtype", "fp8");
}

enum status validate_command(const struct measured_run *run, const char *clusters,
                             const char *without, struct arena *arena, struct row_command *out,
                             struct err *err)
{
    struct builder *b = arena_array(arena, struct builder, 1);
    enum status status;

    b->arena = arena;
    b->argv[b->argc++] = arena_strdup(arena, "sim");
    b->argv[b->argc++] = arena_strdup(arena, run->model);
    add_cluster(b, run, clusters);
    add_shapes(b, run);
    add_kinds(b, run);
    add_habits(b, run);
    if (without)
        add(b, "without", without);
    if ((status = check_parallel(run, err)) || (status = add_reshard(b, run, err)) ||
        (status = add_checkpointing(b, run, err)) ||
        (status = add_meaning(b, "compile", "ops", run->compile, compile_words, err)))
        return status;
    *out = (struct row_command){.argc = b->argc, .argv = b->argv};
    return STATUS_OK;
}
