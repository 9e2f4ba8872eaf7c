/*
 * From the program's instructions to recorded events; see oracle_project.h.
 */
#include "tests/oracle_project.h"

#include <string.h>

struct projector {
    const struct prepared *prepared;
    struct arena *arena;
    const char **units; /* recorded names */
    enum phase phase;
    struct oracle_projection *out;
    uint32_t cap;
};

/* What the name of a group on the second mesh has behind those of its modules. */
static const char on_second_mesh[] = " on mesh 2";

static size_t length_without_mesh(const char *unit)
{
    const char *mesh = strstr(unit, on_second_mesh);
    return mesh ? (size_t)(mesh - unit) : strlen(unit);
}

/* Characters of the module path in the recorded name that the parameter lies below; 0 of the root,
   -1 where it is in none of the name's modules. */
static int match_length(const char *unit, const char *param)
{
    const char *end = unit + length_without_mesh(unit);
    int longest = strncmp(unit, "(root)", (size_t)(end - unit)) == 0 ? 0 : -1;

    for (const char *path = unit; path < end;) {
        const size_t rest = (size_t)(end - path), comma = strcspn(path, ",");
        const size_t length = comma < rest ? comma : rest;
        if (strncmp(path, param, length) == 0 && param[length] == '.' && (int)length > longest)
            longest = (int)length;
        path += length + strspn(path + length, ", ");
    }
    return longest;
}

static void take_longer(const char *unit, const char *param, const char **name)
{
    if (match_length(unit, param) > match_length(*name, param))
        *name = unit;
}

static void take_from_events(const struct oracle_events *events, const char *param,
                             const char **name)
{
    for (uint32_t i = 0; i < events->n; i++)
        take_longer(events->at[i].unit, param, name);
}

/* Of all units that the case names, the innermost around our unit's first parameter. */
static const char *recorded_name(const struct oracle_case *of, const struct plan *plan, uint32_t u,
                                 struct arena *arena)
{
    const char *param = plan->model->params[plan->unit_params[plan->units[u].param]].name;
    const char *name = "(root)";

    take_from_events(&of->events, param, &name);
    for (int span = 0; span < ORACLE_SPANS; span++)
        take_from_events(&of->spans[span], param, &name);
    for (uint32_t i = 0; i < of->n_param; i++)
        take_longer(of->params[i].unit, param, &name);
    return arena_printf(arena, "%.*s%s", (int)length_without_mesh(name), name,
                        plan->units[u].on_second_mesh ? on_second_mesh : "");
}

static struct our_event *add(struct projector *p, enum oracle_event_kind kind, uint16_t unit)
{
    struct oracle_projection *out = p->out;
    out->events = arena_grow(p->arena, out->events, &p->cap, out->n + 1, sizeof *out->events);
    struct our_event *event = &out->events[out->n++];
    event->event.kind = (uint8_t)kind;
    event->event.unit = p->units[unit];
    event->span = p->phase == PHASE_BACKWARD ? ORACLE_BACKWARD : ORACLE_FORWARD;
    return event;
}

static struct our_event *add_move(struct projector *p, enum oracle_event_kind kind,
                                  const struct task *task)
{
    struct our_event *event = add(p, kind, task->unit);

    event->event.elements = task->elements;
    event->event.dtype = task->dtype;
    return event;
}

static void add_reduction(struct projector *p, enum oracle_event_kind kind, const struct task *task)
{
    add_move(p, kind, task)->event.reduction = task->reduction;
}

/* Dtypes of the gradients that go into this bucket of the unit, as autograd yields them. */
static unsigned grad_dtypes(const struct prepared *prepared, const struct task *task)
{
    const struct plan *plan = &prepared->plan;
    const struct unit *unit = &plan->units[task->unit];
    const struct unit_layout *layout = prepared->layout.units[task->unit];
    unsigned dtypes = 0;

    for (uint32_t i = 0; i < unit->n_param; i++)
        if (prepared->layout.params[layout->param + i].bucket == task->bucket)
            dtypes |= 1u << plan->policy[plan->unit_params[unit->param + i]].grad;
    return dtypes;
}

/* Gradients that were added up over microbatches have the reduce dtype. */
static unsigned pack_reads(const struct prepared *prepared, const struct task *task)
{
    const struct program *program = &prepared->program;

    for (uint32_t i = 0; i < task->n_access; i++) {
        const struct access *access = &program->accesses[task->access + i];
        if (access->mode == ACCESS_READ &&
            program->buffers[access->buffer].role == ROLE_ACCUMULATED)
            return 1u << task->dtype;
    }
    return grad_dtypes(prepared, task);
}

static void project_task(struct projector *p, const struct task *task)
{
    switch ((enum task_kind)task->kind) {
    case TASK_COPY_IN:
        add(p, ORACLE_UNSHARD, task->unit);
        add_move(p, ORACLE_COPY_IN, task);
        break;
    case TASK_ALL_GATHER:
        add_move(p, ORACLE_ALL_GATHER, task);
        break;
    case TASK_COPY_OUT:
        add_move(p, ORACLE_COPY_OUT, task);
        break;
    case TASK_PACK:
        add_move(p, ORACLE_PACK, task)->reads = pack_reads(p->prepared, task);
        break;
    case TASK_REDUCE_SCATTER:
        add_reduction(p, ORACLE_REDUCE_SCATTER, task);
        add(p, ORACLE_POST_BACKWARD, task->unit);
        break;
    case TASK_ALL_REDUCE:
        add_reduction(p, ORACLE_ALL_REDUCE, task);
        break;
    default:
        break;
    }
}

static void project_instr(struct projector *p, const struct instr *instr)
{
    const struct program *program = &p->prepared->program;

    if (instr->op == INSTR_MARK)
        p->phase = (enum phase)instr->id;
    else if (instr->op == INSTR_LAUNCH)
        project_task(p, &program->tasks[instr->id]);
    else if (instr->op == INSTR_FREE && program->buffers[instr->id].role == ROLE_FULL)
        add(p, ORACLE_RESHARD, program->buffers[instr->id].unit);
}

static void project_param(struct projector *p, uint32_t u, uint32_t i, struct oracle_param *out)
{
    const struct plan *plan = &p->prepared->plan;
    const struct unit_layout *unit = p->prepared->layout.units[u];
    const struct param_layout *place = &p->prepared->layout.params[unit->param + i];
    const struct param *param = &plan->model->params[plan->unit_params[plan->units[u].param + i]];

    *out = (struct oracle_param){
        .name = param->name,
        .unit = p->units[u],
        .n_dim = param->n_dim,
        .dim = place->shard_dim,
        .chunk = place->chunk_rows,
        .numel = place->shard_elements,
        .offset = place->gather_offset_bytes / dtype_bytes((enum dtype)unit->wire),
        .has_offset = plan->shard_ranks > 1,
        .n_rank = (uint32_t)plan->shard_ranks,
        .rows = arena_array(p->arena, uint64_t, plan->shard_ranks),
    };
    memcpy(out->shape, param->shape, sizeof out->shape);
    for (uint32_t rank = 0; rank < out->n_rank; rank++)
        out->rows[rank] = param_layout_rows(place, rank);
}

static void project_layout(struct projector *p)
{
    const struct plan *plan = &p->prepared->plan;
    struct oracle_projection *out = p->out;

    out->params = arena_array(p->arena, struct oracle_param, plan->model->n_param + 1);
    for (uint32_t u = 0; u < plan->n_unit; u++)
        for (uint32_t i = 0; i < plan->units[u].n_param; i++)
            project_param(p, u, i, &out->params[out->n_param++]);
}

void oracle_project(const struct oracle_case *of, const struct prepared *prepared,
                    enum section_id section, struct arena *arena, struct oracle_projection *out)
{
    const struct program *program = &prepared->program;
    struct projector projector = {
        .prepared = prepared,
        .arena = arena,
        .units = arena_array(arena, const char *, prepared->plan.n_unit + 1),
        .out = out,
    };

    *out = (struct oracle_projection){0};
    for (uint32_t u = 0; u < prepared->plan.n_unit; u++)
        projector.units[u] = recorded_name(of, &prepared->plan, u, arena);
    for (uint32_t i = program->sections[section].begin; i < program->sections[section].end; i++)
        project_instr(&projector, &program->instrs[i]);
    project_layout(&projector);
}
