/*
 * `unshard bench search`: how fast plans are judged, placed and searched through.
 *
 * By the threads and in the memory of a real search. The plans are all that are one step away from
 * the model's usual one, so that none is like the one before.
 */
#include <sys/resource.h>

#include "sim/judge_pool.h"
#include "sim/search.h"
#include "src/cli/bench.h"

enum {
    JUDGED = 512, /* plans of a batch, as in a search */
    PLACED = 32,
    SEARCHED = 10000,
    SEARCH_TIMES = 10 /* of that is a search of 100,000 */
};

/* A model's space, and plans of it. */
struct space_case {
    struct prepared start, fine; /* its usual units; these as small as they may become */
    struct space space;
    const uint8_t *points[JUDGED];
    struct judge_pool *pools[2]; /* by threads, less one */
};

struct bench {
    struct space_case large, small, wide, searched; /* 100 units; on 8 GPUs and on 10,000; 70b */
    struct judged judged[JUDGED];
    struct placed placed[PLACED];
    struct arena arena; /* of one search */
};

static void close_case(struct space_case *of)
{
    judge_pool_free(of->pools[0]);
    judge_pool_free(of->pools[1]);
    prepared_release(&of->start);
    prepared_release(&of->fine);
}

static void choose_points(struct space_case *of)
{
    uint8_t *points;
    const uint32_t n = space_neighbours(&of->space, of->space.start, &of->fine.arena, &points);

    for (uint32_t i = 0; i < JUDGED; i++)
        of->points[i] = points + (size_t)(i % n) * of->space.point_bytes;
}

/* words: of a command line of `sim`, which the options point into. */
static enum status open_case(int n_word, char **words, struct space_case *out, struct err *err)
{
    struct options options, fine;
    enum status status = options_parse(command_find("sim"), n_word, words, &options, err);

    if (status != STATUS_OK)
        return status;
    fine = options;
    status = options_take(&fine, OPTION_UNITS, "piece", err);
    if (status == STATUS_OK)
        status = prepare(&options, &out->start, err);
    if (status == STATUS_OK)
        status = prepare(&fine, &out->fine, err);
    if (status == STATUS_OK)
        status = space_init(&out->fine.plan, &out->start.plan, AXES_ALL, &out->fine.arena,
                            &out->space, err);
    if (status != STATUS_OK)
        return status;
    choose_points(out);
    for (uint32_t jobs = 1; jobs <= 2; jobs++)
        out->pools[jobs - 1] =
            judge_pool_new(&out->space, &out->fine.cluster, &out->fine.bodies, jobs);
    return STATUS_OK;
}

static enum status open_cases(struct bench *bench, struct err *err)
{
    static char sim[] = "sim", m405[] = "llama3-405b", m70[] = "llama3-70b", ac[] = "--ac=full",
                layers[] = "--layers=98", on_8[] = "--gpus=8", on_64[] = "--gpus=64",
                on_512[] = "--gpus=512", on_10k[] = "--gpus=10000";
    static char *large[] = {sim, m405, on_512, ac, layers, NULL},
                *small[] = {sim, m70, on_8, ac, NULL}, *wide[] = {sim, m70, on_10k, ac, NULL},
                *searched[] = {sim, m70, on_64, ac, NULL};
    enum status status = open_case(5, large, &bench->large, err);

    if (status == STATUS_OK)
        status = open_case(4, small, &bench->small, err);
    if (status == STATUS_OK)
        status = open_case(4, wide, &bench->wide, err);
    return status == STATUS_OK ? open_case(4, searched, &bench->searched, err) : status;
}

/* ---- stages --------------------------------------------------------------------------------------- */

static enum status judge(struct bench *bench, struct space_case *of, uint32_t jobs)
{
    judge_pool_run(of->pools[jobs - 1], OBJECTIVE_EVENTS, of->points, JUDGED, bench->judged);
    return STATUS_OK;
}

static enum status run_judge(void *self, struct err *err)
{
    struct bench *bench = self;
    (void)err;
    return judge(bench, &bench->large, 1);
}

static enum status run_two_jobs(void *self, struct err *err)
{
    struct bench *bench = self;
    (void)err;
    return judge(bench, &bench->large, 2);
}

static enum status run_small(void *self, struct err *err)
{
    struct bench *bench = self;
    (void)err;
    return judge(bench, &bench->small, 1);
}

static enum status run_wide(void *self, struct err *err)
{
    struct bench *bench = self;
    (void)err;
    return judge(bench, &bench->wide, 1);
}

static enum status run_place(void *self, struct err *err)
{
    const struct alloc_config config = alloc_config_default();
    struct bench *bench = self;
    (void)err;
    judge_pool_place(bench->large.pools[0], bench->large.points, PLACED, &config, bench->placed);
    return STATUS_OK;
}

static bool go_on(void *self, const struct search_progress *progress)
{
    (void)self;
    return progress->judged < SEARCHED;
}

/* The whole space in its order, as far as that goes, and nothing passed over. */
static enum status run_search(void *self, struct err *err)
{
    struct bench *bench = self;
    struct space_case *of = &bench->searched;
    struct search_options options = search_options_default();
    struct search_result result;

    options.exact_points = UINT64_MAX;
    options.bounds = 0;
    options.jobs = 2;
    options.go_on = go_on;
    return search_run(&of->space, &of->fine.cluster, &of->fine.bodies, &options, &bench->arena,
                      &result, err);
}

static void reset(void *self)
{
    struct bench *bench = self;
    arena_reset(&bench->arena);
}

/* ---- the answer ----------------------------------------------------------------------------------- */

/* Pairs are measured in turn. */
struct times {
    struct bench_time jobs[2], gpus[2], place, search;
};

static enum status measure_all(struct bench *bench, struct times *out, struct err *err)
{
    static const struct bench_stage jobs[] = {{1, 7, NULL, run_judge}, {1, 7, NULL, run_two_jobs}},
                                    gpus[] = {{1, 5, NULL, run_small}, {1, 5, NULL, run_wide}},
                                    place = {1, 3, NULL, run_place},
                                    search = {0, 1, reset, run_search};
    enum status status = bench_measure_in_turn(jobs, 2, bench, out->jobs, err);

    if (status == STATUS_OK)
        status = bench_measure_in_turn(gpus, 2, bench, out->gpus, err);
    if (status == STATUS_OK)
        status = bench_measure(&place, bench, &out->place, err);
    return status == STATUS_OK ? bench_measure(&search, bench, &out->search, err) : status;
}

static double peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024e-6;
}

static void print(const struct bench *bench, const struct times *times,
                  const struct options *options, struct output *out)
{
    const struct bench_time *one = &times->jobs[0], *two = &times->jobs[1];
    const struct bench_fact facts[] = {{"plans", "plans in a batch", JUDGED}};
    const struct bench_line lines[] = {
        {"candidates_per_s", BENCH_PER_S, JUDGED / one->wall_s, 20000,
         "plans judged: built, priced, step, peak"},
        {"candidates_per_cpu_s", BENCH_PER_S, JUDGED / one->cpu_s, 0, "the same, by CPU time"},
        {"placed_per_s", BENCH_PER_S, PLACED / times->place.wall_s, 300,
         "plans placed by the allocator"},
        {"placed_per_cpu_s", BENCH_PER_S, PLACED / times->place.cpu_s, 0, "the same, by CPU time"},
        {"jobs_2_percent", BENCH_PERCENT, 100 * one->wall_s / two->wall_s, 180,
         "speed of two threads, of that of one"},
        {"jobs_2_cpu_percent", BENCH_PERCENT, 200 * one->cpu_s / two->cpu_s, 0,
         "what it would be on two free cores, by CPU time"},
        {"gpus_10k_percent", BENCH_PERCENT_AT_MOST,
         100 * times->gpus[1].cpu_s / times->gpus[0].cpu_s, 110,
         "CPU time for 10,000 GPUs, of that for 8"},
        {"search_100k_ms", BENCH_MS, SEARCH_TIMES * times->search.wall_s * 1e3, 5000,
         "ten times 10,000 plans of llama3-70b, 2 threads"},
        {"search_100k_cpu_ms", BENCH_MS, SEARCH_TIMES * times->search.cpu_s * 1e3, 0,
         "the same, CPU time of both"},
        {"peak_mb", BENCH_MB, peak_mb(), 200, "memory of the process, at most"},
    };
    const struct bench_report report = {
        .benchmark = "search",
        .prepared = &bench->large.start,
        .facts = facts,
        .lines = lines,
        .n_fact = sizeof facts / sizeof *facts,
        .n_line = sizeof lines / sizeof *lines,
    };
    bench_print(&report, options, out);
}

enum status bench_search(const struct options *options, struct output *out, struct err *err)
{
    struct bench bench = {0};
    struct times times;

    arena_init(&bench.arena);
    enum status status = open_cases(&bench, err);
    if (status == STATUS_OK)
        status = measure_all(&bench, &times, err);
    if (status == STATUS_OK)
        print(&bench, &times, options, out);
    close_case(&bench.large);
    close_case(&bench.small);
    close_case(&bench.wide);
    close_case(&bench.searched);
    arena_release(&bench.arena);
    return status;
}
