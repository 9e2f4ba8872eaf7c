/*
 * What --keep keeps; see plan_keep.h. Each plan is put in words, which takes longer than its number,
 * so that nothing of it happens where nothing is kept.
 */
#include "src/cli/plan_keep.h"

#include "src/cli/plan_point.h"

struct keeping {
    const struct plan_kept *kept;
    struct arena arena;
    const char *combination;      /* options in which this search differs from others */
    const struct placed **placed; /* by index in the result, or NULL */
    bool *on_front;
    struct store_candidate *rows;
    uint32_t n;
};

enum status plan_keep_check(const struct options *options, struct err *err)
{
    if (option_number(options, OPTION_KEEP) == KEEP_BEST || !option_given(options, OPTION_NO_DB))
        return STATUS_OK;
    return err_set(err, STATUS_USAGE,
                   "--keep keeps plans in the run history, which --no-db does without; give one");
}

static const char *combination_of(const struct plan_kept *kept, struct arena *arena)
{
    const char *words = "";

    for (uint32_t i = 0; i < kept->lists->n_list; i++) {
        const struct plan_list *list = &kept->lists->lists[i];
        if (list->n > 1)
            words = arena_printf(arena, "%s%s--%s %s", words, *words ? " " : "",
                                 option_table[list->id].name,
                                 option_text(kept->options, list->id));
    }
    return words;
}

static const char *options_of(struct keeping *k, const uint8_t *point)
{
    if ((k->kept->space->axes >> AXIS_PREFETCH & 1) == 0)
        return k->combination;
    return arena_printf(&k->arena, "%s%s--prefetch %u --prefetch-backward %u", k->combination,
                        *k->combination ? " " : "", point[POINT_PREFETCH],
                        point[POINT_PREFETCH_BACKWARD]);
}

/* What the plan is, and what is known of it. */
static void keep(struct keeping *k, uint32_t found)
{
    const struct plan_kept *kept = k->kept;
    const struct found *plan = &kept->result->found[found];
    const struct placed *placed = k->placed[found];

    k->rows[k->n++] = (struct store_candidate){
        .rank = found + 1,
        .units = plan_point_label(kept->space, plan->point, &k->arena),
        .options = options_of(k, plan->point),
        .step_ns = plan->judged.step_ns,
        .peak_bytes = plan->judged.peak_bytes,
        .reserved_bytes = placed ? placed->reserved_bytes : 0,
        .fits = placed ? placed->fits : plan->judged.peak_bytes <= kept->limit_bytes,
        .on_front = k->on_front[found],
    };
}

static void look_up(struct keeping *k)
{
    const struct finalists *finalists = k->kept->finalists;
    uint32_t *front;
    const uint32_t n_front = search_front(k->kept->result, k->kept->limit_bytes, &k->arena, &front);

    for (uint32_t i = 0; i < n_front; i++)
        k->on_front[front[i]] = true;
    for (uint32_t i = 0; i < finalists->n; i++)
        k->placed[finalists->at[i].found] = &finalists->at[i].placed;
}

void plan_keep(const struct plan_kept *kept, struct history *history)
{
    const enum keep what = (enum keep)option_number(kept->options, OPTION_KEEP);
    const uint32_t n = kept->result->n;
    struct keeping k = {.kept = kept};

    if (what == KEEP_BEST)
        return;
    arena_init(&k.arena);
    k.combination = combination_of(kept, &k.arena);
    k.placed = arena_array(&k.arena, const struct placed *, n);
    k.on_front = arena_array(&k.arena, bool, n);
    k.rows = arena_array(&k.arena, struct store_candidate, n);
    look_up(&k);
    for (uint32_t i = 0; i < n; i++)
        if (what == KEEP_ALL || k.on_front[i])
            keep(&k, i);
    history_put_candidates(history, k.rows, k.n);
    arena_release(&k.arena);
}
