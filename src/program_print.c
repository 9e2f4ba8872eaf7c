/*
 * A program as text; see program_print.h.
 *
 * Columns: instruction, stream (or pool), what, and what belongs to it. Events have no number here:
 * each is called after the last task launched on its stream before the RECORD, so that equal blocks
 * print equal text but for names.
 */
#include "src/program_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/expand.h"

static const char *segment_name(const struct program *program, uint32_t segment, char *out,
                                size_t size)
{
    const struct segment *s = &program->plan->segments[segment];
    const char *kind = body_kind_name(s->kind);
    if (s->kind == BODY_ATTENTION || s->kind == BODY_MLP || s->kind == BODY_BLOCK)
        snprintf(out, size, "%s%u", kind, s->layer);
    else
        snprintf(out, size, "%s", kind);
    return out;
}

/* microbatch < 0: it belongs to the step as a whole. */
static const char *name_of(const struct program *program, const char *what, uint16_t unit,
                           const char *part, int microbatch, char out[PROGRAM_NAME_MAX])
{
    const char *unit_name = unit == NO_UNIT ? "" : program->plan->units[unit].name;
    int n = snprintf(out, PROGRAM_NAME_MAX, "%s%s%.80s%s%.40s", what, *unit_name ? " " : "",
                     unit_name, *part ? " " : "", part);
    if (program->plan->options.accum > 1 && microbatch >= 0 && n >= 0 && n < PROGRAM_NAME_MAX)
        snprintf(out + n, PROGRAM_NAME_MAX - (size_t)n, " mb%d", microbatch);
    return out;
}

const char *program_buffer_name(const struct program *program, uint32_t buffer,
                                char out[PROGRAM_NAME_MAX])
{
    const struct buffer *b = &program->buffers[buffer];
    char part[48] = "";
    if (b->segment != NO_SEGMENT)
        segment_name(program, b->segment, part, sizeof part);
    return name_of(program, buffer_role_name(b->role), b->unit, part,
                   b->scope == SCOPE_RUN ? -1 : b->microbatch, out);
}

/* Of a pair that no unit runs: the loss's, or a metric's. */
static const char *pair_name(const struct program *program, uint32_t frame)
{
    const uint32_t pair = program->frames[frame].pair;
    return body_kind_name((enum body_kind)program->bodies->pairs[pair].kind);
}

const char *program_task_name(const struct program *program, uint32_t task,
                              char out[PROGRAM_NAME_MAX])
{
    const struct task *t = &program->tasks[task];
    char part[48] = "";
    if (t->frame != NO_FRAME) {
        const uint32_t segment = program->frames[t->frame].segment;
        if (segment == NO_SEGMENT)
            snprintf(part, sizeof part, "%s", pair_name(program, t->frame));
        else
            segment_name(program, segment, part, sizeof part);
    }
    const bool whole_step = t->kind == TASK_OPTIMIZER || t->kind == TASK_INIT;
    return name_of(program, task_kind_name(t->kind), t->unit, part, whole_step ? -1 : t->microbatch,
                   out);
}

/* For each event the task that was last launched on its stream; UINT32_MAX where none was. */
static uint32_t *name_events(const struct program *program)
{
    uint32_t last[STREAM_N];
    uint32_t *behind = malloc((program->n_event + 1) * sizeof *behind);
    if (behind == NULL)
        abort();
    memset(last, 0xff, sizeof last);
    for (uint32_t i = 0; i < program->n_instr; i++) {
        const struct instr *in = &program->instrs[i];
        if (in->op == INSTR_LAUNCH)
            last[in->stream] = in->id;
        else if (in->op == INSTR_RECORD)
            behind[in->id] = last[in->stream];
    }
    return behind;
}

static void print_task(const struct program *program, uint32_t id, struct text *out)
{
    const struct task *t = &program->tasks[id];
    char name[PROGRAM_NAME_MAX];
    text_add(out, "%s", program_task_name(program, id, name));
    if (t->elements == 0)
        return;
    text_add(out, " "); /* a name may be longer than its column */
    text_pad(out, 62);
    if (task_kind_is_collective(t->kind) && t->reduction != REDUCE_NONE)
        text_add(out, "%s ", reduction_name((enum reduction)t->reduction));
    text_add(out, "%s x %llu", dtype_name(t->dtype), (unsigned long long)t->elements);
    if (t->divisor != 1)
        text_add(out, " / %g", t->divisor);
}

static void print_memory(const struct expanded *event, const char *name, struct text *out)
{
    text_add(out, "%s ", name);
    text_pad(out, 62);
    text_add(out, "%llu", (unsigned long long)event->bytes);
    if ((event->flags & INSTR_BY_BODY) != 0)
        text_add(out, " by body");
}

/* What an ALLOC or FREE of the expanded level is called: the buffer, or the body it is a slot of. */
static const char *expanded_name(const struct program *program, const struct expanded *event,
                                 char out[PROGRAM_NAME_MAX])
{
    const struct instr *in = &program->instrs[event->instr];
    if (in->op != INSTR_LAUNCH)
        return program_buffer_name(program, in->id, out);
    program_task_name(program, in->id, out);
    const size_t n = strlen(out);
    snprintf(out + n, PROGRAM_NAME_MAX - n, " #%u %s", event->id,
             memory_class_name(event->memory_class));
    return out;
}

static void print_event(const struct program *program, const struct expanded *event,
                        const uint32_t *behind, struct text *out)
{
    static const char *const names[] = {
#define X(id, name) name,
        INSTRS(X)
#undef X
    };
    char name[PROGRAM_NAME_MAX];

    text_add(out, "%-10s %-4s ", names[event->op],
             event->op == INSTR_MARK || event->op == INSTR_HOST_WAIT ? ""
                                                                     : stream_name(event->stream));
    switch ((enum instr_op)event->op) {
    case INSTR_ALLOC:
    case INSTR_FREE:
    case INSTR_RECORD_STREAM:
        print_memory(event, expanded_name(program, event, name), out);
        break;
    case INSTR_LAUNCH:
        print_task(program, event->id, out);
        if (event->body_op != NO_OP)
            text_add(out, " %s", op_kind_name(program->bodies->ops[event->body_op].kind));
        break;
    case INSTR_RECORD:
    case INSTR_WAIT:
    case INSTR_HOST_WAIT:
        text_add(out, "%s",
                 behind[event->id] == UINT32_MAX
                     ? "start"
                     : program_task_name(program, behind[event->id], name));
        break;
    case INSTR_MARK:
        text_add(out, "%s %s", phase_name(event->id),
                 (event->flags & INSTR_MARK_END) != 0 ? "end" : "begin");
        break;
    case INSTR_N:
        break;
    }
    text_add(out, "\n");
}

static void print_unit_level(const struct program *program, enum section_id section,
                             const uint32_t *behind, struct text *out)
{
    for (uint32_t i = program->sections[section].begin; i < program->sections[section].end; i++) {
        const struct instr *in = &program->instrs[i];
        struct expanded event = {.op = in->op,
                                 .stream = in->stream,
                                 .flags = in->flags,
                                 .instr = i,
                                 .id = in->id,
                                 .body_op = NO_OP};
        if (instr_has_buffer(in->op))
            event.bytes = program->buffers[in->id].bytes;
        print_event(program, &event, behind, out);
    }
}

void program_print(const struct program *program, enum section_id section, bool expand,
                   struct text *out)
{
    uint32_t *behind = name_events(program);

    text_add(out, "section %s\n", section_name(section));
    if (expand) {
        struct expand walk;
        struct expanded event;
        expand_begin(&walk, program, section);
        while (expand_next(&walk, &event))
            print_event(program, &event, behind, out);
    } else {
        print_unit_level(program, section, behind, out);
    }
    free(behind);
}
