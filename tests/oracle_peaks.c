/*
 * Requested bytes by moment of the first step; see oracle_peaks.h.
 *
 * The bounds are of a model whose activations are next to nothing, and count parameters. So what is
 * counted here is what FSDP and the optimizer hold: shards, gathered and full parameters, gradients
 * and the buffers of their reductions, states.
 */
#include "tests/oracle_peaks.h"

/* Running from the start to the end of backward, then anew. */
struct curve {
    uint64_t live_bytes, peak_bytes;
    uint64_t peaks[MOMENT_N], ends[MOMENT_N];
};

static bool is_counted(const struct buffer *buffer)
{
    switch (buffer_role_class((enum buffer_role)buffer->role)) {
    case CLASS_ACTIVATION:
    case CLASS_LOGITS:
    case CLASS_TEMPORARY:
    case CLASS_WORKSPACE:
        return false;
    default:
        return true;
    }
}

static void note_end(struct curve *curve, enum oracle_moment moment)
{
    curve->peaks[moment] = curve->peak_bytes;
    curve->ends[moment] = curve->live_bytes;
}

static void end_phase(struct curve *curve, enum phase phase)
{
    static const enum oracle_moment moments[PHASE_N] = {
        [PHASE_INIT] = MOMENT_INIT,        [PHASE_FORWARD] = MOMENT_FORWARD,
        [PHASE_LOSS] = MOMENT_FORWARD,     [PHASE_BACKWARD] = MOMENT_BACKWARD,
        [PHASE_METRICS] = MOMENT_BACKWARD, [PHASE_OPTIMIZER] = MOMENT_OPTIMIZER,
    };

    note_end(curve, moments[phase]);
    if (phase >= PHASE_BACKWARD)
        curve->peak_bytes = curve->live_bytes;
}

static void walk_section(const struct program *program, enum section_id section,
                         struct curve *curve)
{
    for (uint32_t i = program->sections[section].begin; i < program->sections[section].end; i++) {
        const struct instr *instr = &program->instrs[i];
        if (instr->op == INSTR_MARK && instr->flags & INSTR_MARK_END)
            end_phase(curve, (enum phase)instr->id);
        if (instr->op > INSTR_FREE || !is_counted(&program->buffers[instr->id]))
            continue;
        const uint64_t bytes = program->buffers[instr->id].bytes;
        curve->live_bytes += instr->op == INSTR_ALLOC ? bytes : -bytes;
        if (curve->live_bytes > curve->peak_bytes)
            curve->peak_bytes = curve->live_bytes;
    }
}

/*
 * Not over the bound and its buffer, and not below it by more than one block: that much the bound
 * adds for a block that is whole before it is sharded, and for one that might be prefetched.
 */
static bool is_within(const struct curve *curve, const struct oracle_peak *peak, struct text *why)
{
    const double ours = (double)(peak->is_current ? curve->ends : curve->peaks)[peak->moment];
    const bool within = ours <= peak->bound_bytes + peak->buffer_bytes &&
                        ours >= peak->bound_bytes - peak->block_bytes;
    if (!within)
        text_add(why, "moment %d: pytorch: %.0f bytes, buffer %.0f; unshard: %.0f", peak->moment,
                 peak->bound_bytes, peak->buffer_bytes, ours);
    return within;
}

bool oracle_within_peaks(const struct oracle_subject *subject, struct text *why)
{
    const struct program *program = &subject->prepared->program;
    struct curve curve = {0};

    walk_section(program, SECTION_INIT, &curve);
    walk_section(program, SECTION_FIRST, &curve);
    note_end(&curve, MOMENT_ZERO_GRAD);
    for (uint32_t i = 0; i < subject->of->n_peak; i++)
        if (!is_within(&curve, &subject->of->peaks[i], why))
            return false;
    return true;
}
