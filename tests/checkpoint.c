/*
 * Checkpoints come back as they were saved, whatever plan and world they were saved and are read
 * under, and are what other readers of safetensors expect.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/arch/arch.h"
#include "tests/checkpoint_rig.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct arena arena;
static char folder[] = "checkpoint-test-XXXXXX"; /* in the build folder */
static uint64_t random_state;

/* Rows that no number of ranks divides, and fewer of them than ranks. */
static const struct dims small = {.layers = 2,
                                  .hidden = 6,
                                  .intermediate = 7,
                                  .heads = 3,
                                  .kv_heads = 1,
                                  .head_dim = 2,
                                  .vocab = 11,
                                  .default_seq = 4};
static const struct checkpoint_state trained = {
    .steps = 12, .sequences = 96, .seed = 7, .adamw = true};

static const char *in_folder(const char *name)
{
    return arena_printf(&arena, "%s/%s", folder, name);
}

static struct plan_options small_options(uint64_t gpus)
{
    struct plan_options options = plan_options_default();
    options.gpus = gpus;
    options.nodes = 1;
    options.units = "block";
    return options;
}

/* Saves under one, reads under the other; returns how many numbers are wrong. */
static uint64_t round_trip(const struct made *from, const struct made *to, const char *what)
{
    const char *dir = in_folder("saved");
    struct resume *resume = NULL;
    struct err err = {0};
    uint64_t wrong = UINT64_MAX;

    if (checkpoint_rig_save(from, dir, &trained, &err) != STATUS_OK ||
        resume_open(dir, &to->plan, true, &resume, &err) != STATUS_OK)
        tap_note("%s: %s", what, err.text);
    else
        wrong = checkpoint_rig_wrong(to, resume, &random_state);
    resume_free(resume);
    checkpoint_rig_remove(dir);
    return wrong;
}

/* ---- worlds -------------------------------------------------------------------------------- */

static void test_worlds(void)
{
    for (uint64_t w = 1; w <= 4; w++)
        for (uint64_t r = 1; r <= 4; r++) {
            const struct plan_options write = small_options(w), read = small_options(r);
            struct made from, to;
            make_init_dims(&from, &small, &write);
            make_init_dims(&to, &small, &read);
            is_int(round_trip(&from, &to, "worlds"), 0, "saved by %d ranks, read by %d", (int)w,
                   (int)r);
            make_release(&from);
            make_release(&to);
        }
}

static void test_more_ranks_than_rows(void)
{
    const struct plan_options write = small_options(16), read = small_options(1);
    struct made from, to;

    make_init_dims(&from, &small, &write);
    make_init_dims(&to, &small, &read);
    is_int(round_trip(&from, &to, "16 ranks"), 0, "some ranks hold nothing");
    make_release(&from);
    make_release(&to);
}

/* ---- arrangements -------------------------------------------------------------------------- */

static void by_dtype(struct plan_options *options)
{
    options->arrange = ARRANGE_BY_DTYPE;
    options->policy.keep_fp32 = "*norm*";
}

static void stored_bf16(struct plan_options *options)
{
    options->policy.storage = DTYPE_BF16;
}

static void columns(struct plan_options *options)
{
    options->policy.shard_dim = "*self_attn*proj.weight=1";
}

static void ignored(struct plan_options *options)
{
    options->policy.ignore = "*mlp*,*layers.0.self*";
}

static void ignored_bf16(struct plan_options *options)
{
    ignored(options);
    stored_bf16(options);
}

static void frozen(struct plan_options *options)
{
    options->policy.freeze = "*embed*";
}

static void replicas(struct plan_options *options)
{
    options->gpus = 4;
    options->replicas = 2;
}

static void nothing(struct plan_options *options)
{
    (void)options;
}

static void test_arrangements(void)
{
    static const struct {
        const char *what;
        void (*write)(struct plan_options *);
        void (*read)(struct plan_options *);
    } cases[] = {
        {"saved by dtype, read native", by_dtype, nothing},
        {"saved native, read by dtype", nothing, by_dtype},
        {"stored in BF16, read to FP32", stored_bf16, nothing},
        {"cut along dimension 1, read along 0", columns, nothing},
        {"cut along dimension 0, read along 1", nothing, columns},
        {"ignored by both", ignored, ignored},
        {"ignored and stored in BF16", ignored_bf16, ignored},
        {"frozen in both", frozen, frozen},
        {"saved by the first of two replicas", replicas, nothing},
        {"read by two replicas", nothing, replicas},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct plan_options write = small_options(2), read = small_options(3);
        struct made from, to;
        cases[i].write(&write);
        cases[i].read(&read);
        make_init_dims(&from, &small, &write);
        make_init_dims(&to, &small, &read);
        is_int(round_trip(&from, &to, cases[i].what), 0, "%s", cases[i].what);
        make_release(&from);
        make_release(&to);
    }
}

static void test_any_two_plans(void)
{
    enum { ROUNDS = 40 };
    uint64_t wrong = 0;

    for (int round = 0; round < ROUNDS && !wrong; round++) {
        struct plan_options write, read;
        struct dims dims;
        struct made from, to;
        const char *family = make_random_tied(&random_state, &dims, &write);
        read = make_random_options(&random_state, &dims);
        write.optimizer = read.optimizer = OPTIMIZER_ADAMW;
        read.policy.behavior = write.policy.behavior;
        read.output_dtype = DTYPE_N;
        read.norm = write.norm;
        read.ops = write.ops;
        read.loss = write.loss;
        if (dims.positions > 0)
            read.seq = write.seq;
        make_init_family(&from, family, &dims, &write);
        make_init_family(&to, family, &dims, &read);
        wrong = round_trip(&from, &to, "any two plans");
        make_release(&from);
        make_release(&to);
    }
    is_int(wrong, 0, "%d checkpoints of random plans come back under others", ROUNDS);
}

/* ---- the files ----------------------------------------------------------------------------- */

static void save(const struct made *made, const struct checkpoint_state *state)
{
    struct err err = {0};
    if (checkpoint_rig_save(made, in_folder("saved"), state, &err) != STATUS_OK)
        tap_bail(err.text);
}

static void read_list(const char *name, struct tensor_list *list)
{
    struct err err = {0};
    *list = (struct tensor_list){0};
    if (safetensors_read(in_folder(name), &arena, list, &err) != STATUS_OK)
        tap_bail(err.text);
}

static void test_tied(void)
{
    const struct plan_options options = small_options(2);
    struct dims dims = small;
    struct tensor_list params, moments;
    struct made made;

    dims.tied = true;
    make_init_dims(&made, &dims, &options);
    is_int(round_trip(&made, &made, "tied"), 0, "a tied weight comes back");
    save(&made, &trained);
    read_list("saved/parameters.safetensors", &params);
    read_list("saved/optimizer.safetensors", &moments);
    is_int(params.n, made.model.n_param, "and is in the file once");
    is_int(moments.n, 3 * made.model.n_param, "with three states");
    ok(!tensor_list_find(&params, "lm_head.weight"), "the head has none of its own");
    checkpoint_rig_remove(in_folder("saved"));
    make_release(&made);
}

static void test_other_readers(void)
{
    struct plan_options options = small_options(3);
    struct tensor_list list;
    struct model model;
    struct made made;
    struct err err = {0};

    stored_bf16(&options);
    make_init_dims(&made, &small, &options);
    save(&made, &trained);
    if (is_int(model_open(in_folder("saved/parameters.safetensors"), 0, &arena, &model, &err),
               STATUS_OK, "the parameters are a model for who opens the file"))
        is_int(model.n_element, made.model.n_element, "of as many elements");
    else
        tap_note("%s", err.text);
    read_list("saved/optimizer.safetensors", &list);
    const struct tensor *step = tensor_list_find(&list, "model.norm.weight.step");
    const struct tensor *moment = tensor_list_find(&list, "model.norm.weight.exp_avg_sq");
    if (ok(step && moment, "states are there by name")) {
        is_str(step->stored, "F32", "counters are FP32");
        is_int(step->n_dim == 1 && step->shape[0] == 1, 1, "of one element");
        is_str(moment->stored, "BF16", "moments are stored as parameters are");
        is_int(step->at_bytes % 4, 0, "wider elements are on their boundary");
    }
    checkpoint_rig_remove(in_folder("saved"));
    make_release(&made);
}

static void test_sgd(void)
{
    const struct checkpoint_state state = {.steps = 1, .sequences = 2, .seed = 3};
    struct plan_options options = small_options(2);
    struct resume *resume = NULL;
    struct made made;
    struct err err = {0};

    options.optimizer = OPTIMIZER_SGD;
    make_init_dims(&made, &small, &options);
    save(&made, &state);
    ok(!checkpoint_rig_exists(in_folder("saved/optimizer.safetensors")), "SGD saves no states");
    if (is_int(resume_open(in_folder("saved"), &made.plan, false, &resume, &err), STATUS_OK,
               "and asks for none"))
        is_int(checkpoint_rig_wrong(&made, resume, &random_state), 0, "its parameters come back");
    else
        tap_note("%s", err.text);
    resume_free(resume);
    checkpoint_rig_remove(in_folder("saved"));
    make_release(&made);
}

/* ---- where a run stands -------------------------------------------------------------------- */

static void test_state(void)
{
    static const struct checkpoint_state state = {
        .steps = (UINT64_C(1) << 53) - 1,
        .sequences = (UINT64_C(1) << 53) - 2,
        .seed = (UINT64_C(1) << 53) - 3,
        .adamw = true,
        .scaler = {.loss_scale = 0x1.fffffep-100f, .good_steps = UINT32_MAX}};
    const struct plan_options options = small_options(2);
    struct resume *resume = NULL;
    struct made made;
    struct err err = {0};

    make_init_dims(&made, &small, &options);
    save(&made, &state);
    if (resume_open(in_folder("saved"), &made.plan, true, &resume, &err) != STATUS_OK)
        tap_bail(err.text);
    const struct checkpoint_state *got = resume_state(resume);
    is_int(got->steps, state.steps, "steps come back");
    is_int(got->sequences, state.sequences, "sequences come back");
    is_int(got->seed, state.seed, "the seed comes back");
    ok(got->scaler.loss_scale == state.scaler.loss_scale, "a loss scale comes back in every bit");
    is_int(got->scaler.good_steps, state.scaler.good_steps, "and how long it held");
    struct resumed_values context = {.resume = resume, .seeded = {.plan = &made.plan}};
    is_int(values_resumed(&context).scaler.good_steps, UINT32_MAX, "a scaler goes on from there");
    resume_free(resume);
    checkpoint_rig_remove(in_folder("saved"));
    make_release(&made);
}

static void test_advance(void)
{
    struct plan_options options = small_options(3);
    struct checkpoint_state state = {.steps = 10, .sequences = 1000};
    struct made made;

    options.accum = 2;
    options.batch = 5;
    make_init_dims(&made, &small, &options);
    checkpoint_state_advance(&state, &made.plan, 4);
    is_int(state.steps, 14, "steps are counted on");
    is_int(state.sequences, 1000 + 4 * 2 * 5 * 3, "and sequences of all ranks and microbatches");
    make_release(&made);
}

/* Step 2 of a run from the start is step 0 of one that goes on after two. */
static void test_tokens_go_on(void)
{
    enum { TOKENS = 4 };
    const struct plan_options options = small_options(2);
    struct checkpoint_state state = {.seed = 7};
    int64_t want[2][TOKENS], got[2][TOKENS];
    struct resume *resume = NULL;
    struct made made;
    struct err err = {0};

    make_init_dims(&made, &small, &options);
    checkpoint_state_advance(&state, &made.plan, 2);
    save(&made, &state);
    if (resume_open(in_folder("saved"), &made.plan, false, &resume, &err) != STATUS_OK)
        tap_bail(err.text);
    struct seeded_values seeded = {.plan = &made.plan, .seed = 7, .rank = 1};
    struct resumed_values resumed = {.resume = resume,
                                     .seeded = {.plan = &made.plan, .seed = 8, .rank = 1}};
    const struct values first = values_seeded(&seeded), then = values_resumed(&resumed);
    first.tokens(first.context, 2, 0, TOKENS, want[0], want[1]);
    then.tokens(then.context, 0, 0, TOKENS, got[0], got[1]);
    ok(!memcmp(want, got, sizeof want), "a resumed run sees the tokens that would have come next");
    resume_free(resume);
    checkpoint_rig_remove(in_folder("saved"));
    make_release(&made);
}

int main(void)
{
    arena_init(&arena);
    random_state = tap_seed(20261);
    if (!mkdtemp(folder))
        tap_bail("cannot make a folder for this test");
    test_worlds();
    test_more_ranks_than_rows();
    test_arrangements();
    test_any_two_plans();
    test_tied();
    test_other_readers();
    test_sgd();
    test_state();
    test_advance();
    test_tokens_go_on();
    is_int(rmdir(folder), 0, "nothing else is left");
    arena_release(&arena);
    return tap_done();
}
