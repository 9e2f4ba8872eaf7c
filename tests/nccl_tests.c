/*
 * What nccl-tests prints: every form that people publish is read, and what is wrong is told with its
 * line.
 *
 * Cases are small outputs; what is read of one is compared as a line of text. The published files are
 * read as well, where they are there, and a sound output with random damage never does more than fail.
 */
#include "traces/nccl_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/program.h"
#include "src/text.h"
#include "tests/tap.h"

#define COLUMNS "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
#define GATHER_8 "1048576 16384 float none -1 47.14 22.24 19.46 0 45.43 23.08 20.20 0\n"
#define SCATTER_8 "1048576 16384 float sum -1 43.62 24.04 21.03 0 43.24 24.25 21.22 0\n"
#define REDUCE_8 "1048576 262144 float sum -1 28.56 36.71 64.24 0 28.37 36.96 64.68 0\n"
#define REDUCE_2 "1048576 262144 float sum -1 28.56 36.71 36.71 0 28.37 36.96 36.96 0\n"
#define RANK(n, host) "#  Rank  " #n " Group  0 Pid 77 on " host " device  0 [0x01] NVIDIA H100\n"

struct form {
    const char *what, *text;
    const char
        *want; /* "KIND RANKS/NODES ROWS OUT-OF-PLACE IN-PLACE DATE", of the first row; "; " */
};

static const struct form forms[] = {
    {"a named test with a list of its ranks",
     "# nccl-tests version 2.17.6\n# Collective test starting: all_gather_perf\n" RANK(0, "a")
         RANK(1, "b") "# out-of-place in-place\n" COLUMNS
                      "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n"
                      "1048576 131072 float none -1 10.00 104.86 52.43 0 11.00 95.33 47.66 0\n"
                      "# Out of bounds values : 0 OK\n# Avg bus bandwidth : 51\n"
                      "# Collective test concluded: all_gather_perf\n",
     "all_gather 2/2 1 10 11 "},
    {"hosts that take turns",
     "# all_gather\n" RANK(0, "a") RANK(1, "b") RANK(2, "a") RANK(3, "b") COLUMNS
     "8 2 float none -1 9.00 0.00 0.00 0 9.50 0.00 0.00 0\n",
     "all_gather 4/2 1 9 9.5 "},
    {"a list that somebody shortened",
     "# all_reduce\n# Rank 0 .. Rank 7 on a NVIDIA\n# Rank 8 .. Rank 15 on b\n" COLUMNS
     "8 2 float sum -1 9.00 0.00 0.00 0 9.50 0.00 0.00 0\n",
     "all_reduce 16/2 1 9 9.5 "},
    {"a list of which the end is left",
     "# all_reduce\n" RANK(71, "z") COLUMNS "8 2 float sum -1 9.00 0.00 0.00 0 9.50 0.00 0.00 0\n",
     "all_reduce 72/0 1 9 9.5 "},
    {"ranks and nodes in words",
     "# h100 2 node(s) 16 ranks all_gather\n" COLUMNS
     "8 2 float none -1 9.00 0.00 0.00 0 9.50 0.00 0.00 0\n",
     "all_gather 16/2 1 9 9.5 "},
    {"no header but the columns: an all-reduce", COLUMNS REDUCE_8, "all_reduce 8/0 1 28.56 28.37 "},
    {"an all-reduce of two ranks", COLUMNS REDUCE_2, "all_reduce 2/0 1 28.56 28.37 "},
    {"a reduce-scatter", COLUMNS SCATTER_8, "reduce_scatter 8/0 1 43.62 43.24 "},
    {"an all-gather that the path of its program names",
     "# ./build/all_gather_perf_mpi -b 8 -e 1G\n" COLUMNS GATHER_8,
     "all_gather 8/0 1 47.14 45.43 "},
    {"small rows say nothing of ranks, large ones do",
     COLUMNS "8 2 float sum -1 12.90 0.00 0.00 0 12.87 0.00 0.00 0\n"
             "262144 65536 float sum -1 20.27 12.94 22.64 0 20.13 13.02 22.78 0\n" REDUCE_8,
     "all_reduce 8/0 3 12.9 12.87 "},
    {"labels of mpirun, logs and errors of others",
     "mpirun: hello\n[1,0]<stdout>:" COLUMNS
     "[1,3]<stderr>:node:77:88 [0] NCCL INFO Channel 00\n[1,0]<stdout>:" REDUCE_8
     "--------\nWarning: 3 things\n",
     "all_reduce 8/0 1 28.56 28.37 "},
    {"labels of srun", "0: " COLUMNS "0:" REDUCE_8 " 0: " REDUCE_8,
     "all_reduce 8/0 2 28.56 28.37 "},
    {"lines of another system",
     "# all_gather 4 ranks\r\n" COLUMNS
     "8 2 float none -1 9.00 0.00 0.00 0 9.50 0.00 0.00 0\r\n#\r\n",
     "all_gather 4/0 1 9 9.5 "},
    {"no newline at the end",
     "# all_gather\n" COLUMNS "1048576 16384 float none -1 47.14 22.24 19.46 0 45.43 23.08 20.20 0",
     "all_gather 8/0 1 47.14 45.43 "},
    {"several tests",
     "# all_gather\n" COLUMNS GATHER_8 "# Avg bus bandwidth : 1\n#\n# all_reduce\n" RANK(0, "a")
         RANK(1, "a") COLUMNS REDUCE_2 COLUMNS SCATTER_8 SCATTER_8,
     "all_gather 8/0 1 47.14 45.43 ; all_reduce 2/1 1 28.56 28.37 ; reduce_scatter 8/0 2 43.62 "
     "43.24 "},
    {"tests of no use are left out",
     "# Collective test starting: alltoall_perf\n" COLUMNS GATHER_8
     "# Collective test starting: all_gather_perf\n" COLUMNS GATHER_8
     "# Collective test starting: sendrecv_perf\n" COLUMNS GATHER_8,
     "all_gather 8/0 1 47.14 45.43 "},
    {"a remark between rows", COLUMNS "# <smaller sizes left out>\n" REDUCE_8 "# ...\n" REDUCE_8,
     "all_reduce 8/0 2 28.56 28.37 "},
    {"messages of no size are left out",
     COLUMNS "0 0 float sum -1 6.35 0.00 0.00 0 6.00 0.00 0.00 0\n" REDUCE_8,
     "all_reduce 8/0 1 28.56 28.37 "},
    {"no check of values, times as exponents, a date (-S)",
     "# all_gather\n# size count type redop root time algbw busbw #wrong time algbw busbw #wrong "
     "timestamp\n1048576 16384 float none -1 4.7e+01 22.24 19.46 N/A 45 23.08 20.20 N/A 2026-05-22 "
     "10:11:12\n",
     "all_gather 8/0 1 47 45 2026-05-22"},
    {"statistics of iterations (-I)",
     "# all_gather\n# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% "
     "time "
     "algbw busbw #wrong i_min i_max i_p99 i_cv%\n"
     "1048576 16384 float none -1 47.14 22.24 19.46 0 40.0 50.0 49.0 1.2 45.43 23.08 20.20 0 40.0 "
     "50.0 49.0 1.2\n",
     "all_gather 8/0 1 47.14 45.43 "},
    {"an old table without root, with errors",
     "# all_reduce\n# size count type redop time algbw busbw error time algbw busbw error\n"
     "1048576 262144 float sum 28.56 36.71 64.24 1e-06 28.37 36.96 64.68 0e+00\n",
     "all_reduce 8/0 1 28.56 28.37 "},
    {"in place first", "# in-place out-of-place\n" COLUMNS REDUCE_8,
     "all_reduce 8/0 1 28.37 28.56 "},
    {"half of a table",
     "# all_gather 8 ranks\n" COLUMNS
     "1048576 16384 float none -1 47.14 22.24 19.46 0 N/A N/A N/A N/A\n",
     "all_gather 8/0 1 47.14 0 "},
};

static const struct form faults[] = {
    {"nothing", "", "no row of all_gather, reduce_scatter or all_reduce"},
    {"prose", "once upon a time\nthere was a table\n", "no row of all_gather"},
    {"a table without rows", "# all_gather\n" COLUMNS, "no row of all_gather"},
    {"only tests of no use", "# alltoall\n" COLUMNS GATHER_8, "no row of all_gather"},
    {"rows without columns", "# all_gather\n" GATHER_8, "line 2: a row before the line '# size"},
    {"a row that is cut off", COLUMNS REDUCE_8 "1048576 262144 float sum -1 28.56 36.71\n",
     "line 3: 7 columns in place of 13: a row is cut off"},
    {"a last row that is cut off", COLUMNS REDUCE_8 "1048", "line 3: 1 columns in place of 13"},
    {"a size past all", COLUMNS "99999999999999999999 1 float sum -1 1 1 1 0 1 1 1 0\n",
     "line 2: this is no size of a message: '99999999999999999999'"},
    {"a time that is none", COLUMNS "8 2 float sum -1 x 0.00 0.00 0 9 0.00 0.00 0\n",
     "line 2: this is no time in microseconds: 'x'"},
    {"a time below 0", COLUMNS "8 2 float sum -1 -3 0.00 0.00 0 9 0.00 0.00 0\n",
     "line 2: this is no time in microseconds: '-3'"},
    {"a time of 0", COLUMNS "8 2 float sum -1 9 0.00 0.00 0 0.00 0.00 0.00 0\n",
     "line 2: this is no time in microseconds: '0.00'"},
    {"a time without end", COLUMNS "8 2 float sum -1 inf 0.00 0.00 0 9 0.00 0.00 0\n",
     "line 2: this is no time in microseconds: 'inf'"},
    {"a bandwidth that is none", COLUMNS "8 2 float sum -1 9 0.00 nan 0 9 0.00 0.00 0\n",
     "line 2: busbw is no number: 'nan'"},
    {"wrong values", COLUMNS "8 2 float sum -1 9 0.00 0.00 3 9 0.00 0.00 0\n",
     "line 2: the collective gave wrong values, its time says nothing: '3'"},
    {"times of the host (-C)",
     "# size count type redop root cputime algbw busbw #wrong cputime algbw busbw #wrong\n",
     "line 1: redop, and time, algbw and busbw, out of place and in place, are needed as columns; "
     "-C "
     "measures the host"},
    {"another table", "# size count bandwidth\n", "line 1: redop, and time, algbw and busbw"},
    {"an all-gather or all-to-all", COLUMNS GATHER_8,
     "line 2: which collective is this? put a line '# all_gather' above its table"},
    {"a reduction that nothing tells", COLUMNS "8 2 float sum -1 9 0.00 0.00 0 9 0.00 0.00 0\n",
     "line 2: which collective is this? put a line '# reduce_scatter' or '# all_reduce'"},
    {"ranks that nothing tells",
     "# all_gather\n" COLUMNS "8 2 float none -1 9 0.00 0.00 0 9 0.00 0.00 0\n",
     "line 3: of how many ranks is this? put a line '# 16 ranks' above its table"},
    {"ranks that the numbers only nearly tell",
     "# all_reduce\n" COLUMNS "8 2 float sum -1 9 5.00 9.99 0 9 5.00 9.99 0\n",
     "line 3: of how many ranks is this?"},
    {"a list of other ranks", "# all_reduce\n" RANK(0, "a") RANK(1, "a") COLUMNS REDUCE_8,
     "line 5: busbw and algbw are not of as many ranks as are said or listed"},
    {"rows of several numbers of ranks", "# all_reduce\n" COLUMNS REDUCE_8 REDUCE_2,
     "line 4: busbw is of another number of ranks than above: '36.71'"},
    {"one rank", "# all_reduce 1 ranks\n" COLUMNS "8 2 float sum -1 9 0.00 0.00 0 9 0.00 0.00 0\n",
     "line 3: a collective of one rank, or of more"},
    {"more ranks than there are",
     "# all_reduce 4000000000 ranks\n" COLUMNS "8 2 float sum -1 9 0.00 0.00 0 9 0.00 0.00 0\n",
     "line 3: a collective of one rank, or of more"},
    {"more nodes than ranks",
     "# all_reduce 4 ranks 5 nodes\n" COLUMNS "8 2 float sum -1 9 0.00 0.00 0 9 0.00 0.00 0\n",
     "line 3: more nodes than ranks"},
};

static char path[] = "/tmp/unshard-nccl-XXXXXX";

static enum status read_text(const char *text, size_t length, struct arena *arena,
                             struct nccl_tests *out, struct err *err)
{
    FILE *file = fopen(path, "w");

    if (!file || fwrite(text, 1, length, file) != length || fclose(file) != 0)
        tap_bail("cannot write a temporary file");
    return nccl_tests_read(path, arena, out, err);
}

static void describe(const struct nccl_tests *tests, struct text *out)
{
    for (uint32_t i = 0; i < tests->n_test; i++) {
        const struct nccl_test *test = &tests->tests[i];
        text_add(out, "%s%s %u/%u %u %g %g %s", i ? "; " : "",
                 task_kind_name((enum task_kind)test->kind), test->ranks, test->nodes, test->n_row,
                 test->rows[0].seconds[NCCL_OUT_OF_PLACE] * 1e6,
                 test->rows[0].seconds[NCCL_IN_PLACE] * 1e6, test->date);
    }
}

static void check_form(const struct form *form)
{
    struct arena arena;
    struct nccl_tests tests;
    struct err err = {0};
    struct text got = {0};

    arena_init(&arena);
    const enum status status = read_text(form->text, strlen(form->text), &arena, &tests, &err);
    if (status == STATUS_OK)
        describe(&tests, &got);
    else
        text_add(&got, "%s", err.text);
    is_str(got.at, form->want, "read: %s", form->what);
    text_release(&got);
    arena_release(&arena);
}

static void check_fault(const struct form *fault)
{
    struct arena arena;
    struct nccl_tests tests = {.n_test = 77};
    struct err err = {0};
    char want[300];

    arena_init(&arena);
    const enum status status = read_text(fault->text, strlen(fault->text), &arena, &tests, &err);
    snprintf(want, sizeof want, "%s: %s", path, fault->want);
    err.text[strlen(want) < sizeof err.text ? strlen(want) : 0] = '\0';
    is_str(err.text, want, "refused: %s", fault->what);
    ok(status == STATUS_INPUT && tests.n_test == 77, "as bad input, and nothing is written");
    arena_release(&arena);
}

static void check_paths(struct arena *arena)
{
    struct nccl_tests tests;
    struct err err = {0};

    is_int(nccl_tests_read("/nowhere/a.txt", arena, &tests, &err), STATUS_INPUT, "a missing file");
    is_str(err.text, "cannot read '/nowhere/a.txt': No such file or directory", "by name");
    is_int(nccl_tests_read("/tmp", arena, &tests, &err), STATUS_INPUT, "a folder is no file");
}

/* Every line is ended by what does not fit, even one of nothing but zeros. */
static void check_long_lines(struct arena *arena)
{
    static char text[8192];
    struct nccl_tests tests;
    struct err err = {0};
    const size_t head = (size_t)snprintf(text, sizeof text, "%s%s", COLUMNS, "log ");

    memset(text + head, 'x', 3000);
    memset(text + head + 3000, '\0', 1000);
    strcpy(text + head + 4000, "\n" REDUCE_8 "8 2 cut\n");
    is_int(read_text(text, head + 4000 + strlen(text + head + 4000), arena, &tests, &err),
           STATUS_INPUT, "a line that is longer than any row is passed over");
    ok(strstr(err.text, "line 4: 3 columns"), "and counted once (%s)", err.text);
}

/* ---- what is published -------------------------------------------------------------------------- */

static const struct form published[] = {
    {"00_h100_sxm_coreweave.txt", NULL, "all_reduce 96/0 5 2984.6 2979.7 "},
    {"01_gb200_coreweave.txt", NULL, "all_reduce 72/0 5 1806.7 1835.9 "},
    {"03_gb200_coreweave.txt", NULL, "all_reduce 1440/0 6 7108.4 7145.8 "},
    {"04_a100_80_p4de_24xlarge__aws-samples.txt", NULL, "all_reduce 16/0 29 164.3 163.3 "},
    {"05_h100_sxm_p5_48xlarge__aws-samples.txt", NULL, "all_reduce 16/0 32 69.12 72.43 "},
    {"07_h100_sxm_p5_48xlarge__aws-samples.txt", NULL, "all_reduce 8/0 32 12.9 12.87 "},
    {"08_h100_sxm_oracle-quickstart.txt", NULL, "all_reduce 16/0 5 4478.8 4463.7 "},
    {"09_h100_sxm_dgxc.txt", NULL, "all_reduce 8/1 32 13.67 13.03 "},
    {"ext_b200_16_all_gather_f32_gke.txt", NULL, "all_gather 16/2 16 280.4 233.9 "},
    {"ext_h100_16_all_reduce_f32_ib.txt", NULL, "all_reduce 16/2 18 29.75 26.65 "},
    {"ext_h100_16_all_reduce_f32_poor.txt", NULL, "all_reduce 16/2 10 60.24 62.06 "},
    {"ext_h100_8_all_gather_bf16.txt", NULL, "all_gather 8/1 14 47.14 45.43 "},
    {"ext_h100_8_reduce_scatter_bf16.txt", NULL, "reduce_scatter 8/1 14 43.62 43.24 "},
};

static void check_published(const struct form *file)
{
    char name[128];
    struct arena arena;
    struct nccl_tests tests;
    struct err err = {0};
    struct text got = {0};

    snprintf(name, sizeof name, "data/nccl_raw/%s", file->what);
    const char *at = tap_shared(name);
    if (!at) {
        tap_skip("no published output here");
        return;
    }
    arena_init(&arena);
    if (nccl_tests_read(at, &arena, &tests, &err) == STATUS_OK)
        describe(&tests, &got);
    is_str(got.at ? got.at : err.text, file->want, "%s", file->what);
    text_release(&got);
    arena_release(&arena);
}

/* ---- damage ------------------------------------------------------------------------------------- */

enum { ROUNDS = 1500, DAMAGES = 4, MOST_ADDED = 8 };

/* Replace up to eight bytes by a piece, or by nothing. */
static void damage(char *text, size_t *length, uint64_t *state)
{
    static const char *const pieces[] = {"#",          "\n",    " ",     "-1",   "1e9",  "nan",
                                         "N/A",        "0:",    "[1,",   "\xff", "size", "Rank",
                                         "all_gather", "ranks", "99999", "\r\n"};
    const size_t at = tap_below(state, *length), left = *length - at;
    const char *piece = pieces[tap_below(state, sizeof pieces / sizeof *pieces)];
    const size_t wanted = tap_below(state, 9), gone = wanted < left ? wanted : left;
    const size_t length_of_piece = strlen(piece) < MOST_ADDED ? strlen(piece) : MOST_ADDED;
    const size_t added = tap_below(state, 3) ? length_of_piece : 0;

    memmove(text + at + added, text + at + gone, left - gone);
    memcpy(text + at, piece, added);
    *length += added - gone;
}

/* What was read is whole, or there is a reason that names a line or says that nothing is there. */
static bool is_answer(enum status status, const struct nccl_tests *tests, const struct err *err)
{
    if (status != STATUS_OK)
        return status == STATUS_INPUT &&
               (strstr(err->text, ": line ") || strstr(err->text, "no row"));
    for (uint32_t i = 0; i < tests->n_test; i++) {
        const struct nccl_test *test = &tests->tests[i];
        if (test->ranks < 2 || test->nodes > test->ranks || test->n_row == 0 ||
            test->rows[0].bytes == 0)
            return false;
    }
    return tests->n_test > 0;
}

static void check_damage(void)
{
    static const char sound[] =
        "# Collective test starting: all_gather_perf\n" RANK(0, "a") RANK(1, "b") COLUMNS
        "1048576 131072 float none -1 10.00 104.86 52.43 0 11.00 95.33 47.66 0\n"
        "# all_reduce\n" COLUMNS REDUCE_8 REDUCE_8 "[1,0]<stdout>:" SCATTER_8;
    char text[sizeof sound + DAMAGES * MOST_ADDED];
    uint64_t state = tap_seed(20261130);
    int wrong = 0, read = 0;

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t seed = state;
        size_t length = sizeof sound - 1;
        struct arena arena;
        struct nccl_tests tests = {0};
        struct err err = {0};

        memcpy(text, sound, length);
        for (uint64_t n = 1 + tap_below(&state, DAMAGES); n > 0 && length > 0; n--)
            damage(text, &length, &state);
        arena_init(&arena);
        const enum status status = read_text(text, length, &arena, &tests, &err);
        read += status == STATUS_OK;
        if (!is_answer(status, &tests, &err) && wrong++ == 0)
            tap_note("seed %llu: %s", (unsigned long long)seed, err.text);
        arena_release(&arena);
    }
    is_int(wrong, 0, "%d damaged outputs are read or refused", ROUNDS);
    ok(read > 0 && read < ROUNDS, "some of them are read: %d", read);
}

int main(void)
{
    const int fd = mkstemp(path);
    struct arena arena;

    if (fd < 0 || close(fd) != 0)
        tap_bail("no temporary file");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check_form(&forms[i]);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        check_fault(&faults[i]);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        check_published(&published[i]);
    arena_init(&arena);
    check_paths(&arena);
    check_long_lines(&arena);
    arena_release(&arena);
    check_damage();
    unlink(path);
    return tap_done();
}
