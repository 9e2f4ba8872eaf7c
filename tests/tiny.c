/*
 * From words to a program; see tiny.h.
 */
#include "tests/tiny.h"

#include <string.h>

#include "src/body.h"
#include "src/plan.h"
#include "tests/tap.h"

static const struct {
    char letter;
    uint8_t role, pool;
} tiny_buffers[] = {
    {'a', ROLE_FULL, STREAM_C},      {'b', ROLE_REDUCE_IN, STREAM_C}, {'c', ROLE_LOGITS, STREAM_C},
    {'g', ROLE_GATHERED, STREAM_AGI}, {'s', ROLE_GRAD_SHARD, STREAM_RS},
    {'i', ROLE_INPUT, STREAM_C},     {'o', ROLE_HIDDEN, STREAM_C},
    {'d', ROLE_D_LOGITS, STREAM_C},  {'e', ROLE_D_HIDDEN, STREAM_C},  {'p', ROLE_GRADS, STREAM_C},
    {'q', ROLE_GRADS, STREAM_C},     {'z', ROLE_SHARD, STREAM_C},
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
static struct segment tiny_segments[] = {{.kind = BODY_BLOCK, .grad = 0},
                                         {.kind = BODY_BLOCK, .grad = 1, .layer = 1}};
static struct grad_place tiny_grad_places[] = {{0, 0}, {0, 1}};
enum { N_FRAME = 4 };

uint32_t tiny_buffer(const struct tiny *t, char letter)
{
    return t->buffers[letter - 'a'];
}

static void start(struct tiny *t)
{
    *t = (struct tiny){
        .plan = {.options = {.accum = 1}, .units = &tiny_unit, .n_unit = 1,
                 .segments = tiny_segments, .n_segment = 2, .grad_places = tiny_grad_places},
        .bodies = {.tape = tiny_tape, .slots = tiny_slots, .bodies = tiny_bodies,
                   .pairs = &tiny_pair, .n_tape = 9, .n_slot = N_SLOT, .n_body = 2, .n_pair = 1},
    };
    arena_init(&t->arena);
    program_builder_init(&t->build, &t->plan, &t->layout, &t->bodies, &t->arena, &t->program);
    for (size_t i = 0; i < sizeof tiny_buffers / sizeof *tiny_buffers; i++)
        t->buffers[tiny_buffers[i].letter - 'a'] = build_group(
            &t->build, tiny_buffers[i].role, tiny_buffers[i].pool, 0, NO_MEMBER,
            tiny_buffers[i].letter == 'q' ? 2 : 1, 512);
    t->program.buffers[tiny_buffer(t, 'z')].scope = SCOPE_RUN;
    for (uint32_t f = 0; f < N_FRAME; f++) {
        build_frame(&t->build, 0, f == 2 ? 1 : 0, 1);
        t->program.frames[f].in = tiny_buffer(t, 'i');
        t->program.frames[f].out = tiny_buffer(t, 'o');
        t->program.frames[f].d_out = tiny_buffer(t, 'd');
        t->program.frames[f].d_in = tiny_buffer(t, 'e');
        t->program.frame_grads[f] = tiny_buffer(t, f == 0 ? 'p' : 'q');
    }
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

/* "F", "B1" and the like; returns what follows it. */
static const char *body_word(struct task *task, const char *at)
{
    const bool forward = *at != 'B', own = *at != 'X';

    task->kind = forward ? TASK_FORWARD : TASK_BACKWARD;
    task->body = forward == own ? tiny_pair.forward : tiny_pair.backward;
    task->frame = at[1] >= '1' && at[1] < '0' + N_FRAME ? (uint32_t)(at[1] - '0') : 0;
    return at + (task->frame > 0 ? 2 : 1);
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
        } else if (strchr("FBX", *at) != NULL) {
            at = body_word(task, at);
        } else {
            build_access(&t->build, tiny_buffer(t, at[1]),
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
    const char *digit = from_event ? word : to_event ? to : "0";
    const uint32_t event = (uint32_t)(*digit - '0');

    if (!from_event)
        add_instr(t, INSTR_RECORD, stream_of(word, n_from), event);
    if (n_to == 4 && memcmp(to, "host", 4) == 0)
        add_instr(t, INSTR_HOST_WAIT, STREAM_C, event);
    else if (!to_event)
        add_instr(t, INSTR_WAIT, stream_of(to, n_to), event);
}

/* True where the word was a section's name. */
static bool section_word(struct tiny *t, const char *word, size_t n)
{
    for (int s = 0; s < SECTION_N; s++)
        if (strlen(section_name(s)) == n && memcmp(section_name(s), word, n) == 0) {
            build_section_end(&t->build);
            build_section_begin(&t->build, (enum section_id)s);
            return true;
        }
    return false;
}

static void any_word(struct tiny *t, const char *text, size_t n)
{
    const uint16_t flags = n == 3 && text[2] == 't' ? INSTR_BY_BODY : 0;

    if (n == 4 && memcmp(text, "mark", 4) == 0)
        build_mark(&t->build, PHASE_FORWARD, false);
    else if (memchr(text, ':', n) != NULL)
        launch_word(t, text, n);
    else if (memchr(text, '>', n) != NULL)
        order_word(t, text, n);
    else if (text[1] == '@')
        build_record_stream(&t->build, tiny_buffer(t, *text), stream_of(text + 2, n - 2));
    else if (text[1] == '+')
        build_alloc(&t->build, tiny_buffer(t, *text), flags);
    else if (text[1] == '-')
        build_free(&t->build, tiny_buffer(t, *text), flags);
    else
        tap_bail("a tiny program has a word that means nothing");
}

void tiny_init(struct tiny *t, const char *text)
{
    start(t);
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        const size_t n = strcspn(text, " ");
        if (!section_word(t, text, n))
            any_word(t, text, n);
        text += n;
    }
    build_section_end(&t->build);
}

void tiny_release(struct tiny *t)
{
    arena_release(&t->arena);
}
