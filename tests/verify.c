/*
 * The verifier: tiny programs with one fault each and their repaired twins, then the programs of the
 * scheduler with one instruction taken out, moved or swapped, against a brute-force closure.
 */
#include "src/verify.h"

#include <stdlib.h>
#include <string.h>

#include "src/program_builder.h"
#include "tests/closure.h"
#include "tests/make.h"
#include "tests/tap.h"

#define NONE UINT32_MAX

/*
 * Tiny programs are written in words, one step that is walked as first steady and second steady:
 *
 *     a+  a-       ALLOC, FREE of buffer a; a+t, a-t: by the tape beside it
 *     C:ra,wb      a task on stream C that reads a and writes b; ua: both
 *     C:F,ri C:B   forward, backward body of the one frame, with accesses; AG:K,wg: a collective
 *     C>AG         AG waits for what C has so far; C>1 records event 1, 1>AG waits for it; C>host
 *     mark         nothing that orders anything
 *
 * Buffers are letters; where each one lies, and what it is of the frame, say the tables below. The
 * tape of forward allocates o, that of backward allocates e and p and frees d and i.
 */
struct tiny {
    struct arena arena;
    struct plan plan;
    struct layout layout;
    struct body_table bodies;
    struct program program;
    struct program_builder build;
    uint32_t buffers[26], events[10];
};

static const struct {
    char letter;
    uint8_t role, pool;
} tiny_buffers[] = {
    {'a', ROLE_FULL, STREAM_C},      {'b', ROLE_REDUCE_IN, STREAM_C}, {'c', ROLE_LOGITS, STREAM_C},
    {'g', ROLE_GATHERED, STREAM_AGI}, {'s', ROLE_GRAD_SHARD, STREAM_RS},
    {'i', ROLE_INPUT, STREAM_C},     {'o', ROLE_HIDDEN, STREAM_C},
    {'d', ROLE_D_LOGITS, STREAM_C},  {'e', ROLE_D_HIDDEN, STREAM_C},  {'p', ROLE_GRADS, STREAM_C},
};

static const uint8_t tiny_kinds[STREAM_N] = {TASK_COPY_OUT, TASK_COPY_IN, TASK_ALL_GATHER,
                                             TASK_REDUCE_SCATTER, TASK_POST_REDUCE};

enum { SLOT_SAVED = SLOT_GRAD + 1, N_SLOT };
static struct slot tiny_slots[N_SLOT];
static struct tape tiny_tape[] = {
    {TAPE_ALLOC, SLOT_OUT},  {TAPE_ALLOC, SLOT_SAVED}, {TAPE_OP, 0},
    {TAPE_ALLOC, SLOT_D_IN}, {TAPE_ALLOC, SLOT_GRAD},  {TAPE_OP, 0},
    {TAPE_FREE, SLOT_SAVED}, {TAPE_FREE, SLOT_D_OUT},  {TAPE_FREE, SLOT_IN},
};
static struct body tiny_bodies[] = {{.tape = 0, .n_tape = 3}, {.tape = 3, .n_tape = 6}};
static struct body_pair tiny_pair = {
    .kind = BODY_BLOCK, .forward = 0, .backward = 1, .n_slot = N_SLOT, .n_grad = 1};
static struct unit tiny_unit = {.name = "u"};
static struct segment tiny_segment = {.kind = BODY_BLOCK};
static uint32_t tiny_grad_member[] = {0};

static uint32_t buffer_of(const struct tiny *t, char letter)
{
    return t->buffers[letter - 'a'];
}

static void tiny_init(struct tiny *t)
{
    *t = (struct tiny){
        .plan = {.options = {.accum = 1}, .units = &tiny_unit, .n_unit = 1,
                 .segments = &tiny_segment, .n_segment = 1, .grad_member = tiny_grad_member},
        .bodies = {.tape = tiny_tape, .slots = tiny_slots, .bodies = tiny_bodies,
                   .pairs = &tiny_pair, .n_tape = 9, .n_slot = N_SLOT, .n_body = 2, .n_pair = 1},
    };
    arena_init(&t->arena);
    program_builder_init(&t->build, &t->plan, &t->layout, &t->bodies, &t->arena, &t->program);
    for (size_t i = 0; i < sizeof tiny_buffers / sizeof *tiny_buffers; i++)
        t->buffers[tiny_buffers[i].letter - 'a'] =
            build_buffer(&t->build, tiny_buffers[i].role, tiny_buffers[i].pool, 0, 512);
    build_frame(&t->build, 0, 0);
    struct frame *frame = &t->program.frames[0];
    frame->in = buffer_of(t, 'i');
    frame->out = buffer_of(t, 'o');
    frame->d_out = buffer_of(t, 'd');
    frame->d_in = buffer_of(t, 'e');
    frame->grads = buffer_of(t, 'p');
    t->program.n_event = 10;
    build_section_begin(&t->build, SECTION_STEADY);
}

static enum stream stream_of(const char *word, size_t n)
{
    for (int s = 0; s < STREAM_N; s++)
        if (strlen(stream_name(s)) == n && memcmp(stream_name(s), word, n) == 0)
            return (enum stream)s;
    tap_bail("a tiny program names no stream");
}

static void launch_word(struct tiny *t, const char *word, size_t n)
{
    const char *colon = memchr(word, ':', n);
    const enum stream stream = stream_of(word, (size_t)(colon - word));
    struct task *task = build_launch(&t->build, tiny_kinds[stream], stream, 0);

    for (const char *at = colon + 1; at < word + n; at += *at == ',') {
        if (*at == 'K') {
            task->comm = COMM_SHARD;
            at++;
        } else if (*at == 'F' || *at == 'B') {
            task->kind = *at == 'F' ? TASK_FORWARD : TASK_BACKWARD;
            task->body = *at == 'F' ? tiny_pair.forward : tiny_pair.backward;
            task->frame = 0;
            at++;
        } else {
            build_access(&t->build, buffer_of(t, at[1]),
                         *at == 'r' ? ACCESS_READ : *at == 'w' ? ACCESS_WRITE : ACCESS_UPDATE);
            at += 2;
        }
    }
}

static void add_instr(struct tiny *t, enum instr_op op, enum stream stream, uint32_t id)
{
    build_mark(&t->build, PHASE_FORWARD, false);
    t->program.instrs[t->program.n_instr - 1] =
        (struct instr){.op = (uint8_t)op, .stream = (uint8_t)stream, .id = id};
}

/* "C>AG" takes event 0; a digit on either side is an event of its own. */
static void order_word(struct tiny *t, const char *word, size_t n)
{
    const char *to = (const char *)memchr(word, '>', n) + 1;
    const size_t n_from = (size_t)(to - 1 - word), n_to = n - n_from - 1;
    const bool from_event = *word >= '0' && *word <= '9', to_event = *to >= '0' && *to <= '9';
    const uint32_t event = from_event ? (uint32_t)(*word - '0') : to_event ? (uint32_t)(*to - '0') : 0;

    if (!from_event)
        add_instr(t, INSTR_RECORD, stream_of(word, n_from), event);
    if (n_to == 4 && memcmp(to, "host", 4) == 0)
        add_instr(t, INSTR_HOST_WAIT, STREAM_C, event);
    else if (!to_event)
        add_instr(t, INSTR_WAIT, stream_of(to, n_to), event);
}

static void word(struct tiny *t, const char *text, size_t n)
{
    const uint16_t flags = n == 3 && text[2] == 't' ? INSTR_BY_BODY : 0;

    if (n == 4 && memcmp(text, "mark", 4) == 0)
        build_mark(&t->build, PHASE_FORWARD, false);
    else if (memchr(text, ':', n) != NULL)
        launch_word(t, text, n);
    else if (memchr(text, '>', n) != NULL)
        order_word(t, text, n);
    else if (text[1] == '+')
        build_alloc(&t->build, buffer_of(t, *text), flags);
    else
        build_free(&t->build, buffer_of(t, *text), flags);
}

static void tiny_read(struct tiny *t, const char *text)
{
    tiny_init(t);
    for (; *text != '\0'; text += *text == ' ') {
        const size_t n = strcspn(text, " ");
        word(t, text, n);
        text += n;
    }
    build_section_end(&t->build);
}

/* Tasks by number, in the order of the bad program; -1: none. The buffer by letter, '-': none. */
static const struct tiny_case {
    const char *rule;
    const char *good, *bad;
    enum fault_kind kind;
    int first, second;
    char buffer;
    const char *text; /* of the bad one, or NULL */
} tiny_cases[] = {
    {"a read follows the write",
     "g+ AGI:wg AGI>AG AG:rg AG>AGI g-", "g+ AGI:wg AG:rg AG>AGI g-",
     FAULT_RACE, 0, 1, 'g',
     "section 'steady': race on buffer 'gathered u': 'all_gather u' does not follow 'copy_in u'"},
    {"a write follows the reads before it",
     "a+ C:wa C>RS RS:ra RS>C C:wa a-", "a+ C:wa C>RS RS:ra C:wa a-", FAULT_RACE, 1, 2, 'a', NULL},
    {"a write follows the write before it",
     "s+ RS:ws RS>C C:us s- C>RS", "s+ RS:ws C:ws s- C>RS", FAULT_RACE, 0, 1, 's', NULL},
    {"a write follows each of several reads",
     "a+ C:wa C>RS C>AG RS:ra AG:ra RS>C AG>C C:wa a-",
     "a+ C:wa C>RS C>AG RS:ra AG:ra RS>C C:wa a-", FAULT_RACE, 2, 3, 'a', NULL},
    {"order passes through a third stream",
     "g+ AGI:wg AGI>AG AG>C C:rg C>AGI g-", "g+ AGI:wg AG>C AGI>AG C:rg C>AGI g-",
     FAULT_RACE, 0, 1, 'g', NULL},
    {"the order in which the host launches is none",
     "a+ C:wa C>RS C:ra RS:ra RS>C a-", "a+ C:wa C:ra RS:ra RS>C a-", FAULT_RACE, 0, 2, 'a', NULL},
    {"what the host has waited for comes before all it issues then",
     "a+ C:wa C>host RS:ra RS>C a-", "a+ C:wa C>AG RS:ra RS>C a-", FAULT_RACE, 0, 1, 'a', NULL},
    {"a communicator orders its collectives across streams",
     "g+ AG:K,wg RS:K,rg RS>AG g-", "g+ AG:K,wg RS:rg RS>AG g-", FAULT_RACE, 0, 1, 'g', NULL},
    {"what is read was written", "a+ C:wa C:ra a-", "a+ C:ra a-", FAULT_UNWRITTEN, -1, 0, 'a',
     "section 'steady': buffer 'full u' is read by 'copy_out u' and nothing wrote it"},
    {"an update reads", "a+ C:wa C:ua a-", "a+ C:ua a-", FAULT_UNWRITTEN, -1, 0, 'a', NULL},
    {"a buffer is not used before its ALLOC", "a+ C:wa a-", "C:wa a+ a-", FAULT_DEAD, -1, 0, 'a',
     "section 'steady': buffer 'full u' is used by 'copy_out u' and not allocated"},
    {"a buffer is not used after its FREE", "a+ C:wa C:ra a-", "a+ C:wa a- C:ra",
     FAULT_DEAD, -1, 1, 'a', NULL},
    {"a second life holds nothing of the first", "a+ C:wa a- a+ C:wa C:ra a-",
     "a+ C:wa a- a+ C:ra a-", FAULT_UNWRITTEN, -1, 1, 'a', NULL},
    {"memory is written again after its last use",
     "a+ C:wa C>AG AG:ra a- b+ AG>C C:wb b-", "a+ C:wa C>AG AG:ra a- b+ C:wb b- AG>C",
     FAULT_REUSE, 1, 2, 'a',
     "section 'steady': memory of 'full u', freed, may be written by 'copy_out u' while "
     "'all_gather u' uses it"},
    {"memory of one pool is not given to another",
     "a+ C:wa C>AG AG:ra a- s+ C:ws s- AG>C", "a+ C:wa C>AG AG:ra a- b+ C:wb b- AG>C",
     FAULT_REUSE, 1, 2, 'a', NULL},
    {"what was allocated before the FREE is not given its memory",
     "b+ a+ C:wa C>AG AG:ra a- C:wb b- AG>C", "a+ C:wa C>AG AG:ra a- b+ C:wb b- AG>C",
     FAULT_REUSE, 1, 2, 'a', NULL},
    {"memory may come back after many frees",
     "a+ c+ C:wa C>AG AG:ra a- C:wc c- b+ AG>C C:wb b-",
     "a+ c+ C:wa C>AG AG:ra a- C:wc c- b+ C:wb b- AG>C", FAULT_REUSE, 1, 3, 'a', NULL},
    {"a step may follow a step",
     "g+ AGI:wg AGI>C C:rg g- C>AGI", "g+ AGI:wg AGI>C C:rg g-", FAULT_REUSE, 1, 0, 'g', NULL},
    {"a wait follows its record", "a+ RS>1 1>C C:wa a-", "a+ 1>C C:wa a- RS>1",
     FAULT_EVENT, -1, 0, '1',
     "section 'steady': wait for event 1 that nothing recorded, before 'copy_out u'"},
    {"so does the host's", "a+ RS>1 1>host AG:wa AG>C a-", "a+ 1>host AG:wa AG>C a- RS>1",
     FAULT_EVENT, -1, 0, '1', NULL},
    {"one ALLOC a life", "a+ a-", "a+ a+ a-", FAULT_LIFETIME, -1, -1, 'a',
     "section 'steady': buffer 'full u' is allocated twice"},
    {"one FREE a life", "a+ a-", "a+ a- a-", FAULT_LIFETIME, -1, -1, 'a', NULL},
    {"a step leaves nothing behind", "a+ C:wa a-", "a+ C:wa", FAULT_LIFETIME, -1, -1, 'a',
     "section 'steady': buffer 'full u' is alive at the end of its section"},

#define BEFORE "i+ d+ C:wi,wd "
#define FORWARD "o+t C:F,ri,wo "
#define BACKWARD "e+t p+t C:B,rd,we,wp d-t i-t "
#define AFTER "o- e- p-"
    {"an allocation on the tape has an ALLOC by body",
     BEFORE FORWARD BACKWARD AFTER, BEFORE "o+ C:F,ri,wo " BACKWARD AFTER,
     FAULT_BODY, -1, 1, 'o',
     "section 'steady': buffer 'hidden u' is allocated on the tape, by no instruction beside it: "
     "'forward u block0'"},
    {"an ALLOC by body is on the tape",
     BEFORE FORWARD BACKWARD AFTER " c+ c-", BEFORE "c+t " FORWARD BACKWARD AFTER " c-",
     FAULT_BODY, -1, 1, 'c', NULL},
    {"an ALLOC by body has a body beside it",
     BEFORE FORWARD BACKWARD AFTER " c+ C:wc c-", BEFORE FORWARD BACKWARD AFTER " c+t C:wc c-",
     FAULT_BODY, -1, -1, 'c', NULL},
    {"a gradient is born on a tape",
     BEFORE FORWARD BACKWARD AFTER, BEFORE FORWARD "p+ e+t C:B,rd,we,wp d-t i-t " AFTER,
     FAULT_BODY, -1, 2, 'p', NULL},
    {"a free on the tape has a FREE by body",
     BEFORE FORWARD BACKWARD AFTER, BEFORE FORWARD "e+t p+t C:B,rd,we,wp d-t i- " AFTER,
     FAULT_BODY, -1, 2, 'i', NULL},
    {"a FREE by body is on the tape",
     BEFORE FORWARD BACKWARD AFTER, BEFORE FORWARD BACKWARD "o-t e- p-", FAULT_BODY, -1, -1, 'o',
     NULL},
    {"nothing but marks stands between ALLOC by body and body",
     BEFORE "o+t mark C:F,ri,wo " BACKWARD AFTER, BEFORE "o+t C>1 C:F,ri,wo " BACKWARD AFTER,
     FAULT_BODY, -1, -1, 'o', NULL},
    {"nothing but marks stands between body and FREE by body",
     BEFORE FORWARD "e+t p+t C:B,rd,we,wp d-t mark i-t " AFTER,
     BEFORE FORWARD "e+t p+t C:B,rd,we,wp d-t C>1 i-t " AFTER, FAULT_BODY, -1, 2, 'i', NULL},
    {"a frame that goes forward goes backward",
     BEFORE FORWARD BACKWARD AFTER, BEFORE FORWARD "d- i- o-", FAULT_BODY, 1, -1, '-',
     "section 'steady': its frame never goes backward: 'forward u block0'"},
    {"a frame goes forward before it goes backward",
     BEFORE FORWARD BACKWARD AFTER, BEFORE "e+t p+t C:B,rd,we,wp d-t i-t e- p-",
     FAULT_BODY, -1, 1, '-', NULL},
    {"a frame goes forward once",
     BEFORE FORWARD BACKWARD AFTER, BEFORE FORWARD "o- " FORWARD BACKWARD AFTER,
     FAULT_BODY, -1, 2, '-', NULL},
    {"a backward follows its forward on the device",
     BEFORE FORWARD "C>AR e+t p+t AR:B,rd,we,wp d-t i-t AR>C " AFTER,
     BEFORE "C>AR " FORWARD "e+t p+t AR:B,rd,we,wp d-t i-t AR>C " AFTER, FAULT_BODY, 1, 2, '-', NULL},
    {"a body writes freed memory of its pool",
     "a+ C:wa C>AG AG:ra a- AG>C " BEFORE FORWARD BACKWARD AFTER,
     "i+ d+ C:wi,wd a+ C:wa C>AG AG:ra a- " FORWARD "AG>C " BACKWARD AFTER,
     FAULT_REUSE, 2, 3, 'a', NULL},
    {"a body writes the memory that its tape frees",
     BEFORE "C>AG AG:rd AG>C " FORWARD BACKWARD AFTER,
     BEFORE "C>AG AG:rd " FORWARD BACKWARD "AG>C " AFTER, FAULT_REUSE, 1, 3, 'd', NULL},
    {"memory of a body's slots is written after the body",
     BEFORE FORWARD BACKWARD AFTER " c+ C>AG AG:wc c- AG>C",
     BEFORE FORWARD BACKWARD AFTER " C>1 c+ AG:wc c- AG>C", FAULT_REUSE, 2, 3, 'd', NULL},
    {"that of slots that nobody else sees too",
     BEFORE "C>1 " FORWARD "c+ C>AG AG:wc AG>C c- " BACKWARD AFTER,
     BEFORE "C>1 " FORWARD "c+ 1>AG AG:wc AG>C c- " BACKWARD AFTER, FAULT_REUSE, 1, 2, '-',
     "section 'steady': memory of 'a slot of its body', freed, may be written by 'all_gather u' "
     "while 'forward u block0' uses it"},
};

static uint32_t or_none(int task)
{
    return task < 0 ? NONE : (uint32_t)task;
}

static bool closure_is_safe(const struct program *program)
{
    struct closure closure;
    closure_init(&closure, program);
    const bool safe = closure_lost(&closure, NONE) == 0 && closure.n_broken == 0;
    closure_release(&closure);
    return safe;
}

static void check_good(const struct tiny_case *c)
{
    struct tiny t;
    struct fault fault = {.kind = FAULT_NONE};
    struct err err = {0};

    tiny_read(&t, c->good);
    const enum status status = verify_program(&t.program, &t.arena, &fault, &err);
    if (!ok(status == STATUS_OK && closure_is_safe(&t.program), "%s: kept", c->rule))
        tap_note("%s", err.text);
    arena_release(&t.arena);
}

static void check_bad(const struct tiny_case *c)
{
    struct tiny t;
    struct fault fault = {.kind = FAULT_NONE};
    struct err err = {0};

    tiny_read(&t, c->bad);
    const uint32_t buffer = c->buffer == '-'   ? NO_BUFFER
                            : c->buffer <= '9' ? (uint32_t)(c->buffer - '0')
                                               : buffer_of(&t, c->buffer);
    const enum status status = verify_program(&t.program, &t.arena, &fault, &err);
    if (!ok(status == STATUS_RUN && fault.kind == c->kind && fault.first == or_none(c->first) &&
                fault.second == or_none(c->second) && fault.buffer == buffer,
            "%s: its breach names tasks and buffer", c->rule))
        tap_note("kind %d, first %d, second %d, buffer %d: %s", (int)fault.kind, (int)fault.first,
                 (int)fault.second, (int)fault.buffer, err.text);
    ok(!closure_is_safe(&t.program), "%s: the closure sees the breach", c->rule);
    if (c->text != NULL)
        is_str(err.text, c->text, "%s: the line about it", c->rule);
    arena_release(&t.arena);
}

/* ---- the scheduler's programs ---- */

static const struct dims small = {.layers = 2, .hidden = 32, .intermediate = 64, .heads = 4,
                                  .kv_heads = 2, .head_dim = 8, .vocab = 96, .default_seq = 16};

static struct plan_options small_options(const char *units)
{
    struct plan_options options = plan_options_default();
    options.units = units;
    options.gpus = 8;
    options.nodes = 1;
    options.workspace_bytes = 1 << 20;
    return options;
}

/* The same program with other instructions; tasks, buffers and frames are shared. */
struct variant {
    struct program program;
    struct instr *instrs;
};

static void variant_init(struct variant *v, const struct program *program)
{
    *v = (struct variant){.program = *program};
    v->instrs = malloc(program->n_instr * sizeof *v->instrs);
    if (v->instrs == NULL)
        abort();
    memcpy(v->instrs, program->instrs, program->n_instr * sizeof *v->instrs);
    v->program.instrs = v->instrs;
}

static void variant_remove(struct variant *v, uint32_t instr)
{
    struct program *p = &v->program;

    memmove(v->instrs + instr, v->instrs + instr + 1, (p->n_instr - instr - 1) * sizeof *v->instrs);
    p->n_instr--;
    for (int s = 0; s < SECTION_N; s++) {
        p->sections[s].begin -= p->sections[s].begin > instr;
        p->sections[s].end -= p->sections[s].end > instr;
    }
}

static void variant_move(struct variant *v, uint32_t from, uint32_t to)
{
    const struct instr moved = v->instrs[from];

    if (from < to)
        memmove(v->instrs + from, v->instrs + from + 1, (to - from) * sizeof moved);
    else
        memmove(v->instrs + to + 1, v->instrs + to, (from - to) * sizeof moved);
    v->instrs[to] = moved;
}

struct wait_counts {
    uint32_t n_wait, n_essential, n_steady, n_steady_essential; /* WAITs taken out */
    uint32_t n_disagree, n_misnamed, n_pair;
};

/* One WAIT out: does verify fail exactly where the closure loses a pair, and name such a pair? */
static void remove_wait(struct made *made, struct closure *closure, struct arena *scratch,
                        uint32_t instr, struct wait_counts *counts)
{
    const struct section *steady = &made->program.sections[SECTION_STEADY];
    const uint32_t n_lost = closure_lost(closure, instr);
    struct variant variant;
    struct fault fault = {.kind = FAULT_NONE};

    variant_init(&variant, &made->program);
    variant_remove(&variant, instr);
    arena_reset(scratch);
    const bool fails = verify_program(&variant.program, scratch, &fault, NULL) != STATUS_OK;
    free(variant.instrs);
    counts->n_wait++;
    counts->n_essential += n_lost > 0;
    counts->n_steady += instr >= steady->begin;
    counts->n_steady_essential += instr >= steady->begin && n_lost > 0;
    counts->n_disagree += fails != (n_lost > 0);
    if (fails && !closure_is_lost(closure, fault.first, fault.second, fault.buffer))
        counts->n_misnamed++;
}

static struct wait_counts remove_waits(const struct plan_options *options)
{
    struct made made;
    struct closure closure;
    struct arena scratch;
    struct fault fault;
    struct err err = {0};
    struct wait_counts counts = {0};

    make_init_dims(&made, &small, options);
    closure_init(&closure, &made.program);
    arena_init(&scratch);
    if (verify_program(&made.program, &scratch, &fault, &err) != STATUS_OK)
        tap_bail(err.text);
    if (closure_lost(&closure, NONE) > 0 || closure.n_broken > 0)
        tap_bail("the closure finds a fault in a program of the scheduler");
    for (uint32_t i = 0; i < made.program.n_instr; i++)
        if (made.program.instrs[i].op == INSTR_WAIT)
            remove_wait(&made, &closure, &scratch, i, &counts);
    counts.n_pair = closure.n_pair;
    closure_release(&closure);
    arena_release(&scratch);
    make_release(&made);
    return counts;
}

static void check_waits(const char *units, uint64_t accum, enum reshard reshard)
{
    struct plan_options options = small_options(units);
    struct wait_counts all = {0};

    options.accum = accum;
    options.reshard = reshard;
    for (int ac = 0; ac < AC_N; ac++) {
        for (uint64_t prefetch = 0; prefetch <= 2; prefetch++) {
            options.ac = (enum checkpointing)ac;
            options.prefetch = options.prefetch_backward = prefetch;
            const struct wait_counts counts = remove_waits(&options);
            all.n_wait += counts.n_wait;
            all.n_essential += counts.n_essential;
            all.n_disagree += counts.n_disagree;
            all.n_misnamed += counts.n_misnamed;
            all.n_pair += counts.n_pair;
        }
    }
    is_int(all.n_disagree, 0, "%s, accum %d, reshard %d: a WAIT taken out fails where a pair is lost",
           units, (int)accum, (int)reshard);
    is_int(all.n_misnamed, 0, "%s, accum %d, reshard %d: and the lost pair is named", units,
           (int)accum, (int)reshard);
    ok(all.n_essential > 0 && all.n_essential < all.n_wait, "some WAITs are essential, some not");
    tap_note("%u WAITs, %u essential; %u pairs", all.n_wait, all.n_essential, all.n_pair);
}

/*
 * A 2-layer llama under "block" units: the root (embedding, norm, head; it stays gathered from forward
 * to backward), block 0 and block 1. A steady step has 29 WAITs. ">" reads "comes before", co is a
 * copy-out, rs a reduce-scatter, b0 and b1 the blocks; all in the order of the host.
 *
 *   root begin     AGI waits C    optimizer > copy_in(root), which reads the shards       essential 1
 *                  AG waits C     all_gather(root) follows copy_in(root)                          0
 *   all-gathers    AG waits AGI   copy_in > all_gather of root, b0, b1; b1, b0            essential 5
 *                  C waits AG     all_gather > copy-out of the same five                  essential 5
 *   held buffers   AGI waits C    co(root) > copy_in(b1), which may get its memory        essential 1
 *   of forward                    co(b0): no copy-in follows before that of the next              0
 *                                 co(b1) > copy_in(b1) of backward (and so co(b0) too)    essential 1
 *   freed ones     AGI waits C    co(b1) > copy_in(b0)                                    essential 1
 *   of backward                   co(b0): next is copy_in(root), behind the root begin            0
 *                  AG waits C     five times: it writes only behind a copy-in                     0
 *   reductions     RS waits C     pack > reduce-scatter of b1, b0, root                   essential 3
 *                  C waits RS     rs(b1) > pack(b0), which may get the input's memory     essential 1
 *                                 rs(b0) > pack(root)                                     essential 1
 *                  C waits RS     rs(root) > optimizer, twice: for the gradients, and for
 *                                 the input that is freed; each makes up for the other            0
 */
static void check_by_hand(void)
{
    const struct plan_options options = small_options("block");
    const struct wait_counts counts = remove_waits(&options);

    is_int(counts.n_steady, 29, "2 layers, block units: a steady step has 29 WAITs");
    is_int(counts.n_steady_essential, 19, "of which 19 are essential, by hand and by closure");
    is_int(counts.n_disagree, 0, "and by the verifier");
}

/* ---- random changes ---- */

/* Where an instruction may go: within its section. */
static uint32_t somewhere(const struct program *program, uint32_t instr, uint64_t *state,
                          bool earlier, bool later)
{
    const struct section *section = program->sections;
    while (instr < section->begin || instr >= section->end)
        section++;
    const uint32_t low = earlier ? section->begin : instr;
    const uint32_t high = later ? section->end : instr + 1;
    return low + (uint32_t)tap_below(state, high - low);
}

static uint32_t any_instr(const struct program *program, uint64_t *state, enum instr_op op)
{
    uint32_t instr;
    do
        instr = (uint32_t)tap_below(state, program->n_instr);
    while (op != INSTR_N && program->instrs[instr].op != op);
    return instr;
}

/* What is done to one instruction, chosen among those of a kind. */
static const struct change {
    const char *name;
    enum instr_op op; /* INSTR_N: any */
    bool removed, earlier, later;
} changes[] = {
    {"any one removed", INSTR_N, true, false, false},
    {"a launch removed", INSTR_LAUNCH, true, false, false},
    {"a record removed", INSTR_RECORD, true, false, false},
    {"an alloc removed", INSTR_ALLOC, true, false, false},
    {"a free moved earlier", INSTR_FREE, false, true, false},
    {"a free moved later", INSTR_FREE, false, false, true},
    {"an alloc moved earlier", INSTR_ALLOC, false, true, false},
    {"a launch moved", INSTR_LAUNCH, false, true, true},
    {"a wait moved later", INSTR_WAIT, false, false, true},
    {"a record moved earlier", INSTR_RECORD, false, true, false},
    {"any one moved", INSTR_N, false, true, true},
};
enum { N_CHANGE = sizeof changes / sizeof *changes, ROUNDS = 60 };

/* A little way only, so that not every change breaks something. */
static void change_instr(struct variant *v, const struct change *change, uint64_t *state)
{
    const uint32_t from = any_instr(&v->program, state, change->op);
    uint32_t to = somewhere(&v->program, from, state, change->earlier, change->later);
    const uint32_t reach = 1 + (uint32_t)tap_below(state, 8);

    if (change->removed) {
        variant_remove(v, from);
        return;
    }
    if (to > from + reach)
        to = from + reach;
    if (from > to + reach)
        to = from - reach;
    variant_move(v, from, to);
}

static void check_changes(const struct change *change, uint64_t seed)
{
    uint64_t state = seed + (uint64_t)(change - changes);
    uint32_t n_safe = 0, n_disagree = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct dims dims = small;
        struct plan_options options = make_random_options(&state, &dims);
        struct made made;
        struct variant variant;
        struct fault fault;
        dims.layers = 1 + tap_below(&state, 2);
        make_init_dims(&made, &dims, &options);
        variant_init(&variant, &made.program);
        change_instr(&variant, change, &state);
        const bool safe =
            verify_program(&variant.program, &made.arena, &fault, NULL) == STATUS_OK;
        n_safe += safe;
        if (safe != closure_is_safe(&variant.program))
            n_disagree++;
        free(variant.instrs);
        make_release(&made);
    }
    is_int(n_disagree, 0, "%s: verifier and closure agree", change->name);
    tap_note("%u of %d were still safe", n_safe, (int)ROUNDS);
}

int main(void)
{
    static const enum reshard variants[] = {RESHARD_AUTO, RESHARD_YES, RESHARD_NO,
                                            RESHARD_ALL_BUT_LAST};
    for (size_t i = 0; i < sizeof tiny_cases / sizeof *tiny_cases; i++) {
        check_good(&tiny_cases[i]);
        check_bad(&tiny_cases[i]);
    }
    check_by_hand();
    for (size_t r = 0; r < sizeof variants / sizeof *variants; r++) {
        check_waits("block", 1, variants[r]);
        check_waits("torchtitan", 1, variants[r]);
        check_waits("block", 2, variants[r]);
        check_waits("torchtitan", 2, variants[r]);
    }
    const uint64_t seed = tap_seed(20260301);
    for (size_t i = 0; i < N_CHANGE; i++)
        check_changes(&changes[i], seed);
    return tap_done();
}
