/*
 * Options as one types them; see asked.h. They go through the command line's own parser, so that a
 * test names a knob as a user does.
 */
#include "tests/asked.h"

#include <string.h>

#include "src/arch/arch.h"
#include "src/cli/command.h"
#include "src/cli/prepare.h"
#include "tests/tap.h"

enum { MAX_WORDS = 48 };

static void must(enum status status, const struct err *err)
{
    if (status != STATUS_OK)
        tap_bail(err->text);
}

static const struct dims tiny = {.layers = 1,
                                 .hidden = 32,
                                 .intermediate = 48,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 8,
                                 .vocab = 64,
                                 .default_seq = 8};

static void build_model(const char *family, const struct dims *dims, struct arena *arena,
                        struct model *out)
{
    struct err err = {0};

    *out = (struct model){.name = "tiny", .arch = arch_by_name(family), .dims = *dims};
    must(out->arch->build(dims, arena, out, &err), &err);
}

void asked_model(struct arena *arena, struct model *out)
{
    build_model("llama", &tiny, arena, out);
}

/* Returns how many there are. */
static int split(const char *words, struct arena *arena, char *out[MAX_WORDS])
{
    char *rest = arena_strdup(arena, words);
    int n = 0;

    for (char *word; (word = strsep(&rest, " "));)
        if (*word && n < MAX_WORDS)
            out[n++] = word;
    return n;
}

enum status asked_options(const char *words, struct arena *arena, struct plan_options *out,
                          struct err *err)
{
    static const struct command explain = {
        .name = "explain", .bit = COMMAND_EXPLAIN, .operand = "model"};
    char *argv[MAX_WORDS];
    struct options options;
    struct cluster cluster;
    const int argc =
        split(arena_printf(arena, "explain tiny --cluster toy --gpus 4 %s", words), arena, argv);
    enum status status = options_parse(&explain, argc, argv, &options, err);

    if (status == STATUS_OK)
        status = cluster_open(option_text(&options, OPTION_CLUSTER), arena, &cluster, err);
    if (status == STATUS_OK)
        *out = prepare_plan_options(&options, &cluster);
    return status;
}

static void mark_unused(struct made *made, const char *pattern)
{
    struct param *params = arena_array(&made->arena, struct param, made->model.n_param);

    memcpy(params, made->model.params, made->model.n_param * sizeof *params);
    for (uint32_t i = 0; i < made->model.n_param; i++)
        params[i].unused = text_matches(pattern, params[i].name);
    made->model.params = params;
}

void asked_init_family(struct made *made, const char *family, const struct dims *dims,
                       const char *words, const char *unused)
{
    struct plan_options options;
    struct err err = {0};

    *made = (struct made){0};
    arena_init(&made->arena);
    build_model(family, dims, &made->arena, &made->model);
    if (unused != NULL)
        mark_unused(made, unused);
    must(asked_options(words, &made->arena, &options, &err), &err);
    make_finish(made, &options);
}

void asked_init(struct made *made, const char *words, const char *unused)
{
    asked_init_family(made, "llama", &tiny, words, unused);
}
