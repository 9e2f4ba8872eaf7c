/*
 * Peak of requested bytes at unit level; see summary.h.
 */
#include "src/summary.h"

static void summary_step(const struct program *program, const struct instr *instr, uint64_t *live,
                         uint64_t *peak)
{
    uint64_t high = 0;

    if (instr->op == INSTR_LAUNCH) {
        const uint32_t body = program->tasks[instr->id].body;
        if (body == NO_BODY)
            return;
        high = *live + program->bodies->bodies[body].rise_bytes;
        *live += (uint64_t)program->bodies->bodies[body].net_bytes;
    } else if ((instr->flags & INSTR_BY_BODY) == 0 && instr->op == INSTR_ALLOC) {
        high = *live += program->buffers[instr->id].bytes;
    } else if ((instr->flags & INSTR_BY_BODY) == 0 && instr->op == INSTR_FREE) {
        *live -= program->buffers[instr->id].bytes;
    }
    if (high > *peak)
        *peak = high;
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
