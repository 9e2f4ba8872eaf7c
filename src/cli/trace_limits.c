/*
 * What a trace cannot tell, and why; see trace_show.h.
 */
#include <inttypes.h>
#include <string.h>

#include "src/cli/trace_show.h"

static bool has_units(const struct kineto *trace)
{
    for (uint32_t i = 0; i < trace->n_range; i++) {
        if (!strncmp(trace->ranges[i].name, "FSDP::", strlen("FSDP::")))
            return true;
    }
    return false;
}

static uint64_t count_unsized(const struct kineto *trace)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < trace->n_collective; i++)
        n += trace->collectives[i].bytes == 0 ? trace->collectives[i].spread.n : 0;
    return n;
}

uint32_t trace_limits(const struct kineto *trace, struct arena *arena,
                      const char *out[TRACE_LIMITS_MAX])
{
    const uint64_t n_unsized = count_unsized(trace);
    uint32_t n = 0;
    if (trace->n_gpu == 0)
        out[n++] = "anything of a GPU: nothing in it runs on one";
    if (trace->n_call > 0)
        out[n++] =
            "what a collective costs: a rank's kernel also waits for the last rank to come, so "
            "that the least time is the nearest";
    if (n_unsized > 0)
        out[n++] = arena_printf(arena, "how large %" PRIu64 " collectives are: sizes are not in it",
                                n_unsized);
    if (trace->n_product == 0)
        out[n++] = "how fast products and attention are: no shapes were recorded (record_shapes)";
    if (!has_units(trace))
        out[n++] = "what a unit costs: there are no ranges of FSDP2 (FSDP::...)";
    if (trace->n_unlaunched > 0)
        out[n++] = arena_printf(arena,
                                "who launched %" PRIu64 " operations of the GPU: their launches "
                                "are not in it",
                                trace->n_unlaunched);
    if (trace->n_discarded > 0)
        out[n++] = arena_printf(arena,
                                "when %" PRIu64 " operations ran: their times make no sense, and "
                                "they are left out",
                                trace->n_discarded);
    out[n++] = "how many bytes a kernel moves, and how much memory a step needs";
    return n;
}

double trace_tflops(const struct kineto_product *product, int64_t ns)
{
    return ns > 0 ? kineto_product_flop(product) / (double)ns / 1e3 : 0;
}

void trace_add_shape(const struct kineto_product *product, struct text *out)
{
    if (product->op != KINETO_MATMUL) {
        text_add(out, "attention%s%s of %" PRId64 " x %" PRId64 " heads of %" PRId64,
                 product->causal ? ", causal" : "",
                 product->op == KINETO_SDPA_BACKWARD ? ", backward" : "", product->batch,
                 product->m, product->n);
        return;
    }
    if (product->batch > 1)
        text_add(out, "%" PRId64 " of ", product->batch);
    text_add(out, "%" PRId64 " x %" PRId64 " x %" PRId64, product->m, product->k, product->n);
}
