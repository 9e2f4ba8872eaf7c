/*
 * Options drawn at random, one of each row, and parameters frozen at random, in FP32: whatever goes
 * together computes what the reference computes. The bounds leave room for kda's second step
 * (real_numbers.c), however it is drawn.
 */
#include <stdio.h>
#include <string.h>

#include "tests/real_judge.h"
#include "tests/tap.h"

enum { ROUNDS = 40, MAX_CHOICES = 8, MAX_PATTERNS = 20, MAX_WORDS = 1024 };

static const struct number_bound bounds[] = {
    {"grad 1 of *", 1e-3}, {"norm 1", 1e-3}, {"logits", 1e-4}, {"d_input", 1e-3}, {"*", 2e-5}};

/* NULL: no more of them. */
static const char *const rows[][MAX_CHOICES] = {
    {"--gpus 1", "--gpus 2", "--gpus 3", "--gpus 4", "--replicas 2", "--gpus 2 --replicas 2",
     "--gpus 4 --separate-reduce-comm yes"},
    {"", "--accum 2", "--accum 2 --sync last", "--accum 3 --sync last",
     "--accum 2 --all-reduce last", "--accum 2 --last-backward last"},
    {"--batch 1", "--batch 2"},
    {"--units block", "--units block*2", "--units whole", "--units torchtitan"},
    {"--reshard yes", "--reshard no", "--reshard all-but-last"},
    {"--reshard-backward every", "--reshard-backward last"},
    {"--prefetch 0", "--prefetch 1", "--prefetch 2", "--prefetch 3"},
    {"--prefetch-backward 0", "--prefetch-backward 1", "--prefetch-backward 3"},
    {"--reduce-inputs 1", "--reduce-inputs 2"},
    {"--pack-stream c", "--pack-stream rs"},
    {"--ac none", "--ac full", "--ac op", "--ac every:2"},
    {"", "--divide-factor 3", "--divide-factor 4", "--force-sum yes"},
    {"", "--clip 0.5"},
    {"--optimizer sgd", "--optimizer adamw-fused"},
    {"--allocator caching", "--log-loss yes"},
};

static const struct family {
    enum small small;
    const char *frozen[MAX_PATTERNS]; /* each with one chance in three */
} families[] = {
    {SMALL_LLAMA,
     {"*embed*", "*q_proj*", "*k_proj*", "*v_proj*", "*o_proj*", "*gate_proj*", "*up_proj*",
      "*down_proj*", "*input_layernorm*", "*post_attention*", "*layers.0.*"}},
    {SMALL_GPT2,
     {"*wte*", "*wpe*", "*c_attn.weight", "*c_attn.bias", "*attn.c_proj*", "*c_fc.weight",
      "*c_fc.bias", "*mlp.c_proj*", "*ln_1.weight", "*ln_1.bias", "*ln_2*", "*h.0.*"}},
    {SMALL_KDA,
     {"*embed*", "*q_proj*", "*k_proj*", "*v_proj*", "*q_conv1d*", "*k_conv1d*", "*v_conv1d*",
      "*f_a_proj*", "*f_b_proj*", "*.b_proj*", "*g_a_proj*", "*g_b_proj*", "*o_norm*", "*o_proj*",
      "*A_log", "*dt_bias", "*input_layernorm*", "*mlp*", "*layers.0.*"}},
};

static void add(char *words, const char *more)
{
    const size_t length = strlen(words);
    snprintf(words + length, MAX_WORDS - length, "%s%s", *more ? " " : "", more);
}

static void add_choice(char *words, const char *const *choices, uint64_t *state)
{
    uint64_t n = 0;
    while (n < MAX_CHOICES && choices[n])
        n++;
    add(words, choices[tap_below(state, n)]);
}

static void add_frozen(char *words, const struct family *family, uint64_t *state)
{
    const char *before = " --freeze ";

    for (int i = 0; i < MAX_PATTERNS && family->frozen[i]; i++) {
        const size_t length = strlen(words);
        if (tap_below(state, 3) > 0)
            continue;
        snprintf(words + length, MAX_WORDS - length, "%s%s", before, family->frozen[i]);
        before = ",";
    }
}

int main(void)
{
    uint64_t state = tap_seed(1);

    for (int round = 0; round < ROUNDS; round++) {
        const struct family *family = &families[round % 3];
        char words[MAX_WORDS] = "";
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            add_choice(words, rows[i], &state);
        if (round % 2)
            add_frozen(words, family, &state);
        real_case_check(&(struct real_case){family->small, .words = words, .max_norm = 0.5f},
                        bounds);
    }
    return tap_done();
}
