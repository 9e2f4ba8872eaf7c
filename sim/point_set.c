/*
 * A hash set of points; see point_set.h.
 */
#include "sim/point_set.h"

#include <string.h>

#include "src/hash.h"

enum { FIRST_TABLE = 1024 };

void point_set_init(struct point_set *set, uint32_t point_bytes, struct arena *arena)
{
    *set = (struct point_set){.arena = arena, .point_bytes = point_bytes, .n_table = FIRST_TABLE};
    set->table = arena_array(arena, uint32_t, set->n_table);
}

static uint64_t hash_of(const uint8_t *point, uint32_t n)
{
    uint64_t hash = n, word;

    for (; n >= sizeof word; n -= sizeof word, point += sizeof word) {
        memcpy(&word, point, sizeof word);
        hash = hash_add(hash, word);
    }
    for (; n > 0; n--)
        hash = hash_add(hash, *point++);
    return hash;
}

/* Its place in the table, or the free one where it belongs. */
static uint32_t *find(const struct point_set *set, const uint8_t *point)
{
    const uint32_t mask = set->n_table - 1;
    uint32_t at = (uint32_t)hash_of(point, set->point_bytes) & mask;

    while (set->table[at] != 0 &&
           memcmp(set->points[set->table[at] - 1], point, set->point_bytes) != 0)
        at = (at + 1) & mask;
    return &set->table[at];
}

static void double_table(struct point_set *set)
{
    set->n_table *= 2;
    set->table = arena_array(set->arena, uint32_t, set->n_table);
    for (uint32_t i = 0; i < set->n; i++)
        *find(set, set->points[i]) = i + 1;
}

bool point_set_has(const struct point_set *set, const uint8_t *point)
{
    return *find(set, point) != 0;
}

bool point_set_add(struct point_set *set, const uint8_t *point)
{
    uint32_t *place = find(set, point);

    if (*place != 0)
        return false;
    if (2 * (set->n + 1) > set->n_table) {
        double_table(set);
        place = find(set, point);
    }
    set->points = arena_grow(set->arena, set->points, &set->cap, set->n + 1, sizeof *set->points);
    set->points[set->n++] =
        memcpy(arena_take(set->arena, set->point_bytes), point, set->point_bytes);
    *place = set->n;
    return true;
}
