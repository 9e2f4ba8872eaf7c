/*
 * Peak of requested bytes at unit level; see summary.h.
 */
#include "src/summary.h"

/* What an instruction adds to the bytes alive, and how high above them it goes on the way. */
static void summary_step(const struct program *program, const struct instr *instr, uint64_t *live,
                         uint64_t *peak)
{
    if (instr->op == INSTR_LAUNCH) {
        const uint32_t id = program->tasks[instr->id].body;
        if (id == NO_BODY)
            return;
        const struct body *body = &program->bodies->bodies[id];
        if (*live + body->rise_bytes > *peak)
            *peak = *live + body->rise_bytes;
        *live += (uint64_t)body->net_bytes;
        return;
    }
    if (instr->op > INSTR_FREE || (instr->flags & INSTR_BY_BODY) != 0)
        return;
    const uint64_t bytes = program->buffers[instr->id].bytes;
    *live += instr->op == INSTR_ALLOC ? bytes : -bytes;
    if (*live > *peak)
        *peak = *live;
}

void summary_of(const struct program *program, struct summary *out)
{
    uint64_t live = 0;

    for (int s = 0; s < SECTION_N; s++) {
        out->peak_bytes[s] = live;
        for (uint32_t i = program->sections[s].begin; i < program->sections[s].end; i++)
            summary_step(program, &program->instrs[i], &live, &out->peak_bytes[s]);
        out->end_bytes[s] = live;
    }
}
