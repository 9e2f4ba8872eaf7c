/*
 * Candidates of searches in the history: numbered by search, all of one or none, and many at once.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/store_rig.h"
#include "tests/tap.h"

enum { MANY = 100000 };

static const struct store_candidate by_hand[] = {
    {1, "4x1 norm+head", "--ac full", 100, 3000, 4000, true, true},
    {2, "2x2 norm+head", "--ac full", 110, 2000, 0, true, true},
    {3, "it's 1x4", "", 90, 9000, 0, false, false},
};
enum { BY_HAND = sizeof by_hand / sizeof *by_hand };

static void put(struct store *store, uint64_t group)
{
    struct err err = {0};
    if (store_put_candidates(store, group, by_hand, BY_HAND, &err) != STATUS_OK)
        tap_bail(err.text);
}

static void reads_back(void)
{
    const char *path = rig_path("candidates.db");
    struct store *store = rig_open(path);

    put(store, 7);
    char *got = rig_query(path, "SELECT * FROM v_candidate");
    is_str(got,
           "plan_group|search|rank|units|options|step_ns|peak_bytes|reserved_bytes|fits|on_front\n"
           "7|1|1|4x1 norm+head|--ac full|100|3000|4000|1|1\n"
           "7|1|2|2x2 norm+head|--ac full|110|2000|NULL|1|1\n"
           "7|1|3|it's 1x4||90|9000|NULL|0|0\n",
           "v_candidate shows what was put");
    free(got);
    put(store, 7);
    put(store, 8);
    got = rig_query(path, "SELECT plan_group, search, count(*) FROM v_candidate GROUP BY 1, 2");
    is_str(got, "plan_group|search|count(*)\n7|1|3\n7|2|3\n8|1|3\n",
           "a further search of a group has the next number");
    free(got);
    store_close(store);
}

/* Refused by the program, and by the database in the middle of a transaction. */
static void all_or_nothing(void)
{
    const char *path = rig_path("whole.db");
    struct store *store = rig_open(path);
    struct store_candidate bad[BY_HAND];
    struct err err = {0};

    memcpy(bad, by_hand, sizeof bad);
    bad[2].peak_bytes = UINT64_MAX;
    is_int(store_put_candidates(store, 1, bad, BY_HAND, &err), STATUS_DB,
           "a number past 2^63 - 1 is refused");
    memcpy(bad, by_hand, sizeof bad);
    bad[2].rank = 1;
    is_int(store_put_candidates(store, 1, bad, BY_HAND, &err), STATUS_DB,
           "and a rank that is there twice");
    is_int(rig_number(path, "SELECT count(*) FROM v_candidate"), 0, "nothing of either is there");
    put(store, 1);
    is_int(rig_number(path, "SELECT count(*) FROM v_candidate"), BY_HAND,
           "and others can be stored after it");
    is_int(store_put_candidates(store, 1, by_hand, 0, &err), STATUS_OK, "none is no fault");
    ok(rig_is_clean(path), "the file is sound");
    store_close(store);
}

static void many(void)
{
    const char *path = rig_path("many.db");
    struct store *store = rig_open(path);
    struct store_candidate *rows = calloc(MANY, sizeof *rows);
    struct err err = {0};

    if (!rows)
        tap_bail("no memory");
    for (uint32_t i = 0; i < MANY; i++) {
        rows[i] = by_hand[i % BY_HAND];
        rows[i].rank = i + 1;
    }
    is_int(store_put_candidates(store, 1, rows, MANY, &err), STATUS_OK, "%d at once", MANY);
    is_int(rig_number(path, "SELECT count(*) FROM v_candidate WHERE fits"), MANY / 3 * 2 + 1,
           "all of them are there");
    free(rows);
    store_close(store);
}

int main(void)
{
    reads_back();
    all_or_nothing();
    many();
    return tap_done();
}
