/*
 * The program of FSDP2 as text: golden files that derive each line from the spec, and what follows
 * from them for deeper models.
 *
 * Equal blocks print equal text but for names, so one commented block stands for all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/program_print.h"
#include "tests/make.h"
#include "tests/tap.h"

static struct plan_options small_options(const char *units)
{
    struct plan_options options = plan_options_default();
    options.units = units;
    options.gpus = 8;
    options.seq = 128;
    options.workspace_bytes = 8519680;
    return options;
}

static char *printed(const struct program *program, enum section_id section, bool expand)
{
    struct text text;
    text_init(&text);
    program_print(program, section, expand, &text);
    return text.at;
}

static void golden(const char *name, uint64_t layers, enum section_id section,
                   const struct plan_options *options)
{
    struct made made;
    make_init(&made, "llama3-8b", layers, options);
    char *text = printed(&made.program, section, false);
    is_golden(text, name);
    free(text);
    make_release(&made);
}

/* Lines of a that b has not, where b is a with lines taken out; NULL where it is not. */
static char *lines_only_in(const char *a, const char *b)
{
    struct text out;
    text_init(&out);
    text_add(&out, "%s", "");
    while (*a != '\0') {
        const size_t n = strcspn(a, "\n") + 1;
        const size_t m = strcspn(b, "\n") + 1;
        if (*b != '\0' && n == m && memcmp(a, b, n) == 0)
            b += m;
        else
            text_add(&out, "%.*s", (int)n, a);
        a += n;
    }
    if (*b != '\0') {
        text_release(&out);
        return NULL;
    }
    return out.at;
}

/* The first step is the steady one plus what is born lazily: workspaces and optimizer states. */
static void first_step_adds_lazy_allocations(void)
{
    const struct plan_options options = small_options("torchtitan");
    struct made made;
    make_init(&made, "llama3-8b", 3, &options);
    char *first = printed(&made.program, SECTION_FIRST, false);
    char *steady = printed(&made.program, SECTION_STEADY, false);
    char *more = lines_only_in(strchr(first, '\n') + 1, strchr(steady, '\n') + 1);
    if (ok(more != NULL, "a steady step is the first one with lines taken out"))
        is_golden(more, "first-step-only.txt");
    free(first);
    free(steady);
    free(more);
    make_release(&made);
}

/* Each layer number in a name written as its distance from `layer`, runs of blanks as one. */
static char *relative_to(const char *text, int layer)
{
    struct text out;
    text_init(&out);
    while (*text != '\0') {
        const char *digits = text;
        if (strncmp(text, "layers.", 7) == 0)
            digits += 7;
        else if (strncmp(text, "block", 5) == 0)
            digits += 5;
        char *end;
        const long number = digits > text ? strtol(digits, &end, 10) : 0;
        if (digits > text && end > digits) {
            text_add(&out, "%.*sL%+ld", (int)(digits - text), text, number - layer);
            text = end;
        } else {
            if (text[0] != ' ' || text[1] != ' ')
                text_add(&out, "%c", *text);
            text++;
        }
    }
    return out.at;
}

/* The part of a step from the first line that names `from` to the first that names `to`. */
static char *part_between(const char *text, const char *from, const char *to)
{
    const char *begin = strstr(text, from), *end = begin != NULL ? strstr(begin, to) : NULL;
    if (end == NULL)
        return NULL;
    char *part = malloc((size_t)(end - begin) + 1);
    memcpy(part, begin, (size_t)(end - begin));
    part[end - begin] = '\0';
    return part;
}

/* One block's part of a step, from its body's launch to its neighbour's, layers made relative. */
static char *block_part(const char *text, int layer, const char *phase, int neighbour)
{
    char from[64], to[64];
    snprintf(from, sizeof from, "%s model.layers.%d block%d", phase, layer, layer);
    snprintf(to, sizeof to, "%s model.layers.%d block%d", phase, layer + neighbour,
             layer + neighbour);
    char *part = part_between(text, from, to);
    if (part == NULL)
        return NULL;
    char *relative = relative_to(part, layer);
    free(part);
    return relative;
}

static void middle_blocks_are_the_same(void)
{
    const struct plan_options options = small_options("torchtitan");
    struct made made;
    make_init(&made, "llama3-8b", 32, &options);
    char *text = printed(&made.program, SECTION_STEADY, false);
    for (int backward = 0; backward <= 1; backward++) {
        const char *phase = backward ? "backward" : "forward";
        char *model = block_part(text, 3, phase, backward ? -1 : 1);
        unsigned same = 0;
        for (int layer = 3; layer <= 28; layer++) {
            char *part = block_part(text, layer, phase, backward ? -1 : 1);
            same += model != NULL && part != NULL && strcmp(model, part) == 0;
            free(part);
        }
        is_int(same, 26, "blocks 3 to 28 of 32 are the same text but for names, %s", phase);
        free(model);
    }
    free(text);
    make_release(&made);
}

static uint64_t hash_of(const struct plan_options *options, uint64_t layers)
{
    struct made made;
    make_init(&made, "llama3-8b", layers, options);
    const uint64_t hash = program_hash(&made.program);
    make_release(&made);
    return hash;
}

static void hash_is_identity(void)
{
    struct plan_options options = small_options("torchtitan");
    const uint64_t base = hash_of(&options, 3);
    ok(hash_of(&options, 3) == base, "the same plan gives the same hash");
    ok(hash_of(&options, 4) != base, "one layer more changes the hash");
    options.prefetch = 1;
    ok(hash_of(&options, 3) != base, "explicit prefetch changes the hash");
    options = small_options("torchtitan");
    options.ops = OPS_TORCH_COMPILE;
    ok(hash_of(&options, 3) != base, "another operator profile changes the hash: bodies are in it");
    options = small_options("torchtitan");
    options.nodes = 2;
    ok(hash_of(&options, 3) != base, "the same ranks on two nodes change the hash");
}

struct expected_count {
    enum task_kind kind;
    enum dtype dtype;
    uint64_t elements;
    unsigned count;
};

/* A public FSDP trace of llama-70B on 8 GPUs shows these collectives in each step. */
static void collectives_of_the_public_trace(void)
{
    static const struct expected_count expected[] = {
        {TASK_ALL_GATHER, DTYPE_BF16, 855654400, 159},
        {TASK_ALL_GATHER, DTYPE_BF16, 2101354496, 1},
        {TASK_REDUCE_SCATTER, DTYPE_FP32, 855654400, 80},
        {TASK_REDUCE_SCATTER, DTYPE_FP32, 2101354496, 1},
    };
    struct plan_options options = plan_options_default();
    struct made made;
    options.units = "block";
    options.reshard = RESHARD_ALL_BUT_LAST;
    options.seq = 8192;
    make_init(&made, "llama3-70b", 0, &options);
    const struct section *steady = &made.program.sections[SECTION_STEADY];
    unsigned collectives = 0;
    for (size_t e = 0; e < sizeof expected / sizeof *expected; e++) {
        unsigned count = 0;
        collectives = 0;
        for (uint32_t i = steady->begin; i < steady->end; i++) {
            const struct task *task = &made.program.tasks[made.program.instrs[i].id];
            if (made.program.instrs[i].op != INSTR_LAUNCH || !task_kind_is_collective(task->kind))
                continue;
            collectives++;
            count += task->kind == expected[e].kind && task->dtype == expected[e].dtype &&
                     task->elements == expected[e].elements;
        }
        is_int(count, expected[e].count, "%s of %llu elements", task_kind_name(expected[e].kind),
               (unsigned long long)expected[e].elements);
    }
    is_int(collectives, 159 + 1 + 80 + 1, "and no other collective");
    make_release(&made);
}

static unsigned count_steady(const struct made *made, enum task_kind kind)
{
    const struct section *steady = &made->program.sections[SECTION_STEADY];
    unsigned count = 0;
    for (uint32_t i = steady->begin; i < steady->end; i++)
        count += made->program.instrs[i].op == INSTR_LAUNCH &&
                 made->program.tasks[made->program.instrs[i].id].kind == kind;
    return count;
}

/* Over one rank a copy stands for the reduce-scatter, and nobody multiplies by 1 / factor. */
static void one_rank_divides_by_a_kernel(void)
{
    for (unsigned factor = 0; factor < 3; factor++) {
        struct plan_options options = small_options("block");
        struct made made;
        options.gpus = 1;
        options.divide_factor = factor;
        make_init(&made, "llama3-8b", 2, &options);
        is_int(count_steady(&made, TASK_PRE_DIVIDE), factor > 1 ? made.plan.n_unit : 0,
               "one rank divides by %u", factor);
        make_release(&made);
    }
}

/* Bytes of all states, and how many buffers all optimizer tasks update. */
static uint64_t measure_optimizer(const struct program *program, uint32_t *n_updated)
{
    uint64_t bytes = 0;

    *n_updated = 0;
    for (uint32_t i = 0; i < program->n_buffer; i++)
        if (program->buffers[i].role == ROLE_STATE)
            bytes += program->buffers[i].bytes;
    for (uint32_t i = 0; i < program->n_task; i++)
        for (uint32_t a = 0; a < program->tasks[i].n_access; a++)
            *n_updated += program->tasks[i].kind == TASK_OPTIMIZER &&
                          program->accesses[program->tasks[i].access + a].mode == ACCESS_UPDATE;
    return bytes;
}

/* Two sections have an optimizer; a unit's shards and its states are a buffer each. */
static uint32_t count_tasks(const struct program *program, enum task_kind kind)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < program->n_task; t++)
        n += program->tasks[t].kind == kind;
    return n;
}

/* Two microbatches of three units; without a cast the first one's gradients stay where they are.
   Sizes do not tell: BF16 and FP16 have one. Sections have tasks of their own. */
static void accumulation_casts_where_dtypes_differ(void)
{
    static const enum dtype dtypes[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_FP16};
    struct plan_options options = plan_options_default();

    options.units = "block";
    options.accum = 2;
    options.sync = MICROBATCH_LAST;
    for (int c = 0; c < 3; c++)
        for (int r = 0; r < 3; r++) {
            struct made made;
            options.policy.param = dtypes[c];
            options.policy.reduce = dtypes[r];
            make_init(&made, "llama2-7b", 2, &options);
            const uint32_t n_sum = count_tasks(&made.program, TASK_ACCUMULATE);
            is_int(n_sum / count_tasks(&made.program, TASK_OPTIMIZER), c == r ? 3 : 6,
                   "gradients in %s that are reduced in %s: a sum in each unit%s",
                   dtype_name(dtypes[c]), dtype_name(dtypes[r]), c == r ? "" : " and a cast");
            make_release(&made);
        }
}

static void sgd_has_no_states(void)
{
    for (int sgd = 0; sgd < 2; sgd++) {
        struct plan_options options = small_options("block");
        struct made made;
        uint32_t n_updated;
        options.optimizer = sgd ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
        make_init(&made, "llama3-8b", 1, &options);
        const uint64_t bytes = measure_optimizer(&made.program, &n_updated);
        ok((bytes == 0) == (sgd == 1), "%s", sgd ? "SGD keeps nothing" : "AdamW keeps states");
        is_int(n_updated, 2 * made.plan.n_unit * (sgd ? 1 : 2), "and its steps change %s",
               sgd ? "shards" : "shards and states");
        make_release(&made);
    }
}

/* Units that are cut by dtype are called after single modules, whose paths pass the column. */
static void long_names_end_before_the_next_column(void)
{
    struct plan_options options = small_options("block");
    struct made made;

    options.policy.keep_fp32 = "*layernorm*";
    options.arrange = ARRANGE_BY_DTYPE;
    make_init(&made, "llama3-8b", 1, &options);
    char *text = printed(&made.program, SECTION_STEADY, false);
    ok(strstr(text, "all_gather model.layers.0.post_attention_layernorm fp32 x") != NULL,
       "a dtype stands apart from a long name");
    ok(strstr(text, "gathered model.layers.0.post_attention_layernorm 1") != NULL,
       "and so does a size");
    free(text);
    make_release(&made);
}

int main(void)
{
    const struct plan_options torchtitan = small_options("torchtitan");
    struct plan_options block = small_options("block");

    golden("llama-3-layers-torchtitan.txt", 3, SECTION_STEADY, &torchtitan);
    block.accum = 2;
    golden("llama-2-layers-block-accum2.txt", 2, SECTION_STEADY, &block);
    first_step_adds_lazy_allocations();
    middle_blocks_are_the_same();
    hash_is_identity();
    collectives_of_the_public_trace();
    one_rank_divides_by_a_kernel();
    accumulation_casts_where_dtypes_differ();
    sgd_has_no_states();
    long_names_end_before_the_next_column();
    return tap_done();
}
