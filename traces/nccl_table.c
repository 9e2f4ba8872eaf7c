/*
 * Comments of an nccl-tests output and the end of a test; see nccl_table.h. Rows are in nccl_row.c.
 */
#include "traces/nccl_table.h"

#include <math.h>
#include <string.h>

#include "src/hash.h"
#include "src/plan.h"
#include "src/program.h"
#include "src/text.h"

/* Names of nccl-tests' programs, without _perf; what is of no use here has no kind. */
static const struct {
    const char *name;
    uint8_t kind;
    bool is_used;
} collectives[] = {
    {"all_gather", TASK_ALL_GATHER, true},
    {"reduce_scatter", TASK_REDUCE_SCATTER, true},
    {"all_reduce", TASK_ALL_REDUCE, true},
    {"alltoall", 0, false},
    {"alltoallv", 0, false},
    {"broadcast", 0, false},
    {"gather", 0, false},
    {"scatter", 0, false},
    {"reduce", 0, false},
    {"sendrecv", 0, false},
    {"hypercube", 0, false},
};
enum { N_COLLECTIVE = sizeof collectives / sizeof *collectives };

struct nccl_table *nccl_table_new(struct arena *arena)
{
    struct nccl_table *table = arena_array(arena, struct nccl_table, 1);

    table->tests = arena_array(arena, struct nccl_test, NCCL_MAX_TESTS);
    table->rows = arena_array(arena, struct nccl_row, NCCL_MAX_ROWS);
    table->hosts = arena_array(arena, uint64_t, NCCL_MAX_HOSTS);
    table->open.most_ratio = INFINITY;
    return table;
}

/* ---- the end of a test -------------------------------------------------------------------------- */

static enum status fail_test(const struct nccl_table *table, struct err *err, const char *what)
{
    return err_set(err, STATUS_INPUT, "line %u: %s", table->rows[table->first_row].line, what);
}

static double ratio_of(uint8_t kind, double ranks)
{
    return (kind == TASK_ALL_REDUCE ? 2 : 1) * (ranks - 1) / ranks;
}

/*
 * Old versions do not name their collective. An all-gather then looks like an all-to-all, but one of
 * the reductions doubles its bandwidth: from half to nearly the whole, against the whole and more.
 */
static enum status settle_kind(const struct nccl_table *table, uint8_t *kind, struct err *err)
{
    static const double NEARLY = 0.999;
    const struct nccl_open_test *open = &table->open;

    if (!open->reduces)
        return fail_test(table, err,
                         "which collective is this? put a line '# all_gather' above its table");
    if (open->least_ratio >= NEARLY)
        *kind = TASK_ALL_REDUCE;
    else if (open->most_ratio < NEARLY)
        *kind = TASK_REDUCE_SCATTER;
    else
        return fail_test(
            table, err,
            "which collective is this? put a line '# reduce_scatter' or '# all_reduce' "
            "above its table");
    return STATUS_OK;
}

/* The one number of ranks that all rows agree with. */
static enum status settle_ranks(const struct nccl_table *table, uint8_t kind, uint32_t *ranks,
                                struct err *err)
{
    static const double SLACK = 1e-9;
    const struct nccl_open_test *open = &table->open;
    const double twice = kind == TASK_ALL_REDUCE ? 2 : 1;
    const double least = 1 / (1 - open->least_ratio / twice);
    const double most = open->most_ratio < twice ? 1 / (1 - open->most_ratio / twice) : INFINITY;

    if (*ranks > 0 && (ratio_of(kind, *ranks) < open->least_ratio - SLACK ||
                       ratio_of(kind, *ranks) > open->most_ratio + SLACK))
        return fail_test(table, err,
                         "busbw and algbw are not of as many ranks as are said or listed");
    if (*ranks == 0 && open->least_ratio < twice && most <= PLAN_MAX_RANKS &&
        ceil(least - SLACK) == floor(most + SLACK))
        *ranks = (uint32_t)floor(most + SLACK);
    if (*ranks == 0)
        return fail_test(table, err,
                         "of how many ranks is this? put a line '# 16 ranks' above its "
                         "table, with the right number");
    if (*ranks < 2 || *ranks > PLAN_MAX_RANKS)
        return fail_test(table, err,
                         "a collective of one rank, or of more than can be planned for");
    return STATUS_OK;
}

static void reset(struct nccl_table *table)
{
    table->open = (struct nccl_open_test){.most_ratio = INFINITY};
    table->first_row = table->n_row;
}

/* A list that was cut says how many ranks there are, but not how many nodes. */
static enum status settle(struct nccl_table *table, uint8_t kind, bool is_named, struct err *err)
{
    const struct nccl_open_test *open = &table->open;
    struct nccl_test test = {.kind = kind,
                             .ranks = open->ranks,
                             .nodes = open->nodes,
                             .rows = table->rows + table->first_row,
                             .n_row = table->n_row - table->first_row};
    enum status status = STATUS_OK;

    if (!is_named)
        status = settle_kind(table, &test.kind, err);
    if (status == STATUS_OK)
        status = settle_ranks(table, test.kind, &test.ranks, err);
    if (status != STATUS_OK)
        return status;
    if (test.nodes == 0 && open->n_listed == test.ranks)
        test.nodes = open->n_host;
    if (test.nodes > test.ranks)
        return fail_test(table, err, "more nodes than ranks");
    if (table->n_test == NCCL_MAX_TESTS)
        return fail_test(table, err, "too many tests in one file");
    memcpy(test.date, open->date, sizeof test.date);
    table->tests[table->n_test++] = test;
    return STATUS_OK;
}

static enum status end_test(struct nccl_table *table, struct err *err)
{
    const char *name = table->open.name;
    enum status status = STATUS_OK;
    int i = 0;

    if (table->n_row == table->first_row)
        return STATUS_OK;
    while (name && i < N_COLLECTIVE && strcmp(name, collectives[i].name) != 0)
        i++;
    if (!name || collectives[i].is_used)
        status = settle(table, collectives[i].kind, name != NULL, err);
    else
        table->n_row = table->first_row;
    reset(table);
    return status;
}

enum status nccl_table_end(struct nccl_table *table, struct err *err)
{
    const enum status status = end_test(table, err);

    if (status == STATUS_OK && table->n_test == 0)
        return err_set(err, STATUS_INPUT,
                       "no row of all_gather, reduce_scatter or all_reduce; what nccl-tests prints "
                       "is needed");
    return status;
}

/* ---- comments ----------------------------------------------------------------------------------- */

/* Of a program's path, or of the name alone; "all_gather_perf" and "all_gather_perf_mpi" too. */
static const char *collective_in(const struct nccl_words *words)
{
    for (int w = 0; w < words->n; w++) {
        const char *slash = strrchr(words->at[w], '/');
        const char *word = slash ? slash + 1 : words->at[w];
        for (int i = 0; i < N_COLLECTIVE; i++) {
            const size_t length = strlen(collectives[i].name);
            if (strncmp(word, collectives[i].name, length) == 0 &&
                (word[length] == '\0' || strncmp(word + length, "_perf", 5) == 0))
                return collectives[i].name;
        }
    }
    return NULL;
}

static int word_after(const struct nccl_words *words, int from, const char *word)
{
    for (int w = from; w + 1 < words->n; w++)
        if (strcmp(words->at[w], word) == 0)
            return w + 1;
    return -1;
}

/* "2 node(s) 16 ranks" */
static uint32_t count_before(const struct nccl_words *words, const char *one, const char *other)
{
    uint64_t n;

    for (int w = 1; w < words->n; w++)
        if ((strcmp(words->at[w], one) == 0 || strcmp(words->at[w], other) == 0) &&
            text_to_u64(words->at[w - 1], &n) && n <= UINT32_MAX)
            return (uint32_t)n;
    return 0;
}

static enum status list_host(struct nccl_table *table, const char *name, struct err *err)
{
    uint64_t hash = 0;

    for (; *name; name++)
        hash = hash_add(hash, (unsigned char)*name);
    for (uint32_t i = table->open.n_host; i > 0; i--)
        if (table->hosts[i - 1] == hash)
            return STATUS_OK;
    if (table->open.n_host == NCCL_MAX_HOSTS)
        return err_set(err, STATUS_INPUT, "line %u: more than %d hosts", table->line,
                       NCCL_MAX_HOSTS);
    table->hosts[table->open.n_host++] = hash;
    return STATUS_OK;
}

/* "Rank 3 Group 0 Pid 7 on host device 3 ...", and as people shorten it: "Rank 0 .. Rank 7 on host" */
static enum status list_ranks(struct nccl_table *table, const struct nccl_words *words,
                              struct err *err)
{
    const int first_at = word_after(words, 0, "Rank"), host_at = word_after(words, 0, "on");
    const int last_at = word_after(words, first_at, "Rank");
    uint64_t first, last;

    if (!text_to_u64(words->at[first_at], &first) ||
        !text_to_u64(words->at[last_at < 0 ? first_at : last_at], &last) || last < first ||
        last >= PLAN_MAX_RANKS)
        return STATUS_OK;
    table->open.n_listed += (uint32_t)(last - first) + 1;
    if (table->open.ranks <= last)
        table->open.ranks = (uint32_t)last + 1;
    return host_at < 0 ? STATUS_OK : list_host(table, words->at[host_at], err);
}

static int column_of(const struct nccl_words *words, const char *name, int nth)
{
    for (int w = 0; w < words->n; w++)
        if (strcmp(words->at[w], name) == 0 && nth-- == 0)
            return w;
    return -1;
}

static enum status take_columns(struct nccl_table *table, const struct nccl_words *words,
                                struct err *err)
{
    struct nccl_columns columns = {.n = words->n,
                                   .size = column_of(words, "size", 0),
                                   .redop = column_of(words, "redop", 0),
                                   .date = column_of(words, "timestamp", 0)};

    for (int block = 0; block < NCCL_BLOCK_N; block++) {
        const int nth = table->in_place_first ? 1 - block : block;
        columns.time[block] = column_of(words, "time", nth);
        columns.algbw[block] = column_of(words, "algbw", nth);
        columns.busbw[block] = column_of(words, "busbw", nth);
        columns.wrong[block] = column_of(words, "#wrong", nth);
        if (columns.time[block] < 0 || columns.algbw[block] < 0 || columns.busbw[block] < 0 ||
            columns.redop < 0)
            return err_set(err, STATUS_INPUT,
                           "line %u: redop, and time, algbw and busbw, out of place and in place, "
                           "are needed as columns%s",
                           table->line,
                           column_of(words, "cputime", 0) < 0 ? "" : "; -C measures the host");
    }
    table->columns = columns;
    return STATUS_OK;
}

static void note_order(struct nccl_table *table, const struct nccl_words *words)
{
    const int in = column_of(words, "in-place", 0), out = column_of(words, "out-of-place", 0);

    if (in >= 0 && out >= 0)
        table->in_place_first = in < out;
}

enum status nccl_table_comment(struct nccl_table *table, const struct nccl_words *words,
                               struct err *err)
{
    const bool is_columns = words->n > 0 && strcmp(words->at[0], "size") == 0;
    const bool is_rank = words->n > 1 && strcmp(words->at[0], "Rank") == 0;
    const bool is_over = column_of(words, "concluded:", 0) >= 0; /* names a test that has ended */
    const char *name = is_over ? NULL : collective_in(words);
    const uint32_t ranks = count_before(words, "ranks", "rank");
    const uint32_t nodes = count_before(words, "nodes", "node(s)");
    enum status status = STATUS_OK;

    note_order(table, words);
    if (is_columns || is_rank || name || ranks > 0 || nodes > 0)
        status = end_test(table, err);
    if (status != STATUS_OK)
        return status;
    if (name)
        table->open.name = name;
    if (ranks > 0)
        table->open.ranks = ranks;
    if (nodes > 0)
        table->open.nodes = nodes;
    if (is_rank && (status = list_ranks(table, words, err)) != STATUS_OK)
        return status;
    return is_columns ? take_columns(table, words, err) : STATUS_OK;
}
