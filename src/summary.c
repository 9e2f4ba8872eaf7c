/*
 * Peak of requested bytes at unit level; see summary.h.
 */
#include "src/summary.h"

struct bytes {
    uint64_t live, peak;
};

static uint64_t higher(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* In numbers of its own: a search spends its time here. */
static struct bytes walk(const struct program *program, const struct section *section,
                         uint64_t live)
{
    const struct buffer *buffers = program->buffers;
    const struct task *tasks = program->tasks;
    const struct body *bodies = program->bodies->bodies;
    const struct instr *end = program->instrs + section->end;
    uint64_t peak = live;

    for (const struct instr *at = program->instrs + section->begin; at < end; at++) {
        if (at->op <= INSTR_FREE && (at->flags & INSTR_BY_BODY) == 0) {
            live += at->op == INSTR_ALLOC ? buffers[at->id].bytes : -buffers[at->id].bytes;
            peak = higher(peak, live);
        } else if (at->op == INSTR_LAUNCH && tasks[at->id].body != NO_BODY) {
            const struct body *body = &bodies[tasks[at->id].body];
            peak = higher(peak, live + body->rise_bytes);
            live += (uint64_t)body->net_bytes;
        }
    }
    return (struct bytes){.live = live, .peak = peak};
}

void summary_of(const struct program *program, struct summary *out)
{
    uint64_t live = 0;

    for (int s = 0; s < SECTION_N; s++) {
        const struct bytes bytes = walk(program, &program->sections[s], live);
        out->peak_bytes[s] = bytes.peak;
        out->end_bytes[s] = live = bytes.live;
    }
}
