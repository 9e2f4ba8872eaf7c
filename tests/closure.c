/*
 * Transitive closure of a program's walk; see closure.h. Slow and plain on purpose: sets of nodes
 * as bits, lists of uses, every pair looked at.
 */
#include "tests/closure.h"

#include <stdlib.h>
#include <string.h>

#define NONE CLOSURE_NONE

static void *zeroed(size_t n, size_t size)
{
    void *array = calloc(n + 1, size);
    if (array == NULL)
        abort();
    return array;
}

static bool has(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> i % 64 & 1;
}

static void add(uint64_t *set, uint32_t i)
{
    set[i / 64] |= UINT64_C(1) << i % 64;
}

static void need_order(struct closure *c, uint32_t first, uint32_t second)
{
    if (first != second)
        add(c->need + (size_t)second * c->n_word, first);
}

static void need_within(struct closure *c, const struct closure_life *life)
{
    for (uint32_t i = 0; i < life->n_use; i++)
        for (uint32_t j = 0; j < i; j++)
            if (life->uses[i].writes || life->uses[j].writes)
                need_order(c, life->uses[j].node, life->uses[i].node);
}

static uint32_t first_write(const struct closure_life *life)
{
    for (uint32_t i = 0; i < life->n_use; i++)
        if (life->uses[i].writes)
            return life->uses[i].node;
    return NONE;
}

/* May the later life be given memory of the earlier one? */
static bool may_reuse(const struct closure_life *earlier, const struct closure_life *later)
{
    return earlier->pool == later->pool && earlier->died < later->born;
}

/* Of recorded lives it depends on the order what is needed: count_recorded(). */
static void find_needs(struct closure *c)
{
    for (uint32_t i = 0; i < c->n_life; i++) {
        const struct closure_life *later = &c->lives[i];
        const uint32_t write = first_write(later);
        need_within(c, later);
        for (uint32_t j = 0; write != NONE && j < c->n_life; j++)
            for (uint32_t k = 0; c->lives[j].users == 0 && may_reuse(&c->lives[j], later) &&
                                 k < c->lives[j].n_use; k++)
                need_order(c, c->lives[j].uses[k].node, write);
    }
    for (size_t i = 0; i < (size_t)c->n_node * c->n_word; i++)
        c->n_pair += (uint32_t)__builtin_popcountll(c->need[i]);
}

void closure_init(struct closure *closure, const struct program *program)
{
    *closure = (struct closure){.program = program};
    closure_walk(closure);
    closure->n_word = closure->n_node / 64 + 1;
    closure->before = zeroed((size_t)closure->n_node * closure->n_word, sizeof(uint64_t));
    closure->need = zeroed((size_t)closure->n_node * closure->n_word, sizeof(uint64_t));
    find_needs(closure);
}

void closure_release(struct closure *closure)
{
    for (uint32_t i = 0; i < closure->n_life; i++)
        free(closure->lives[i].uses);
    free(closure->lives);
    free(closure->nodes);
    free(closure->before);
    free(closure->need);
}

/* Does an event of the life's FREE lie behind the use? */
static bool is_seen(const struct closure *c, const struct closure_life *life, uint32_t use)
{
    for (uint32_t s = 0; s < STREAM_N; s++)
        if ((life->users >> s & 1) != 0 && life->seen[s] != NONE &&
            (life->seen[s] == use || has(c->before + (size_t)life->seen[s] * c->n_word, use)))
            return true;
    return false;
}

/* Later lives that may write the memory of a recorded one beside a use of it. */
static uint32_t count_recorded(const struct closure *c, const struct closure_life *life)
{
    uint32_t n_lost = 0;
    for (uint32_t k = 0; k < life->n_use; k++) {
        const uint32_t use = life->uses[k].node;
        for (uint32_t i = 0; i < c->n_life && !is_seen(c, life, use); i++) {
            const uint32_t write = first_write(&c->lives[i]);
            n_lost += write != NONE && write != use && may_reuse(life, &c->lives[i]) &&
                      !has(c->before + (size_t)write * c->n_word, use);
        }
    }
    return n_lost;
}

uint32_t closure_lost(struct closure *closure, uint32_t without)
{
    const uint32_t n_word = closure->n_word;
    uint32_t n_lost = 0;

    memset(closure->before, 0, (size_t)closure->n_node * n_word * sizeof(uint64_t));
    for (uint32_t n = 0; n < closure->n_node; n++) {
        const struct closure_node *node = &closure->nodes[n];
        uint64_t *before = closure->before + (size_t)n * n_word;
        for (int e = 0; e < 4; e++) {
            if (node->edges[e] == NONE || (e == 3 && node->instr == without))
                continue;
            const uint64_t *from = closure->before + (size_t)node->edges[e] * n_word;
            for (uint32_t i = 0; i < n_word; i++)
                before[i] |= from[i];
            add(before, node->edges[e]);
        }
        for (uint32_t i = 0; i < n_word; i++)
            n_lost += (uint32_t)__builtin_popcountll(closure->need[(size_t)n * n_word + i] &
                                                     ~before[i]);
    }
    for (uint32_t i = 0; i < closure->n_life; i++)
        if (closure->lives[i].users != 0)
            n_lost += count_recorded(closure, &closure->lives[i]);
    return n_lost;
}

/* Uses of the earlier life by first against node, which second is; in any order they come. Reuse:
   node writes memory of the earlier life. */
static bool lost_pair(const struct closure *c, const struct closure_life *earlier, uint32_t first,
                      uint32_t node, bool writes, bool reuse)
{
    for (uint32_t i = 0; i < earlier->n_use; i++) {
        const struct closure_use *use = &earlier->uses[i];
        if (c->nodes[use->node].task == first && use->node < node && (writes || use->writes) &&
            !has(c->before + (size_t)node * c->n_word, use->node) &&
            !(reuse && is_seen(c, earlier, use->node)))
            return true;
    }
    return false;
}

bool closure_is_lost(const struct closure *closure, uint32_t first, uint32_t second,
                     uint32_t buffer)
{
    for (uint32_t i = 0; i < closure->n_life; i++) {
        const struct closure_life *earlier = &closure->lives[i];
        if (earlier->buffer != buffer)
            continue;
        for (uint32_t k = 0; k < earlier->n_use; k++) {
            const struct closure_use *use = &earlier->uses[k];
            if (closure->nodes[use->node].task == second &&
                lost_pair(closure, earlier, first, use->node, use->writes, false))
                return true;
        }
        for (uint32_t j = 0; j < closure->n_life; j++) {
            const uint32_t write = first_write(&closure->lives[j]);
            if (write != NONE && closure->nodes[write].task == second &&
                may_reuse(earlier, &closure->lives[j]) &&
                lost_pair(closure, earlier, first, write, true, true))
                return true;
        }
    }
    return false;
}

bool closure_says_safe(const struct program *program)
{
    struct closure closure;
    closure_init(&closure, program);
    const bool safe = closure_lost(&closure, NONE) == 0 && closure.n_broken == 0;
    closure_release(&closure);
    return safe;
}
