/*
 * What each knob changes in a program, as golden files: the lines that go and come, each derived from
 * the spec or from PyTorch's own source.
 *
 * All start from one llama of three units on 4 GPUs, whose whole step is knob-none.txt. What the host
 * launches in more than one kernel, and what goes over another communicator than the shards', stands
 * behind the line. Not here: when a knob changes nothing, that is knob_hashes.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/program_print.h"
#include "src/verify.h"
#include "tests/asked.h"
#include "tests/line_diff.h"
#include "tests/tap.h"

#define BLOCK "--units block"
#define FSDP1 BLOCK " --system fsdp1"
#define NORMS "--keep-fp32 *norm*"
#define MIXED BLOCK " --behavior torch-pr196626 " NORMS
#define ALL_BUT_Q "*embed*,*.k_proj*,*.v_proj*,*.o_proj*,*.mlp.*,*norm*,lm_head*"

static const struct knob {
    const char *golden, *base, *knob;
    const char *unused; /* parameters that do not reach the loss, or NULL */
    const char *changes;
} knobs[] = {
    {"prefetch", "", "--prefetch 1", NULL,
     "the next unit's all-gather is issued before the unit computes"},
    {"prefetch-backward", "", "--prefetch-backward 2", NULL,
     "two units are gathered ahead in backward, in place of one"},
    {"reshard-no", "", "--reshard no", NULL, "what forward gathered, backward does not gather"},
    {"reshard-yes", BLOCK, "--reshard yes", NULL, "the root is gathered in backward too"},
    {"reshard-all-but-last", "", "--reshard all-but-last", NULL,
     "the last unit of forward stays gathered"},
    {"no-reshard", "", "--no-reshard model.layers.*", NULL, "the block alone stays gathered"},
    {"reshard-ranks", "", "--reshard 2", NULL,
     "backward gathers over pairs of ranks what each kept a half of"},
    {"reshard-backward", BLOCK " --accum 2", "--reshard-backward last", NULL,
     "the second microbatch finds its parameters gathered"},
    {"no-unshard-backward", "", "--no-unshard-backward model.embed_tokens", NULL,
     "the embedding is not gathered in backward"},
    {"sync", BLOCK " --accum 2", "--sync last", NULL,
     "the first microbatch leaves whole gradients in FP32, the second reduces the sum"},
    {"sync-fp32", BLOCK " --accum 2 --param-dtype fp32", "--sync last", NULL,
     "gradients in the reduce dtype stay where they are"},
    {"replicas", BLOCK, "--replicas 2", NULL,
     "an all-reduce on stream AR follows the reduce-scatter"},
    {"all-reduce", BLOCK " --accum 2 --replicas 2", "--all-reduce last", NULL,
     "the first microbatch's sums stay partial until the second's are added"},
    {"last-backward", BLOCK " --accum 2", "--last-backward last", NULL,
     "nothing is waited for between microbatches"},
    {"reduce-inputs", "", "--reduce-inputs 2", NULL, "two packed inputs are alive at once"},
    {"pack-stream", BLOCK, "--pack-stream rs", NULL,
     "gradients are packed on RS, into its memory, and no later packing waits for that"},
    {"separate-reduce-comm", "", "--separate-reduce-comm yes", NULL,
     "reduce-scatters queue behind no all-gather"},
    {"unused-zero", "", "--unused zero", "*.q_proj.*", "zeros are reduced in place of no gradient"},
    {"divide-factor", "", "--divide-factor 3", NULL,
     "each rank's input is multiplied by a third while it is summed"},
    {"divide-factor-alone", BLOCK " --gpus 1", "--divide-factor 3", NULL,
     "where nothing is sent a kernel divides"},
    {"force-sum", "", "--force-sum yes", NULL, "plain sums, and a kernel that divides after them"},
    {"reduce-bf16", BLOCK, "--reduce-dtype bf16", NULL,
     "half the bytes, and a cast to the FP32 gradient"},
    {"reduce-fp16", BLOCK " --gpus 8", "--reduce-dtype fp16", NULL,
     "sums with a division by 4 before and by 2 after"},
    {"storage-bf16", BLOCK, "--storage-dtype bf16", NULL,
     "no cast before the gather, one after the reduce"},
    {"behavior-2.15", "", "--behavior torch-2.15", NULL, "autograd yields FP32 gradients"},
    {"behavior-2.15-frozen", "--freeze model.layers.*", "--behavior torch-2.15.0", NULL,
     "a unit without gradients lets go of what others hold"},
    {"behavior-unshard", "--units whole --gpus 8 --accum 2 --reduce-dtype bf16",
     "--behavior unshard", NULL,
     "casts need no buffer, slots begin on 16 bytes, one launch ends a reduction"},
    {"keep-fp32", BLOCK " --behavior torch-pr196626", NORMS, NULL,
     "mixed units are gathered as bytes, and one launch packs both dtypes"},
    {"keep-fp32-2.15", MIXED, "--behavior torch-2.15", NULL,
     "gradients of mixed units are FP32 already"},
    {"keep-fp32-2.15.0", MIXED, "--behavior torch-2.15.0", NULL,
     "packing takes a launch for each dtype of gradient"},
    {"keep-fp32-unshard", MIXED, "--behavior unshard", NULL,
     "one launch casts and places both dtypes"},
    {"by-dtype", "", "--keep-fp32 model.norm.* --arrange by-dtype", NULL,
     "what computes in another dtype is a unit of its own"},
    {"precast", MIXED, "--arrange precast", NULL,
     "gradients are cast at full size before they are packed"},
    {"freeze-embedding", "", "--freeze *embed*", NULL,
     "the embedding has no backward, and the block's is over only at the end"},
    {"freeze-all-but-q", "", "--freeze " ALL_BUT_Q, NULL,
     "only the block is reduced, of it one weight"},
    {"ignore", "", "--ignore model.norm.weight", NULL,
     "each rank has all of it and nothing sends it"},
    {"shard-dim", "", "--shard-dim *.down_proj.weight=1", NULL,
     "what is cut crosswise is put together once more, both ways"},
    {"second-mesh", BLOCK " --behavior torch-2.15", "--second-mesh *.mlp.*", NULL,
     "a unit of two groups has an all-gather and a reduce-scatter of each"},
    {"fsdp1-grad-op", FSDP1, "--fsdp1-strategy grad-op", NULL, "backward gathers nothing"},
    {"fsdp1-post", FSDP1, "--fsdp1-backward-prefetch post", NULL,
     "the next unit is gathered behind the backward of this one"},
    {"fsdp1-forward-prefetch", FSDP1, "--forward-prefetch yes", NULL,
     "the next unit is gathered before the forward of this one, and reduced late"},
    {"fsdp1-limit", FSDP1, "--limit-all-gathers no", NULL, "the host never waits"},
    {"fsdp1-record-stream", FSDP1, "--record-stream no", NULL,
     "the stream that owns memory waits for the one that uses it"},
    {"fsdp1-pad-grads", FSDP1, "--pad-grads yes", NULL,
     "what is reduced is a copy of the gradients that were cast"},
    {"fsdp1-use-orig-params", FSDP1 " --optimizer adamw-composer", "--use-orig-params yes", NULL,
     "the optimizer takes piece by piece of what rank 0 holds"},
    {"fsdp1-clip", FSDP1, "--clip 1", NULL, "gradients are normed and scaled one by one"},
    {"alone", BLOCK, "--replicas 4", NULL,
     "shards of one rank: copies in place of gather and scatter"},
    {"scaler", "--replicas 2", "--scaler yes", NULL,
     "the host waits for a verdict over the shards"},
    {"clip", "--replicas 2", "--clip 1", NULL, "one number over the shards, then all is scaled"},
    {"log-loss", "--replicas 2", "--log-loss yes", NULL,
     "the host waits for one number over all ranks"},
    {"train-metrics", "--accum 2", "--train-metrics 2", NULL,
     "logits and labels live on behind backward, for two cross entropies"},
    {"output-dtype", "", "--output-dtype fp32", NULL,
     "between two hooks a unit's output is cast up and down again"},
    {"host-sync", "", "--host-sync model.layers.0", NULL,
     "the host waits after the block's forward"},
};

/* A launch that the host makes in one kernel over the shards needs no word. */
static void add_launch(const struct task *task, struct text *out)
{
    if (task->body == NO_BODY && task->kernels != 1 && !task_kind_is_collective(task->kind))
        text_add(out, " in %u kernels", task->kernels);
    if (task->comm != COMM_NONE && task->comm != COMM_SHARD)
        text_add(out, " over %s", comm_name((enum comm)task->comm));
}

/* The steady section; program_print() has one line for each instruction. */
static char *printed(const struct program *program)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    struct text plain, out;
    text_init(&plain);
    text_init(&out);
    program_print(program, SECTION_STEADY, false, &plain);
    const char *line = strchr(plain.at, '\n') + 1;
    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const size_t length = strcspn(line, "\n");
        text_add(&out, "%.*s", (int)length, line);
        if (program->instrs[i].op == INSTR_LAUNCH)
            add_launch(&program->tasks[program->instrs[i].id], &out);
        text_add(&out, "\n");
        line += length + 1;
    }
    text_release(&plain);
    return out.at;
}

/* Verified on the way. */
static char *printed_of(const char *words, const char *unused)
{
    struct made made;
    struct fault fault;
    struct err err = {0};
    asked_init(&made, words, unused);
    char *text = printed(&made.program);
    if (!ok(verify_program(&made.program, &made.arena, &fault, &err) == STATUS_OK,
            "'%s' gives a safe program", words))
        tap_note("%s", err.text);
    make_release(&made);
    return text;
}

static void changes_the_program(const struct knob *knob)
{
    char words[256], name[64];
    struct text diff;
    snprintf(words, sizeof words, "%s %s", knob->base, knob->knob);
    snprintf(name, sizeof name, "knob-%s.txt", knob->golden);
    char *before = printed_of(knob->base, knob->unused);
    char *after = printed_of(words, knob->unused);
    text_init(&diff);
    line_diff(before, after, &diff);
    tap_note("%s: %s", knob->knob, knob->changes);
    is_golden(diff.at, name);
    text_release(&diff);
    free(before);
    free(after);
}

int main(void)
{
    char *none = printed_of("", NULL);
    is_golden(none, "knob-none.txt");
    free(none);
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        changes_the_program(&knobs[i]);
    return tap_done();
}
