/*
 * Recorded schedules, layouts and divisions of PyTorch against our programs: every case of every
 * file in tests/oracle/. What cannot be compared stands in a table with its reason, and has to.
 */
#include "tests/oracle_compare.h"
#include "tests/oracle_folder.h"
#include "tests/tap.h"

/*
 * Cases that no options express. '*' stands for any letters. A row
 * that matches no case, or one that would compare, is a failure: then it has to go.
 */
static const struct {
    const char *cases, *why;
} not_compared[] = {
    {"pt accumulation *, root_only*", "a switch that is set for the root alone"},
    {"pt accumulation *, some_mlps*", "a switch that is set for some units alone"},
    {"pt two forwards, one backward, *", "two forward passes before one backward"},
    {"pt unused in backward", "two losses, each with a backward of its own"},
    {"pt prefetch inside ac, explicit", "prefetch lists by hand"},
    {"pt units with an unused module", "a unit of which one module never runs"},
    {"pt counts, manual reshard", "a reshard by hand between forward and backward"},
    {"pt counts, set_reshard_after_forward yes, root only", "a reshard of the root alone"},
};
enum { N_NOT_COMPARED = sizeof not_compared / sizeof *not_compared };

/* The row of not_compared, or N_NOT_COMPARED. */
static int listed_row(const struct oracle_case *of)
{
    int row = 0;
    while (row < N_NOT_COMPARED && !text_matches(not_compared[row].cases, of->name))
        row++;
    return row;
}

static void check_one(const struct oracle_subject *subject, enum oracle_check check)
{
    struct text why;

    text_init(&why);
    if (!ok(oracle_agrees(subject, check, &why), "%s: %s", subject->of->name,
            oracle_check_name(check)))
        tap_note("%s", why.at);
    text_release(&why);
}

static void check_compared(const struct oracle_subject *subject)
{
    for (int check = 0; check < ORACLE_CHECK_N; check++)
        if (oracle_check_stated(subject->of, (enum oracle_check)check))
            check_one(subject, (enum oracle_check)check);
    if (subject->of->needs)
        ok(false, "%s: has to be listed, it needs %s", subject->of->name, subject->of->needs);
}

static bool all_agree(const struct oracle_subject *subject)
{
    struct text why;
    bool agree = true;

    text_init(&why);
    for (int check = 0; check < ORACLE_CHECK_N && agree; check++)
        agree = !oracle_check_stated(subject->of, (enum oracle_check)check) ||
                oracle_agrees(subject, (enum oracle_check)check, &why);
    text_release(&why);
    return agree;
}

/* made: there is a program, or the case wants none. */
static void check_case(const struct oracle_case *of, const struct prepared *prepared, bool made,
                       uint32_t hits[N_NOT_COMPARED + 1])
{
    const int row = listed_row(of);
    struct arena arena;

    arena_init(&arena);
    const struct oracle_subject subject = oracle_subject_of(of, made ? prepared : NULL, &arena);
    if (row < N_NOT_COMPARED)
        ok(!made || !all_agree(&subject), "%s: not compared: %s", of->name, not_compared[row].why);
    else if (made)
        check_compared(&subject);
    hits[row]++;
    arena_release(&arena);
}

static void check_planned(const struct oracle_case *of, uint32_t hits[N_NOT_COMPARED + 1])
{
    struct oracle_plan plan;
    struct err err = {0};
    const bool made = oracle_plan_init(of, &plan, &err) == STATUS_OK;

    if (!made && listed_row(of) == N_NOT_COMPARED && !ok(made, "%s: there is a program", of->name))
        tap_note("%s", err.text);
    check_case(of, &plan.prepared, made, hits);
    oracle_plan_release(&plan);
}

static void check_file(const struct oracle_file *file, void *context)
{
    uint32_t *hits = context;

    for (uint32_t i = 0; i < file->n_case; i++) {
        if (file->cases[i].n_arg > 0)
            check_planned(&file->cases[i], hits);
        else
            check_case(&file->cases[i], NULL, true, hits);
    }
}

int main(void)
{
    uint32_t hits[N_NOT_COMPARED + 1] = {0};

    oracle_folder_walk(check_file, hits);
    for (int row = 0; row < N_NOT_COMPARED; row++)
        ok(hits[row] > 0, "there are cases '%s' that are not compared", not_compared[row].cases);
    tap_note("%u cases are compared", hits[N_NOT_COMPARED]);
    return tap_done();
}
