/*
 * Lifetimes of llama's bodies: row by row against the golden block, then against the tables of the
 * spec (MEMORY 2.3, 2.4, 3) and what must hold for any shape.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/body_make.h"
#include "tests/tap.h"

static struct arena arena;

static struct body_table block_bodies(const struct profile *profile, enum checkpointing ac)
{
    return bodies_of(&llama8b, 1, 8192, profile, ac, &arena);
}

/* ---- golden files ------------------------------------------------------------------------- */

struct golden_row {
    char event[8], memory_class[32], where[32];
    unsigned id;
    unsigned long long bytes;
};

static bool next_row(char **text, struct golden_row *row)
{
    char *line = strsep(text, "\n");
    return line && sscanf(line, "%7[^,],%u,%llu,%*[^,],%31[^,],%31s", row->event, &row->id,
                          &row->bytes, row->memory_class, row->where) == 5;
}

/*
 * The golden files show a block alone. In a step the unit program gives birth to the incoming
 * gradient ("bwd:incoming") and lets go of the outgoing one ("bwd:x"), which in eager mode is the
 * incoming buffer itself.
 */
static bool is_outside(const struct golden_row *row, unsigned incoming, bool d_in_place)
{
    if (strcmp(row->where, "bwd:incoming") == 0)
        return true;
    return strcmp(row->where, "bwd:x") == 0 && (row->id != incoming || d_in_place);
}

/*
 * Compiled rows name no operator. What dies where the recompute stops, dies in the files at the
 * linear that is not run any more.
 */
static bool same_operator(const struct golden_row *row, const struct op *op)
{
    const char *name = strchr(row->where, ':') + 1;
    if (strcmp(name, "block") == 0 || strcmp(name, "x") == 0)
        return true;
    if (strcmp(row->where, "recompute:mm") == 0 && strcmp(row->event, "free") == 0)
        return true;
    bool recompute = strncmp(row->where, "recompute:", 10) == 0;
    return strcmp(name, op_kind_name(op->kind)) == 0 && recompute == (op->pass == PASS_RECOMPUTE);
}

static bool same_event(const struct golden_row *row, const struct event *event,
                       enum memory_class memory_class, unsigned *id_of)
{
    if (event->alloc)
        id_of[event->slot] = row->id;
    return event->alloc == (strcmp(row->event, "alloc") == 0) && id_of[event->slot] == row->id &&
           event->bytes == row->bytes && event->backward == (strncmp(row->where, "fwd:", 4) != 0) &&
           strcmp(memory_class_name(memory_class), row->memory_class) == 0 &&
           same_operator(row, event->op);
}

/* The files hold the block's input outside. */
static const struct event *next_inside(const struct events *events, int *at)
{
    while (*at < events->n && events->at[*at].slot == SLOT_IN)
        ++*at;
    return *at < events->n ? &events->at[(*at)++] : NULL;
}

/* How many rows are equal, or -1. */
static int equal_rows(const struct body_table *table, char *text)
{
    const struct events events = events_of(table, BODY_BLOCK);
    bool d_in_place = pair_of(table, BODY_BLOCK)->d_in_place;
    unsigned id_of[MAX_EVENTS] = {0};
    int rows = 0, at = 0;
    struct golden_row row;
    strsep(&text, "\n");
    while (next_row(&text, &row)) {
        if (strcmp(row.where, "bwd:incoming") == 0)
            id_of[SLOT_D_OUT] = row.id;
        if (is_outside(&row, id_of[SLOT_D_OUT], d_in_place))
            continue;
        const struct event *event = next_inside(&events, &at);
        if (!event || !same_event(&row, event,
                                  slot_of(table, BODY_BLOCK, event->slot)->memory_class, id_of)) {
            tap_note("row %d differs: %s,%u,%llu,%s,%s", rows + 1, row.event, row.id, row.bytes,
                     row.memory_class, row.where);
            return -1;
        }
        rows++;
    }
    return next_inside(&events, &at) ? -1 : rows;
}

static void test_golden(const struct profile *profile, enum checkpointing ac, int n_row)
{
    char path[64];
    snprintf(path, sizeof path, "data/memory/block_llama8b_%s_%s.csv", profile->name, ac_names[ac]);
    const char *file = tap_shared(path);
    char *text = file ? tap_read_file(file) : NULL;
    if (!text) {
        tap_skip("the golden bodies of the shared data are not here");
        return;
    }
    struct body_table table = block_bodies(profile, ac);
    is_int(equal_rows(&table, text), n_row, "%s_%s: the block is the golden one, row by row",
           profile->name, ac_names[ac]);
    free(text);
}

/* ---- tables of the spec ------------------------------------------------------------------- */

/*
 * MEMORY 2.3 has the block's input outside: here its death is passed over. It has the incoming
 * gradient inside, born first (1 U to the rise) and dead at the end, as the outgoing one is: on our
 * tape either both are outside, or the one dies and the other does not.
 */
static void test_net_and_rise(const struct profile *profile, enum checkpointing ac,
                              const long long table_2_3[4])
{
    struct body_table table = block_bodies(profile, ac);
    const struct events events = events_of(&table, BODY_BLOCK);
    struct extremes forward = extremes_of(&events, false, false);
    struct extremes backward = extremes_of(&events, true, false);
    long long u = (long long)slot_of(&table, BODY_BLOCK, SLOT_D_OUT)->bytes;
    const char *name = profile->name, *ac_name = ac_names[ac];
    is_int(forward.net, table_2_3[0], "%s_%s: forward's net", name, ac_name);
    is_int(forward.rise, table_2_3[1], "%s_%s: forward's rise", name, ac_name);
    is_int(backward.net, table_2_3[2], "%s_%s: backward's net", name, ac_name);
    is_int(backward.rise + u, table_2_3[3], "%s_%s: backward's rise", name, ac_name);
}

/* after: the operator, or NULL for the last event of all. */
static void test_input_dies(const struct profile *profile, enum checkpointing ac, bool backward,
                            const char *after)
{
    struct body_table table = block_bodies(profile, ac);
    const struct body_pair *pair = pair_of(&table, BODY_BLOCK);
    const struct events events = events_of(&table, BODY_BLOCK);
    int death = -1;
    for (int i = 0; i < events.n; i++)
        if (events.at[i].slot == SLOT_IN)
            death = i;
    ok(death >= 0 && (death >= events.n_forward) == backward &&
           pair->in_dies_in_forward == !backward && pair->in_dies_in_backward == backward &&
           (after ? strcmp(op_kind_name(events.at[death].op->kind), after) == 0
                  : death == events.n - 1),
       "%s_%s: the block's input dies in %s after %s", profile->name, ac_names[ac],
       backward ? "backward" : "forward", after ? after : "all else");
}

/* Of parameters q, k, v, o, norm of attention, then gate, up, down, norm of the MLP. */
static void test_grad_births(const struct profile *profile, enum checkpointing ac)
{
    static const uint32_t order[] = {7, 6, 5, 8, 3, 2, 1, 0, 4};
    struct body_table table = block_bodies(profile, ac);
    const struct events events = events_of(&table, BODY_BLOCK);
    uint32_t n_grad = pair_of(&table, BODY_BLOCK)->n_grad, born = 0, in_order = 0;
    for (int i = events.n_forward; i < events.n; i++) {
        uint32_t grad = events.at[i].slot - SLOT_GRAD;
        if (events.at[i].alloc && events.at[i].slot >= SLOT_GRAD && grad < n_grad && born < n_grad)
            in_order += grad == order[born++];
    }
    is_int(in_order, sizeof order / sizeof *order,
           "%s_%s: gradients are born down, up, gate, norm, o, v, k, q, norm", profile->name,
           ac_names[ac]);
}

/* MEMORY 3.1, the block's input not counted. Compiled: 3.3 with the MLP's product. Native: keys and
   values as they are, and of the MLP no activation but the product. */
static unsigned long long saved_bytes(const struct profile *profile, const struct dims *dims,
                                      unsigned long long t)
{
    unsigned long long h = dims->hidden, f = dims->intermediate, nh = dims->heads;
    unsigned long long q = nh * dims->head_dim, stats = 8 * t + 4 * t * nh;
    if (profile->ops == OPS_TORCH_COMPILE)
        return t * (6 * h + 8 * q + 6 * f) + stats;
    if (profile->ops == OPS_NATIVE)
        return t * (6 * h + 4 * q + 4 * dims->kv_heads * dims->head_dim + 6 * f) + stats;
    return t * ((profile->norm == NORM_COMPOSITE ? 16 : 6) * h + 8 * q + 8 * f) + stats;
}

static void test_saved(const struct profile *profile, const char *name, const struct dims *dims)
{
    struct body_table table = bodies_of(dims, 2, 1024, profile, AC_NONE, &arena);
    const struct events events = events_of(&table, BODY_BLOCK);
    long long out = (long long)slot_of(&table, BODY_BLOCK, SLOT_OUT)->bytes;
    is_int(extremes_of(&events, false, false).net - out, saved_bytes(profile, dims, 2048),
           "%s %s: a block saves what the table says", profile->name, name);
}

/* ---- halves ------------------------------------------------------------------------------- */

static bool same_run(const struct event *whole, const struct event *part, int n)
{
    for (int i = 0; i < n; i++)
        if (whole[i].alloc != part[i].alloc || whole[i].bytes != part[i].bytes ||
            whole[i].op->kind != part[i].op->kind || whole[i].op->pass != part[i].op->pass)
            return false;
    return true;
}

/* Attention then MLP, backward the other way round. Slot numbers differ, sizes do not. */
static bool halves_are_block(const struct body_table *table)
{
    const struct events block = events_of(table, BODY_BLOCK);
    const struct events attention = events_of(table, BODY_ATTENTION);
    const struct events mlp = events_of(table, BODY_MLP);
    int mlp_backward = mlp.n - mlp.n_forward;
    int attention_backward = attention.n - attention.n_forward;
    const struct event *at = block.at;
    return block.n == attention.n + mlp.n && same_run(at, attention.at, attention.n_forward) &&
           same_run(at += attention.n_forward, mlp.at, mlp.n_forward) &&
           same_run(at += mlp.n_forward, mlp.at + mlp.n_forward, mlp_backward) &&
           same_run(at + mlp_backward, attention.at + attention.n_forward, attention_backward);
}

static void test_halves(const struct profile *profile)
{
    struct body_table table = block_bodies(profile, AC_NONE);
    const char *name = profile->name;
    /* two compiled halves are two graphs, and what is saved dies at the end of each */
    if (profile->ops != OPS_TORCH_COMPILE)
        ok(halves_are_block(&table), "%s: attention and MLP in a row are the block", name);
    for (int back = 0; back < 2; back++) {
        const struct body *block = body_of(&table, BODY_BLOCK, back);
        const struct body *attention = body_of(&table, BODY_ATTENTION, back);
        const struct body *mlp = body_of(&table, BODY_MLP, back);
        const char *body = back ? "backward" : "forward";
        is_int(attention->net_bytes + mlp->net_bytes, block->net_bytes,
               "%s: nets of both halves are the block's, %s", name, body);
        is_int(attention->n_op + mlp->n_op, block->n_op, "%s: and so are operators", name);
        is_int(attention->flops + mlp->flops, block->flops, "%s: and flops", name);
    }
    is_int(pair_of(&table, BODY_ATTENTION)->n_grad + pair_of(&table, BODY_MLP)->n_grad,
           pair_of(&table, BODY_BLOCK)->n_grad, "%s: and gradients", name);

    table = block_bodies(profile, AC_FULL);
    ok(!pair_of(&table, BODY_ATTENTION) && !pair_of(&table, BODY_MLP),
       "%s: a checkpointed block has no halves", name);
}

/* ---- any shape ---------------------------------------------------------------------------- */

static bool summary_is_right(const struct body_table *table, enum body_kind kind, bool backward)
{
    const struct body *body = body_of(table, kind, backward);
    const struct events events = events_of(table, kind);
    struct extremes sum = extremes_of(&events, backward, true);
    return body->net_bytes == sum.net && (long long)body->rise_bytes == sum.rise;
}

static struct dims random_dims(uint64_t *state)
{
    struct dims dims = {.layers = 1,
                        .hidden = 2 + tap_below(state, 5000),
                        .intermediate = 1 + tap_below(state, 20000),
                        .kv_heads = 1 + tap_below(state, 16),
                        .head_dim = 2 + tap_below(state, 200),
                        .vocab = 1 + tap_below(state, 200000)};
    dims.heads = dims.kv_heads * (1 + tap_below(state, 4));
    return dims;
}

static void test_random_shapes(void)
{
    uint64_t state = tap_seed(20240607);
    int unsound = 0, wrong_sums = 0;
    for (int i = 0; i < 300; i++) {
        struct dims dims = random_dims(&state);
        uint64_t batch = 1 + tap_below(&state, 4), seq = 1 + tap_below(&state, 9000);
        const struct profile *profile = &profiles[tap_below(&state, PROFILE_N)];
        struct body_table table =
            bodies_of(&dims, batch, seq, profile, tap_below(&state, AC_N), &arena);
        for (uint32_t p = 0; p < table.n_pair; p++) {
            unsound += !pair_is_sound(&table, &table.pairs[p], false);
            wrong_sums += !summary_is_right(&table, table.pairs[p].kind, false) +
                          !summary_is_right(&table, table.pairs[p].kind, true);
        }
        arena_reset(&arena);
    }
    is_int(unsound, 0, "each slot is born and dies once, and only the boundary is left");
    is_int(wrong_sums, 0, "net and rise are those of a recount");
}

static const struct {
    int profile, ac, golden_rows;
    long long net_and_rise[4]; /* forward, backward: MEMORY 2.3 */
    bool input_dies_in_backward;
    const char *input_dies_after;
} blocks[] = {
    {EAGER, AC_NONE, 176, {1813053440, 1947271168, -1309720576, 654311424}, false, "add"},
    {EAGER, AC_FULL, 246, {67108864, 838860800, 436224000, 2400256000}, true, NULL},
    {EAGERFUSED, AC_NONE, 108, {1477509120, 1544617984, -974176256, 654311424}, true, "rms"},
    {EAGERFUSED, AC_FULL, 154, {67108864, 838860800, 436224000, 2064711680}, true, NULL},
    {EAGER, AC_OP, 236, {521142272, 1225785344, -17809408, 2013331456}, true, NULL},
    {EAGERFUSED, AC_OP, 144, {521142272, 1225785344, -17809408, 1677787136}, true, NULL},
    {COMPILE, AC_OP, 94, {454033408, 756088832, 49299456, 1291845632}, true, NULL},
    {COMPILE, AC_NONE, 76, {1242628096, 1259405312, -739295232, 923803648}, true, "fused"},
    {COMPILE, AC_FULL, 104, {67108864, 688979968, 436224000, 1678770176}, true, NULL},
};

int main(void)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const struct profile *profile = &profiles[blocks[i].profile];
        enum checkpointing ac = (enum checkpointing)blocks[i].ac;
        test_golden(profile, ac, blocks[i].golden_rows);
        test_net_and_rise(profile, ac, blocks[i].net_and_rise);
        test_input_dies(profile, ac, blocks[i].input_dies_in_backward, blocks[i].input_dies_after);
        test_grad_births(profile, ac);
    }
    for (int ac = 0; ac < AC_N; ac++)
        test_grad_births(&profiles[NATIVE], (enum checkpointing)ac);
    for (int i = 0; i < PROFILE_N; i++) {
        test_saved(&profiles[i], "8b", &llama8b);
        test_saved(&profiles[i], "7b", &llama7b);
        test_halves(&profiles[i]);
    }
    test_random_shapes();
    arena_release(&arena);
    return tap_done();
}
