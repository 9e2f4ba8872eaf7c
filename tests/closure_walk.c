/*
 * The walk of a program for its closure; see closure.h. Nodes, edges and lives, and what is broken
 * whatever the order.
 *
 * A host instruction has the time 2 * (instructions before it); the odd times are those of what a
 * body does inside its LAUNCH. Nodes are numbered in host order, so that an edge leads upwards.
 * That bodies and what stands beside them agree is looked up on the tapes, slot by slot.
 */
#include <stdlib.h>
#include <string.h>

#include "src/body.h"
#include "src/plan.h"
#include "tests/closure.h"

#define NONE CLOSURE_NONE

/* What the walk knows while it goes. */
struct walk {
    struct closure *c;
    uint32_t time;
    uint32_t stream[STREAM_N], comm[COMM_N], host; /* last nodes */
    uint32_t *record;  /* by event: node */
    uint32_t *life;    /* by buffer: the present one */
    uint32_t *kept;    /* by frame: the life from forward to backward */
    bool *passed;      /* by frame: forward, in this iteration */
    bool *member_born; /* by expanded id */
};

static void *grown(void *array, uint32_t *cap, uint32_t n, size_t size)
{
    if (n < *cap)
        return array;
    *cap = *cap == 0 ? 256 : 2 * *cap;
    array = realloc(array, *cap * size);
    if (array == NULL)
        abort();
    return array;
}

static uint32_t *filled(uint32_t n)
{
    uint32_t *array = malloc((n + 1) * sizeof *array);
    if (array == NULL)
        abort();
    memset(array, 0xff, (n + 1) * sizeof *array);
    return array;
}

static void *zeroed(size_t n, size_t size)
{
    void *array = calloc(n + 1, size);
    if (array == NULL)
        abort();
    return array;
}

static void broken_if(struct closure *c, bool broken)
{
    c->n_broken += broken;
}

/* ---- nodes ---- */

static uint32_t node_new(struct walk *w, uint32_t task, uint32_t instr)
{
    struct closure *c = w->c;
    c->nodes = grown(c->nodes, &c->cap_node, c->n_node, sizeof *c->nodes);
    c->nodes[c->n_node] = (struct closure_node){
        .task = task, .instr = instr, .edges = {NONE, NONE, w->host, NONE}};
    return c->n_node++;
}

static uint32_t node_on_stream(struct walk *w, uint32_t task, uint32_t instr)
{
    const uint32_t stream = w->c->program->instrs[instr].stream;
    const uint32_t node = node_new(w, task, instr);
    w->c->nodes[node].edges[0] = w->stream[stream];
    w->stream[stream] = node;
    return node;
}

/* ---- lives ---- */

static uint32_t life_new(struct walk *w, uint32_t buffer, uint32_t pool, uint32_t time)
{
    struct closure *c = w->c;
    c->lives = grown(c->lives, &c->cap_life, c->n_life, sizeof *c->lives);
    c->lives[c->n_life] =
        (struct closure_life){.buffer = buffer, .pool = pool, .born = time, .died = NONE};
    return c->n_life++;
}

static void life_use(struct closure *c, uint32_t life, uint32_t node, bool reads, bool writes)
{
    struct closure_life *l = &c->lives[life];
    l->uses = realloc(l->uses, (l->n_use + 1) * sizeof *l->uses);
    if (l->uses == NULL)
        abort();
    l->uses[l->n_use++] = (struct closure_use){.node = node, .reads = reads, .writes = writes};
}

static bool life_is_written(const struct closure_life *life)
{
    for (uint32_t i = 0; i < life->n_use; i++)
        if (life->uses[i].writes)
            return true;
    return false;
}

/* ---- bodies ---- */

/* The expanded id of a boundary slot, or NONE where the frame has no such buffer. */
static uint32_t boundary_id(const struct program *p, const struct frame *frame, uint32_t slot,
                            uint32_t *buffer)
{
    const uint32_t of[] = {frame->in, frame->out, frame->d_out, frame->d_in};
    uint32_t member = 0;
    if (slot < SLOT_GRAD) {
        *buffer = of[slot];
    } else {
        const uint32_t grad = p->plan->segments[frame->segment].grad + slot - SLOT_GRAD;
        *buffer = p->frame_grads[frame->grads + p->plan->grad_places[grad].part];
        member = p->plan->grad_places[grad].member;
    }
    return *buffer == NO_BUFFER ? NONE : p->buffers[*buffer].expanded + member;
}

static bool is_by_body(const struct program *p, uint32_t i, enum instr_op op)
{
    return p->instrs[i].op == op && (p->instrs[i].flags & INSTR_BY_BODY) != 0;
}

/* From a LAUNCH over the ALLOCs by body before it (step -1) or the FREEs after it (step 1). */
static bool beside(const struct program *p, const struct section *section, uint32_t launch,
                   enum instr_op op, int step, uint32_t buffer)
{
    for (uint32_t i = launch + (uint32_t)step; i >= section->begin && i < section->end;
         i += (uint32_t)step) {
        if (is_by_body(p, i, op) && p->instrs[i].id == buffer)
            return true;
        if (!is_by_body(p, i, op) && p->instrs[i].op != INSTR_MARK)
            return false;
    }
    return false;
}

static bool on_tape(const struct program *p, const struct task *task, enum tape_act act,
                    uint32_t buffer)
{
    const struct frame *frame = &p->frames[task->frame];
    const struct body_pair *pair = &p->bodies->pairs[frame->pair];
    const struct body *body = &p->bodies->bodies[task->body];

    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *tape = &p->bodies->tape[body->tape + i];
        uint32_t of;
        if (tape->act == act && tape->id < SLOT_GRAD + pair->n_grad &&
            boundary_id(p, frame, tape->id, &of) != NONE && of == buffer)
            return true;
    }
    return false;
}

/* The neighbouring LAUNCH of a body that an ALLOC or FREE by body belongs to. */
static bool has_tape(const struct program *p, const struct section *section, uint32_t instr)
{
    const enum instr_op op = p->instrs[instr].op;
    const int step = op == INSTR_ALLOC ? 1 : -1;
    uint32_t i = instr + (uint32_t)step;

    while (i >= section->begin && i < section->end &&
           (is_by_body(p, i, op) || p->instrs[i].op == INSTR_MARK))
        i += (uint32_t)step;
    if (i < section->begin || i >= section->end || p->instrs[i].op != INSTR_LAUNCH)
        return false;
    const struct task *task = &p->tasks[p->instrs[i].id];
    return task->body != NO_BODY &&
           on_tape(p, task, op == INSTR_ALLOC ? TAPE_ALLOC : TAPE_FREE, p->instrs[instr].id);
}

static void walk_tape(struct walk *w, const struct section *section, uint32_t launch)
{
    struct closure *c = w->c;
    const struct program *p = c->program;
    const struct task *task = &p->tasks[p->instrs[launch].id];
    const struct frame *frame = &p->frames[task->frame];
    const struct body_pair *pair = &p->bodies->pairs[frame->pair];
    const struct body *body = &p->bodies->bodies[task->body];

    for (uint32_t i = 0; i < body->n_tape; i++) {
        const struct tape *tape = &p->bodies->tape[body->tape + i];
        uint32_t buffer;
        if (tape->act == TAPE_OP || tape->id >= SLOT_GRAD + pair->n_grad)
            continue;
        const uint32_t id = boundary_id(p, frame, tape->id, &buffer);
        if (id == NONE) {
            c->n_broken++;
        } else if (tape->act == TAPE_FREE) {
            broken_if(c, !beside(p, section, launch, INSTR_FREE, 1, buffer));
        } else {
            broken_if(c, w->life[buffer] == NONE || !c->lives[w->life[buffer]].by_body ||
                             w->member_born[id]);
            w->member_born[id] = true;
        }
    }
}

static void walk_body(struct walk *w, const struct section *section, uint32_t instr, uint32_t node)
{
    struct closure *c = w->c;
    const struct program *p = c->program;
    const struct task *task = &p->tasks[p->instrs[instr].id];
    const struct body_pair *pair = &p->bodies->pairs[p->frames[task->frame].pair];
    const bool forward = task->kind == TASK_FORWARD;
    uint32_t *kept = &w->kept[task->frame];

    broken_if(c, task->body != (forward ? pair->forward : pair->backward));
    walk_tape(w, section, instr);
    const uint32_t own = life_new(w, NO_BUFFER, p->instrs[instr].stream, w->time + 1);
    life_use(c, own, node, false, true);
    c->lives[own].died = w->time + 1;
    if (pair->kind == BODY_METRIC) { /* it has no backward */
        broken_if(c, !forward || w->passed[task->frame]);
        w->passed[task->frame] = true;
    } else if (forward) {
        broken_if(c, w->passed[task->frame]);
        *kept = life_new(w, NO_BUFFER, p->instrs[instr].stream, w->time);
        life_use(c, *kept, node, false, true);
        w->passed[task->frame] = true;
    } else if (*kept == NONE) {
        c->n_broken++;
    } else {
        life_use(c, *kept, node, true, false);
        c->lives[*kept].died = w->time;
        *kept = NONE;
    }
}

/* ---- the walk ---- */

static void walk_alloc(struct walk *w, const struct section *section, uint32_t instr)
{
    struct closure *c = w->c;
    const struct instr *in = &c->program->instrs[instr];
    const struct buffer *buffer = &c->program->buffers[in->id];

    broken_if(c, w->life[in->id] != NONE);
    w->life[in->id] = life_new(w, in->id, buffer->pool, w->time);
    memset(w->member_born + buffer->expanded, 0, buffer->n_member);
    if ((in->flags & INSTR_BY_BODY) != 0) {
        c->lives[w->life[in->id]].by_body = true;
        broken_if(c, !has_tape(c->program, section, instr));
    }
}

/* A FREE by body lies inside its LAUNCH, before what the body allocates after it. */
static uint32_t time_of_free(const struct walk *w, uint32_t instr)
{
    const struct program *p = w->c->program;
    uint32_t back = 0;

    if (is_by_body(p, instr, INSTR_FREE))
        while (instr > back && p->instrs[instr - back].op != INSTR_LAUNCH)
            back++;
    return w->time - 2 * back;
}

static void walk_free(struct walk *w, const struct section *section, uint32_t instr)
{
    struct closure *c = w->c;
    const struct instr *in = &c->program->instrs[instr];
    const struct buffer *buffer = &c->program->buffers[in->id];

    if ((in->flags & INSTR_BY_BODY) != 0)
        broken_if(c, !has_tape(c->program, section, instr));
    if (w->life[in->id] == NONE) {
        c->n_broken++;
        return;
    }
    struct closure_life *life = &c->lives[w->life[in->id]];
    for (uint32_t i = 0; life->by_body && i < buffer->n_member; i++)
        broken_if(c, !w->member_born[buffer->expanded + i]);
    life->died = time_of_free(w, instr);
    memcpy(life->seen, w->stream, sizeof life->seen);
    w->life[in->id] = NONE;
}

static void walk_record_stream(struct walk *w, uint32_t instr)
{
    struct closure *c = w->c;
    const struct instr *in = &c->program->instrs[instr];

    if (w->life[in->id] == NONE)
        c->n_broken++;
    else
        c->lives[w->life[in->id]].users |= 1u << in->stream;
}

static void walk_launch(struct walk *w, const struct section *section, uint32_t instr)
{
    struct closure *c = w->c;
    const struct program *p = c->program;
    const struct task *task = &p->tasks[p->instrs[instr].id];
    const uint32_t node = node_on_stream(w, p->instrs[instr].id, instr);

    if (task->comm != COMM_NONE) {
        c->nodes[node].edges[1] = w->comm[task->comm];
        w->comm[task->comm] = node;
    }
    if (task->body != NO_BODY)
        walk_body(w, section, instr, node);
    for (uint32_t i = 0; i < task->n_access; i++) {
        const struct access *access = &p->accesses[task->access + i];
        const uint32_t life = w->life[access->buffer];
        const bool reads = (access->mode & ACCESS_READ) != 0;
        const bool writes = (access->mode & ACCESS_WRITE) != 0;
        broken_if(c, life == NONE || (reads && !life_is_written(&c->lives[life])));
        if (life != NONE)
            life_use(c, life, node, reads, writes);
    }
}

static void walk_wait(struct walk *w, uint32_t instr)
{
    struct closure *c = w->c;
    const struct instr *in = &c->program->instrs[instr];
    const bool host = in->op == INSTR_HOST_WAIT;
    const uint32_t node = host ? node_new(w, NONE, instr) : node_on_stream(w, NONE, instr);

    broken_if(c, w->record[in->id] == NONE);
    c->nodes[node].edges[3] = w->record[in->id];
    if (host)
        w->host = node;
}

static void walk_instr(struct walk *w, const struct section *section, uint32_t instr)
{
    const struct instr *in = &w->c->program->instrs[instr];

    if (in->op == INSTR_ALLOC)
        walk_alloc(w, section, instr);
    else if (in->op == INSTR_FREE)
        walk_free(w, section, instr);
    else if (in->op == INSTR_LAUNCH)
        walk_launch(w, section, instr);
    else if (in->op == INSTR_RECORD)
        w->record[in->id] = node_on_stream(w, NONE, instr);
    else if (in->op == INSTR_WAIT || in->op == INSTR_HOST_WAIT)
        walk_wait(w, instr);
    else if (in->op == INSTR_RECORD_STREAM)
        walk_record_stream(w, instr);
    w->time += 2;
}

static void walk_section(struct walk *w, const struct section *section)
{
    struct closure *c = w->c;
    const struct program *p = c->program;

    for (uint32_t i = section->begin; i < section->end; i++)
        walk_instr(w, section, i);
    for (uint32_t b = 0; b < p->n_buffer; b++)
        broken_if(c, w->life[b] != NONE && p->buffers[b].scope == SCOPE_STEP);
    for (uint32_t f = 0; f < p->n_frame; f++) {
        broken_if(c, w->kept[f] != NONE);
        w->passed[f] = false;
    }
}

void closure_walk(struct closure *c)
{
    const struct program *p = c->program;
    struct walk w = {
        .c = c,
        .host = NONE,
        .record = filled(p->n_event),
        .life = filled(p->n_buffer),
        .kept = filled(p->n_frame),
        .passed = zeroed(p->n_frame, sizeof(bool)),
        .member_born = zeroed(p->n_expanded, sizeof(bool)),
    };

    memset(w.stream, 0xff, sizeof w.stream);
    memset(w.comm, 0xff, sizeof w.comm);
    walk_section(&w, &p->sections[SECTION_INIT]);
    walk_section(&w, &p->sections[SECTION_FIRST]);
    walk_section(&w, &p->sections[SECTION_STEADY]);
    walk_section(&w, &p->sections[SECTION_STEADY]);
    free(w.record);
    free(w.life);
    free(w.kept);
    free(w.passed);
    free(w.member_born);
}
