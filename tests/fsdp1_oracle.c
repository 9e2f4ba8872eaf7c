/*
 * FSDP1's programs against what PyTorch's own hooks did: tests/oracle/fsdp1-*.json, made by
 * record_fsdp1.py. Compared is the order in which the host acts in the first step and in a steady
 * one: casts, gathers, frees with the streams recorded before them, reductions, and for whose free
 * the rate limiter waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/json.h"
#include "tests/make.h"
#include "tests/tap.h"

enum { N_CASE = 18, MAX_EVENTS = 4096 };

static void must(enum status status, const struct err *err)
{
    if (status != STATUS_OK)
        tap_bail(err->text);
}

static const char *text_of(const struct json_at *at, const char *key)
{
    const char *value;
    struct err err;
    must(json_get_string(at, key, &value, &err), &err);
    return value;
}

static unsigned word_of(const struct json_at *at, const char *key, const char *const *words)
{
    const char *value = text_of(at, key);
    unsigned i = 0;
    while (words[i] && strcmp(words[i], value) != 0)
        i++;
    if (!words[i])
        tap_bail("a word that no option has");
    return i;
}

static struct plan_options options_of(const struct json_at *at)
{
    static const char *const strategies[] = {"full", "grad-op", "no-shard", NULL};
    static const char *const prefetches[] = {"pre", "post", "none", NULL};
    static const char *const yes[] = {"no", "yes", NULL};
    struct plan_options options = plan_options_default();

    options.system = SYSTEM_FSDP1;
    options.units = "block";
    options.seq = 128;
    options.workspace_bytes = 1 << 20;
    options.fsdp1.strategy = (enum fsdp1_strategy)word_of(at, "strategy", strategies);
    options.fsdp1.backward_prefetch =
        (enum fsdp1_prefetch)word_of(at, "backward_prefetch", prefetches);
    options.fsdp1.forward_prefetch = word_of(at, "forward_prefetch", yes);
    return options;
}

/* A list of events as the recording has it, and what each free event is of. */
struct listing {
    const struct program *program;
    struct text text;
    int32_t unit_of[MAX_EVENTS]; /* -1: no free event */
    bool freed;                  /* the instruction before freed an unsharded parameter */
    uint16_t unit;
};

static void say(struct listing *l, const char *what, uint16_t unit)
{
    text_add(&l->text, "%s%s ", l->text.length > 0 ? "; " : "", what);
    if (unit == 0)
        text_add(&l->text, "root");
    else
        text_add(&l->text, "block%d", unit - 1);
}

static void say_task(struct listing *l, const struct task *task)
{
    if (task->kind == TASK_COPY_IN)
        say(l, "cast", task->unit);
    if (task->kind == TASK_ALL_GATHER)
        say(l, "gather", task->unit);
    if (task->kind == TASK_PRECAST)
        say(l, "reduce", task->unit);
}

static void say_recorded(struct listing *l, const struct buffer *buffer)
{
    say(l,
        buffer->role == ROLE_CAST_TEMP ? "record_stream cast"
        : buffer->role == ROLE_FULL    ? "record_stream full"
                                       : "record_stream grad",
        buffer->unit);
}

static void say_record(struct listing *l, uint32_t event)
{
    l->unit_of[event] = l->freed ? l->unit : -1;
    if (l->freed && l->program->plan->options.fsdp1.strategy != FSDP1_NO_SHARD)
        say(l, "event", l->unit);
}

static void say_instr(struct listing *l, const struct instr *instr)
{
    const struct program *p = l->program;
    const bool frees = instr->op == INSTR_FREE && p->buffers[instr->id].role == ROLE_FULL;

    if (frees)
        say(l, "free", l->unit = p->buffers[instr->id].unit);
    if (instr->op == INSTR_LAUNCH)
        say_task(l, &p->tasks[instr->id]);
    if (instr->op == INSTR_RECORD_STREAM)
        say_recorded(l, &p->buffers[instr->id]);
    if (instr->op == INSTR_RECORD)
        say_record(l, instr->id);
    if (instr->op == INSTR_HOST_WAIT)
        say(l, "host_wait", (uint16_t)l->unit_of[instr->id]);
    l->freed = frees;
}

static void check_section(struct listing *l, enum section_id section, const char *want,
                          const char *name)
{
    const struct section *s = &l->program->sections[section];

    text_init(&l->text);
    for (uint32_t i = s->begin; i < s->end; i++)
        say_instr(l, &l->program->instrs[i]);
    is_str(l->text.at, want, "%s, %s", name, section_name(section));
    text_release(&l->text);
}

static void check_case(const struct json_at *at)
{
    const struct plan_options options = options_of(at);
    struct listing *listing = calloc(1, sizeof *listing);
    struct made made;
    char name[64];

    make_init(&made, "llama3-8b", 3, &options);
    if (!listing || made.program.n_event > MAX_EVENTS)
        tap_bail("too many events");
    snprintf(name, sizeof name, "%s, prefetch %s, forward %s", text_of(at, "strategy"),
             text_of(at, "backward_prefetch"), text_of(at, "forward_prefetch"));
    listing->program = &made.program;
    check_section(listing, SECTION_FIRST, text_of(at, "first"), name);
    check_section(listing, SECTION_STEADY, text_of(at, "steady"), name);
    free(listing);
    make_release(&made);
}

int main(void)
{
    char path[512];
    struct json_doc doc;
    struct json_at cases;
    struct err err;
    int n = 0;

    snprintf(path, sizeof path, "%s/tests/oracle/fsdp1-torch-2.11.0-fake-8.json",
             getenv("top_srcdir") ? getenv("top_srcdir") : ".");
    must(json_read_file(path, &doc, &err), &err);
    const struct json_at root = json_root(&doc);
    must(json_get(&root, "cases", &cases, &err), &err);
    for (struct json_at at = json_first(&cases); at.node; at = json_next(&at), n++)
        check_case(&at);
    is_int(n, N_CASE, "all cases");
    json_release(&doc);
    return tap_done();
}
