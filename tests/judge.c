/*
 * What a search judges by is what a simulation says: time and peak of random plans and of real models
 * on several clusters, and of hosts from idle to far too slow.
 */
#include "sim/judge.h"

#include <inttypes.h>
#include <string.h>

#include "sim/simulate.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { N_RANDOM = 600 };

static unsigned met_one, met_three;

static uint64_t highest(const struct summary *summary)
{
    uint64_t most = 0;
    for (unsigned s = 0; s < SECTION_N; s++)
        most = summary->peak_bytes[s] > most ? summary->peak_bytes[s] : most;
    return most;
}

/* The whole way: three sections, three steps. */
static void simulate_plan(struct made *made, const struct cluster *cluster, struct judged *out)
{
    struct prices prices;
    struct step_time time;
    struct summary summary;
    struct err err = {0};

    if (cost_price(cluster, SPREAD_MID, &made->program, &made->arena, &prices, &err) != STATUS_OK ||
        simulate(&made->program, &prices, NULL, &made->arena, &time, NULL, &err) != STATUS_OK)
        tap_bail(err.text);
    summary_of(&made->program, &summary);
    *out = (struct judged){.step_ns = time.step_ns, .peak_bytes = highest(&summary)};
}

static void compare(struct made *made, const struct cluster *cluster, const char *what)
{
    struct judge *judge = judge_new(cluster, &made->bodies);
    struct judged whole, fast = {0};
    struct err err = {0};

    simulate_plan(made, cluster, &whole);
    ok(judge_plan(judge, &made->plan, &fast, &err) == STATUS_OK && fast.step_ns == whole.step_ns &&
           fast.peak_bytes == whole.peak_bytes,
       "%s: %" PRIi64 " ns and %" PRIu64 " bytes, judged %" PRIi64 " and %" PRIu64, what,
       whole.step_ns, whole.peak_bytes, fast.step_ns, fast.peak_bytes);
    met_three += judge_count(judge).three > 0;
    met_one += judge_count(judge).three == 0;
    judge_free(judge);
}

/* The host of a cluster with rates, so many percent of what it is. */
static void slow_host(struct cluster *cluster, uint64_t percent)
{
    for (unsigned i = 0; i < SPREAD_N; i++) {
        cluster->host_launch_s.at[i] *= (double)percent / 100;
        cluster->host_all_gather_s.at[i] *= (double)percent / 100;
    }
}

static void test_random(uint64_t seed)
{
    static const char *const clusters[] = {"toy", "h100-sxm", "a100-sxm-80g"};
    static const uint64_t percents[] = {0, 1, 10, 100};

    for (unsigned i = 0; i < N_RANDOM; i++) {
        uint64_t state = seed + i;
        struct dims dims = make_random_dims(&state);
        struct plan_options options = make_random_options(&state, &dims);
        const char *name = clusters[tap_below(&state, 3)];
        const uint64_t percent = percents[tap_below(&state, 4)];
        const char *family = "llama";
        struct cluster cluster;
        struct made made;

        if (tap_below(&state, 4) == 0)
            family = make_random_tied(&state, &dims, &options);
        options.policy.param = DTYPE_BF16;
        options.linear_fp8 = false;
        options.scaler = false;
        make_init_family(&made, family, &dims, &options);
        if (cluster_open(name, &made.arena, &cluster, NULL) != STATUS_OK)
            tap_bail("a built-in cluster is not there");
        cluster.max_gpus_per_node = UINT64_MAX;
        slow_host(&cluster, percent);
        compare(&made, &cluster,
                arena_printf(&made.arena, "seed %" PRIu64 ", %s on %s, host at %" PRIu64 " %%",
                             seed + i, family, name, percent));
        make_release(&made);
    }
}

static void test_models(void)
{
    static const struct {
        const char *model, *cluster, *units;
        uint64_t gpus, batch, accum;
        enum checkpointing ac;
        bool log_loss;
    } cases[] = {
        {"llama3-8b", "h100-sxm", "torchtitan", 8, 1, 1, AC_NONE, false},
        {"llama3-8b", "h100-sxm", "block*4", 64, 2, 1, AC_FULL, false},
        {"llama3-8b", "h100-sxm", "whole", 64, 1, 2, AC_FULL, false},
        {"llama3-8b", "h100-sxm", "attn+mlp", 8, 1, 1, AC_NONE, true},
        {"llama3-8b", "a100-sxm-80g", "block", 1024, 1, 1, AC_OP, false},
        {"llama3-70b", "h100-sxm", "torchtitan", 64, 1, 1, AC_FULL, false},
        {"gpt2", "h100-sxm", "torchtitan", 8, 1, 1, AC_NONE, false},
        {"kda-1.75b", "h100-sxm", "torchtitan", 8, 4, 1, AC_NONE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan_options options = plan_options_default();
        struct cluster cluster;
        struct made made;
        options.units = cases[i].units;
        options.gpus = cases[i].gpus;
        options.batch = cases[i].batch;
        options.accum = cases[i].accum;
        options.ac = cases[i].ac;
        options.log_loss = cases[i].log_loss;
        if (!strncmp(cases[i].model, "kda", 3))
            options.policy.behavior = BEHAVIOR_TORCH_PR196626;
        make_init(&made, cases[i].model, 0, &options);
        if (cluster_open(cases[i].cluster, &made.arena, &cluster, NULL) != STATUS_OK)
            tap_bail("a built-in cluster is not there");
        compare(&made, &cluster,
                arena_printf(&made.arena, "%s in %s", cases[i].model, cases[i].units));
        make_release(&made);
    }
}

int main(void)
{
    test_random(tap_seed(11));
    test_models();
    ok(met_one > 100 && met_three > 100, "%u were judged by one step, %u by three", met_one,
       met_three);
    return tap_done();
}
