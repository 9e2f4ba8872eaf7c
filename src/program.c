/*
 * Names of a program's enumerations, and its hash.
 *
 * The hash is the identity that a simulated and a real run share: over the arrays field by field,
 * so that padding and byte order of the machine do not matter, and over the bodies they name, so
 * that it stands for both levels.
 */
#include "src/program.h"

#include <string.h>

#include "src/hash.h"

#define X(id, name) name,
static const char *const stream_names[] = {STREAMS(X)};
static const char *const phase_names[] = {PHASES(X)};
static const char *const task_kind_names[] = {TASK_KINDS(X)};
static const char *const section_names[] = {SECTIONS(X)};
static const char *const comm_names[] = {COMMS(X)};
static const char *const reduction_names[] = {REDUCTIONS(X)};
#undef X
#define X(id, name, memory_class) name,
static const char *const role_names[] = {BUFFER_ROLES(X)};
#undef X
#define X(id, name, memory_class) CLASS_##memory_class,
static const uint8_t role_classes[] = {BUFFER_ROLES(X)};
#undef X

const char *stream_name(enum stream stream)
{
    return stream_names[stream];
}

const char *phase_name(enum phase phase)
{
    return phase_names[phase];
}

const char *task_kind_name(enum task_kind kind)
{
    return task_kind_names[kind];
}

const char *comm_name(enum comm comm)
{
    return comm_names[comm];
}

static uint64_t ranks_of(const struct plan *plan, enum comm comm)
{
    const struct plan_options *o = &plan->options;

    if (comm == COMM_REDUCE)
        return o->separate_reduce_comm ? plan->shard_ranks : 1;
    if (comm == COMM_REPLICATE)
        return o->replicas;
    if (comm == COMM_KEPT)
        return o->reshard == RESHARD_RANKS ? o->reshard_ranks : 1;
    if (comm == COMM_WORLD)
        return o->replicas > 1 ? plan->world : 1;
    if (comm == COMM_SECOND && !o->policy.second_mesh)
        return 1;
    return plan->shard_ranks;
}

/* Neighbours share a shard; replicas are as far apart as a whole set of shards is long. */
struct comm_ranks comm_ranks_of(const struct plan *plan, enum comm comm)
{
    const uint64_t ranks = ranks_of(plan, comm);
    uint64_t per_node = plan->gpus_per_node;

    if (comm == COMM_REPLICATE)
        per_node /= plan->shard_ranks;
    if (per_node == 0)
        per_node = 1;
    return (struct comm_ranks){.ranks = ranks, .per_node = per_node < ranks ? per_node : ranks};
}

const char *reduction_name(enum reduction reduction)
{
    return reduction_names[reduction];
}

const char *section_name(enum section_id section)
{
    return section_names[section];
}

const char *buffer_role_name(enum buffer_role role)
{
    return role_names[role];
}

enum memory_class buffer_role_class(enum buffer_role role)
{
    return role_classes[role];
}

bool task_kind_is_collective(enum task_kind kind)
{
    return kind == TASK_ALL_GATHER || kind == TASK_REDUCE_SCATTER || kind == TASK_ALL_REDUCE;
}

bool program_is_timed(const struct program *program)
{
    for (uint32_t i = 0; i < program->n_instr; i++)
        if (program->instrs[i].op == INSTR_RECORD_STREAM)
            return true;
    return false;
}

static uint64_t hash_instrs(const struct program *p, uint64_t hash)
{
    for (uint32_t s = 0; s < SECTION_N; s++)
        hash = hash_add(hash_add(hash, p->sections[s].begin), p->sections[s].end);
    for (uint32_t i = 0; i < p->n_instr; i++) {
        const struct instr *in = &p->instrs[i];
        hash = hash_add(hash, (uint64_t)in->op | (uint64_t)in->stream << 8 |
                                  (uint64_t)in->flags << 16 | (uint64_t)in->id << 32);
    }
    return hash;
}

static uint64_t double_bits(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t hash_tasks(const struct program *p, uint64_t hash)
{
    for (uint32_t i = 0; i < p->n_task; i++) {
        const struct task *t = &p->tasks[i];
        hash = hash_add(hash,
                        (uint64_t)t->kind | (uint64_t)t->stream << 8 | (uint64_t)t->comm << 16 |
                            (uint64_t)t->dtype << 24 | (uint64_t)t->reduction << 32 |
                            (uint64_t)(t->kernels & UINT16_MAX) << 40 | (uint64_t)t->bucket << 56);
        hash = hash_add(hash, (uint64_t)t->unit | (uint64_t)t->microbatch << 16 |
                                  (uint64_t)t->body << 32);
        hash = hash_add(hash, (uint64_t)t->frame | (uint64_t)t->access << 32);
        hash = hash_add(hash, (uint64_t)t->n_access | (uint64_t)(t->kernels >> 16) << 32);
        hash = hash_add(hash, t->elements);
        hash = hash_add(hash, double_bits(t->divisor));
    }
    for (uint32_t i = 0; i < p->n_access; i++)
        hash =
            hash_add(hash, (uint64_t)p->accesses[i].buffer | (uint64_t)p->accesses[i].mode << 32);
    return hash;
}

static uint64_t hash_buffers(const struct program *p, uint64_t hash)
{
    for (uint32_t i = 0; i < p->n_buffer; i++) {
        const struct buffer *b = &p->buffers[i];
        hash = hash_add(hash, b->bytes);
        hash = hash_add(hash, (uint64_t)b->member | (uint64_t)b->n_member << 32);
        hash = hash_add(hash, (uint64_t)b->unit | (uint64_t)b->segment << 16 |
                                  (uint64_t)b->microbatch << 32 | (uint64_t)b->role << 48 |
                                  (uint64_t)b->pool << 56);
        hash = hash_add(hash, (uint64_t)b->scope | (uint64_t)b->expanded << 32);
    }
    for (uint32_t i = 0; i < p->n_member; i++)
        hash = hash_add(hash, p->member_bytes[i]);
    for (uint32_t i = 0; i < p->n_frame_grad; i++)
        hash = hash_add(hash, p->frame_grads[i]);
    for (uint32_t i = 0; i < p->n_frame; i++) {
        const struct frame *f = &p->frames[i];
        hash = hash_add(hash, (uint64_t)f->pair | (uint64_t)f->segment << 32);
        hash = hash_add(hash, (uint64_t)f->in | (uint64_t)f->out << 32);
        hash = hash_add(hash, (uint64_t)f->d_out | (uint64_t)f->d_in << 32);
        hash = hash_add(hash, (uint64_t)f->grads | (uint64_t)f->expanded << 32);
    }
    return hash;
}

static uint64_t hash_unit(const struct layout *layout, const struct unit_layout *unit,
                          uint64_t hash)
{
    hash = hash_add(hash_add(hash, unit->n_param), unit->elements);
    for (uint32_t i = 0; i < unit->n_param; i++) {
        const struct param_layout *param = &layout->params[unit->param + i];
        hash = hash_add(hash_add(hash, param->gather_offset_bytes), param->reduce_offset);
        hash = hash_add(hash, (uint64_t)param->shard_dim | (uint64_t)param->bucket << 8);
    }
    for (uint32_t i = 0; i < unit->n_cast; i++)
        hash = hash_add(hash, (uint64_t)unit->casts[i].storage |
                                  (uint64_t)unit->casts[i].compute << 8 |
                                  (uint64_t)unit->casts[i].n_param << 16);
    return hash;
}

/* Which units' gradients the grad slots of a frame are. */
static uint64_t hash_grad_places(const struct program *p, const struct frame *frame, uint64_t hash)
{
    for (uint32_t g = 0; g < p->bodies->pairs[frame->pair].n_grad; g++) {
        const struct grad_place *place =
            &p->plan->grad_places[p->plan->segments[frame->segment].grad + g];
        hash = hash_add(hash, (uint64_t)place->part | (uint64_t)place->member << 32);
    }
    return hash;
}

/* What prices and real runs take from plan and layout beside the arrays. */
static uint64_t hash_plan(const struct program *p, uint64_t hash)
{
    hash = hash_add(hash_add(hash, p->plan->world), p->plan->gpus_per_node);
    hash = hash_add(hash_add(hash, p->plan->shard_ranks), p->plan->options.policy.behavior);
    for (uint32_t u = 0; u < p->plan->n_unit; u++)
        hash = hash_unit(p->layout, p->layout->units[u], hash);
    for (uint32_t i = 0; i < p->n_frame; i++)
        hash = hash_grad_places(p, &p->frames[i], hash);
    return hash;
}

static uint64_t hash_operands(const struct body_table *t, const struct op *op, uint64_t hash)
{
    for (uint32_t i = 0; i < op->n_operand; i++) {
        const struct operand *operand = &t->operands[op->operand + i];
        hash = hash_add(hash, (uint64_t)operand->kind | (uint64_t)operand->mode << 8 |
                                  (uint64_t)operand->dtype << 16 | (uint64_t)operand->id << 32);
    }
    return hash;
}

static uint64_t hash_bodies(const struct body_table *t, uint64_t hash)
{
    for (uint32_t i = 0; i < t->n_op; i++) {
        const struct op *op = &t->ops[i];
        hash = hash_add(hash,
                        (uint64_t)op->kind | (uint64_t)op->pass << 8 | (uint64_t)op->kernels << 16);
        hash = hash_add(hash_add(hash_add(hash_add(hash, op->m), op->n), op->k), op->bytes);
        hash = hash_operands(t, op, hash);
    }
    for (uint32_t i = 0; i < t->n_tape; i++)
        hash = hash_add(hash, (uint64_t)t->tape[i].act | (uint64_t)t->tape[i].id << 32);
    for (uint32_t i = 0; i < t->n_slot; i++)
        hash = hash_add(hash_add(hash, t->slots[i].bytes), t->slots[i].memory_class);
    for (uint32_t i = 0; i < t->n_body; i++) {
        const struct body *b = &t->bodies[i];
        hash = hash_add(hash, (uint64_t)b->op | (uint64_t)b->n_op << 32);
        hash = hash_add(hash, (uint64_t)b->tape | (uint64_t)b->n_tape << 32);
    }
    for (uint32_t i = 0; i < t->n_pair; i++) {
        const struct body_pair *pair = &t->pairs[i];
        hash = hash_add(hash, (uint64_t)pair->kind | (uint64_t)pair->n_grad << 32);
        hash = hash_add(hash, (uint64_t)pair->forward | (uint64_t)pair->backward << 32);
        hash = hash_add(hash, (uint64_t)pair->slot | (uint64_t)pair->n_slot << 32);
    }
    return hash;
}

uint64_t program_hash(const struct program *program)
{
    uint64_t hash = UINT64_C(0x756e7368617264); /* "unshard" */
    hash = hash_plan(program, hash);
    hash = hash_instrs(program, hash);
    hash = hash_tasks(program, hash);
    hash = hash_buffers(program, hash);
    hash = hash_bodies(program->bodies, hash);
    return hash;
}
