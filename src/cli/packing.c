/*
 * One walk over the steady step; see packing.h.
 */
#include "src/cli/packing.h"

static bool is_temporary(uint8_t role)
{
    return role == ROLE_CAST_TEMP || role == ROLE_CAT_TEMP || role == ROLE_PRECAST;
}

static void add_task(const struct task *task, int64_t ns, struct packing *packing)
{
    switch ((enum task_kind)task->kind) {
    case TASK_COPY_IN:
        packing->copy_in_ns += ns;
        break;
    case TASK_COPY_OUT:
        packing->copy_out_ns += ns;
        break;
    case TASK_PRECAST:
    case TASK_PACK:
        packing->pack_ns += ns;
        break;
    case TASK_ALL_GATHER:
        packing->n_all_gather++;
        break;
    case TASK_REDUCE_SCATTER:
        packing->n_reduce_scatter++;
        break;
    default:
        break;
    }
}

struct packing packing_of(const struct program *program, const struct prices *prices)
{
    const struct section *steady = &program->sections[SECTION_STEADY];
    struct packing packing = {0};
    uint64_t alive_bytes = 0;

    for (uint32_t i = steady->begin; i < steady->end; i++) {
        const struct instr *instr = &program->instrs[i];
        if (instr->op == INSTR_LAUNCH)
            add_task(&program->tasks[instr->id], prices->task_ns[instr->id], &packing);
        if (instr->op > INSTR_FREE || !is_temporary(program->buffers[instr->id].role))
            continue;
        const uint64_t bytes = program->buffers[instr->id].bytes;
        alive_bytes += instr->op == INSTR_ALLOC ? bytes : -bytes;
        if (alive_bytes > packing.temporary_bytes)
            packing.temporary_bytes = alive_bytes;
    }
    return packing;
}

const char *packing_measured_on(enum behavior behavior)
{
    return behavior == BEHAVIOR_UNSHARD ? "predicted" : "H100";
}
