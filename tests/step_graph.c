/*
 * Which steps are replayed, and what forbids it: the host waits in the steady step, the allocator takes
 * or gives back memory in it, or addresses do not repeat. The device is one that counts.
 */
#include "gpu/step_graph.h"

#include <string.h>

#include "tests/real_case.h"
#include "tests/tap.h"

/* ---- what is refused ----------------------------------------------------------------------- */

static void make(struct made *made, const char *words, struct placement *placement)
{
    const struct real_case real = {.small = SMALL_LLAMA, .words = words};
    const struct alloc_config config = alloc_config_default();

    real_case_make(&real, made);
    place_program(&made->program, &config, &made->arena, placement);
}

static void check_words(const char *words, const char *want)
{
    struct placement placement;
    struct made made;
    struct err err = {0};

    make(&made, words, &placement);
    const enum status status = step_graph_check(&made.program, &placement, &err);
    ok(status == (*want ? STATUS_USAGE : STATUS_OK) && strstr(err.text, want), "%s: '%s'", words,
       err.text);
    make_release(&made);
}

/* Whether the allocator is at it in each step, with so little memory. */
static bool is_busy(const struct placement *placement)
{
    if (placement->out_of_memory || placement->period == 0)
        return false;
    for (uint32_t i = placement->n_step - placement->period; i < placement->n_step; i++)
        if (placement->steps[i].n_op > 0)
            return true;
    return false;
}

static void check_segments(void)
{
    struct plan_options options = plan_options_default();
    struct alloc_config config = alloc_config_default();
    struct placement placement;
    struct made made;
    struct err err = {0};

    make_init(&made, "llama3-8b", 8, &options);
    place_program(&made.program, &config, &made.arena, &placement);
    uint64_t bytes = placement.steps[placement.n_step - 1].stats.peak_reserved;
    while (bytes > 64 << 20 && !is_busy(&placement) && !placement.out_of_memory) {
        bytes -= 64 << 20;
        config.capacity_bytes = bytes;
        place_program(&made.program, &config, &made.arena, &placement);
    }
    ok(is_busy(&placement), "with %llu bytes memory is taken in each step",
       (unsigned long long)bytes);
    ok(step_graph_check(&made.program, &placement, &err) == STATUS_USAGE &&
           strstr(err.text, "memory in the steady step, ahead of instruction "),
       "which is refused: %s", err.text);
    placement.period = 0;
    ok(step_graph_check(&made.program, &placement, &err) == STATUS_USAGE &&
           strstr(err.text, "addresses do not repeat"),
       "and so are addresses that do not repeat: %s", err.text);
    make_release(&made);
}

/* ---- which steps --------------------------------------------------------------------------- */

struct counted {
    uint32_t n_graph, captures;
    char calls[64]; /* a letter each, and digits for graphs and steps */
};

static void note(struct counted *counted, const char *call)
{
    strncat(counted->calls, call, sizeof counted->calls - strlen(counted->calls) - 1);
}

static enum status begin(void *self, struct err *err)
{
    (void)err;
    note(self, "(");
    return STATUS_OK;
}

static enum status end(void *self, uint32_t *graph, struct err *err)
{
    struct counted *counted = self;
    (void)err;
    note(self, ")");
    *graph = counted->n_graph++;
    return STATUS_OK;
}

static enum status replay(void *self, uint32_t graph, uint32_t step, struct err *err)
{
    const char call[] = {(char)('a' + graph), (char)('0' + step), 0};
    (void)err;
    note(self, call);
    return STATUS_OK;
}

static void check_order(uint32_t n_step, uint32_t period, bool wanted, const char *want)
{
    const struct device_ops device = {.capture_begin = begin, .capture_end = end, .replay = replay};
    const struct placement placement = {.n_step = n_step, .period = period};
    struct counted counted = {.calls = ""};
    struct step_graph graph = {
        .placement = wanted ? &placement : NULL, .device = &device, .device_self = &counted};
    struct err err;

    for (uint32_t step = 0; step < 8; step++) {
        step_graph_begin(&graph, step, &err);
        note(&counted, graph.mode == STEP_REPLAY ? "" : "x");
        step_graph_end(&graph, step, &err);
    }
    is_str(counted.calls, want, "%u steps placed, of which %u repeat", n_step, period);
}

int main(void)
{
    check_words("--gpus 2", "");
    check_words("--gpus 2 --optimizer adamw-fused --accum 2", "");
    check_words("--gpus 2 --log-loss yes", "in the steady step the host waits, by instruction");
    check_words("--gpus 2 --scaler yes --param-dtype fp16", "host_wait behind 'all_reduce'");
    check_segments();
    check_order(2, 1, false, "xxxxxxxx");
    check_order(2, 1, true, "xxx(x)a3a4a5a6a7");
    check_order(3, 2, true, "xxxx(x)a4(x)b5a6b7");
    check_order(1, 1, true, "xx(x)a2a3a4a5a6a7");
    return tap_done();
}
