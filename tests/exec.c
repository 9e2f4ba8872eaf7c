/*
 * The executor loop: which calls a backend gets, in which order, and that it is closed once
 * whatever happens. A program of a few instructions, built by hand, stands for all.
 */
#include "src/exec.h"

#include <string.h>

#include "src/program_builder.h"
#include "tests/fake_backend.h"
#include "tests/tap.h"

/*
 * One module: its forward allocates its output and a temporary (slot 4), two operators use them.
 * Tape: + out, operator 0, + temporary, operator 1, - temporary.
 */
static struct op ops[2] = {{.kind = OP_MM}, {.kind = OP_ADD}};
static struct tape tape[] = {
    {TAPE_ALLOC, SLOT_OUT}, {TAPE_OP, 0}, {TAPE_ALLOC, 4}, {TAPE_OP, 1}, {TAPE_FREE, 4},
};
static struct slot slots[5] = {[SLOT_OUT] = {.bytes = 256}, [4] = {.bytes = 512}};
static struct body body = {.n_op = 2, .n_tape = sizeof tape / sizeof *tape};
static struct body_pair pair = {.n_slot = 5};
static struct body_table bodies = {
    .ops = ops, .tape = tape, .slots = slots, .bodies = &body, .pairs = &pair,
    .n_op = 2, .n_tape = sizeof tape / sizeof *tape, .n_slot = 5, .n_body = 1, .n_pair = 1,
};
static struct unit unit = {.name = "u"};
static struct segment segment = {.kind = BODY_HEAD};
static struct plan plan = {
    .options = {.accum = 1}, .world = 2, .shard_ranks = 2, .units = &unit, .segments = &segment,
    .n_unit = 1, .n_segment = 1,
};
static struct layout layout;

/* Init: task 0. First: tasks 1 (gather) and 2 (forward). Steady: task 3. */
static void build(struct arena *arena, struct program *program)
{
    struct program_builder build;
    program_builder_init(&build, &plan, &layout, &bodies, arena, program);

    build_section_begin(&build, SECTION_INIT);
    const uint32_t shard = build_buffer(&build, ROLE_SHARD, STREAM_C, 0, 1024);
    build_alloc(&build, shard, 0);
    build_launch(&build, TASK_INIT, STREAM_C, 0);
    build_section_end(&build);

    build_section_begin(&build, SECTION_FIRST);
    const uint64_t sizes[] = {1024, 2048};
    const uint32_t members = build_members(&build, sizes, 2);
    const uint32_t full = build_group(&build, ROLE_FULL, STREAM_C, 0, members, 2, 3072);
    const uint32_t out = build_buffer(&build, ROLE_HIDDEN, STREAM_C, NO_UNIT, 256);
    build_mark(&build, PHASE_FORWARD, false);                     /* instruction 2, event 0 */
    build_alloc(&build, full, 0);                                 /* 3, events 1 and 2 */
    build_launch(&build, TASK_ALL_GATHER, STREAM_AG, 0);          /* 4, event 3 */
    const uint32_t gathered = build_record(&build, STREAM_AG);    /* 5, event 4 */
    build_wait(&build, STREAM_C, gathered);                       /* 6, event 5 */
    build_alloc(&build, out, INSTR_BY_BODY);                      /* 7, none: the tape does it */
    struct task *task = build_launch(&build, TASK_FORWARD, STREAM_C, 0); /* 8, events 6 … 10 */
    task->body = 0;
    task->frame = build_frame(&build, 0, 0, 0);
    program->frames[task->frame].out = out;
    build_record_stream(&build, full, STREAM_AG);                 /* 9, events 11 and 12 */
    build_free(&build, full, 0);                                  /* 10, events 13 and 14 */
    build_mark(&build, PHASE_FORWARD, true);                      /* 11, event 15 */
    build_section_end(&build);

    build_section_begin(&build, SECTION_STEADY);
    build_launch(&build, TASK_OPTIMIZER, STREAM_C, NO_UNIT);      /* 12, event 0 */
    const uint32_t done = build_record(&build, STREAM_C);         /* 13, event 1 */
    build_host_wait(&build, done);                                /* 14, event 2 */
    build_section_end(&build);
}

/*
 * Segment 0 before init's ALLOC; 1 before the second member of the group; 1 released and 2 reserved
 * before the temporary in the middle of the body; each steady step maps before its optimizer.
 */
static struct placed_op init_ops[] = {{{.act = SEGMENT_RESERVE, .segment = 0}, 0, 0}};
static struct placed_op first_ops[] = {
    {{.act = SEGMENT_RESERVE, .segment = 1}, 2, 3},
    {{.act = SEGMENT_RELEASE, .segment = 1}, 8, 8},
    {{.act = SEGMENT_RESERVE, .segment = 2}, 8, 8},
};
static struct placed_op steady_ops[] = {{{.act = SEGMENT_MAP, .segment = 2}, 0, 12}};
static struct placement placement = {
    .init = {.ops = init_ops, .n_op = 1},
    .steps = {{.ops = first_ops, .n_op = 3}, {.ops = steady_ops, .n_op = 1}},
    .n_step = 2,
    .period = 1,
};

#define STEADY(step) "launch " step " 3\nrecord C 1\nhost_wait 1\nstep_end " step "\n"
#define STEADY_PLACED(step) "segment map 2\n" STEADY(step)

static const char *const unit_log =
    "open\nlaunch 0 0\nstep_end 0\n"
    "mark forward begin\nlaunch 1 1\nrecord AG 0\nwait C 0\nlaunch 1 2\nmark forward end\n"
    "step_end 1\n" STEADY("2") STEADY("3") "finish\nclose\n";

static const char *const unit_placed_log =
    "open\nsegment reserve 0\nlaunch 0 0\nstep_end 0\n"
    "mark forward begin\nsegment reserve 1\nlaunch 1 1\nrecord AG 0\nwait C 0\n"
    "segment release 1\nsegment reserve 2\nlaunch 1 2\nmark forward end\nstep_end 1\n"
    STEADY_PLACED("2") STEADY_PLACED("3") "finish\nclose\n";

static const char *const expanded_placed_log =
    "open\nsegment reserve 0\nlaunch 0 0\nstep_end 0\n"
    "mark forward begin\nsegment reserve 1\nlaunch 1 1\nrecord AG 0\nwait C 0\n"
    "launch 1 2 0\nsegment release 1\nsegment reserve 2\nlaunch 1 2 1\nmark forward end\n"
    "step_end 1\n" STEADY_PLACED("2") STEADY_PLACED("3") "finish\nclose\n";

/* Buffers: 0 the shard, 1 the group; 2 is allocated by the body. */
static const char *const memory_log =
    "open\nalloc 0\nlaunch 0 0\nstep_end 0\n"
    "mark forward begin\nalloc 1\nlaunch 1 1\nrecord AG 0\nwait C 0\nlaunch 1 2\n"
    "record_stream AG 1\nfree 1\nmark forward end\nstep_end 1\n" STEADY("2") "finish\nclose\n";

/* Ids: 0 the shard, 1 and 2 the group's members, 3 the output; the frame's slots begin at 4, so that
   its temporary is 8. RECORD_STREAM is neither birth nor death. */
static const char *const touch_log =
    "open\nborn 0 1024 C\nlaunch 0 0\n"
    "born 1 1024 C\nborn 2 2048 C\nlaunch 1 1\nrecord AG 0\nwait C 0\n"
    "born 3 256 C\nlaunch 1 2 0\nborn 8 512 C\nlaunch 1 2 1\ndead 8 512 C\n"
    "dead 1 1024 C\ndead 2 2048 C\n"
    "launch 2 3\nrecord C 1\nhost_wait 1\nfinish\nclose\n";

static const char *const minimal_log =
    "open\nlaunch 0 0\nlaunch 1 1\nrecord AG 0\nwait C 0\nlaunch 1 2\n"
    "launch 2 3\nrecord C 1\nhost_wait 1\nfinish\nclose\n";

static const struct {
    const char *name;
    enum exec_level level;
    const struct placement *placement;
    const struct backend_ops *backend;
    uint32_t steps;
    const char *const *log;
} cases[] = {
    {"unit level", EXEC_UNIT, NULL, &fake_backend, 3, &unit_log},
    {"unit level, placed", EXEC_UNIT, &placement, &fake_backend, 3, &unit_placed_log},
    {"expanded level, placed", EXEC_EXPANDED, &placement, &fake_backend, 3, &expanded_placed_log},
    {"a backend without optional calls", EXEC_UNIT, &placement, &fake_backend_minimal, 2,
     &minimal_log},
    {"a backend that watches memory", EXEC_EXPANDED, NULL, &fake_backend_touch, 2, &touch_log},
    {"a backend that has the memory", EXEC_UNIT, NULL, &fake_backend_memory, 2, &memory_log},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void test_order(const struct program *program)
{
    for (uint32_t i = 0; i < N_CASES; i++) {
        struct fake_backend fake;
        struct err err = {0};
        fake_backend_init(&fake, 0);
        const enum status status = exec_program(program, cases[i].level, cases[i].placement,
                                                cases[i].steps, cases[i].backend, &fake, &err);
        is_int(status, STATUS_OK, "%s: runs", cases[i].name);
        is_str(fake.log.at, *cases[i].log, "%s: the calls in host order", cases[i].name);
        fake_backend_release(&fake);
    }
}

/* A run that fails at call n: no call after it but close, once, and the reason is kept. */
static bool fails_cleanly(const struct program *program, uint32_t i, uint32_t n)
{
    struct fake_backend fake;
    struct err err = {0};
    fake_backend_init(&fake, n);
    const enum status status = exec_program(program, cases[i].level, cases[i].placement,
                                            cases[i].steps, cases[i].backend, &fake, &err);
    const size_t before_close = fake.log.length - strlen("close\n");
    const bool clean = status == STATUS_DEVICE && err.status == STATUS_DEVICE &&
                       strstr(err.text, "told to fail") != NULL && fake.n_call == n &&
                       fake.n_close == 1 && !strcmp(fake.log.at + before_close, "close\n") &&
                       !strncmp(fake.log.at, *cases[i].log, before_close);
    fake_backend_release(&fake);
    return clean;
}

static void test_failures(const struct program *program)
{
    for (uint32_t i = 0; i < N_CASES; i++) {
        uint32_t n_call = 0, n_clean = 0;
        for (const char *at = *cases[i].log; (at = strchr(at, '\n')) != NULL; at++)
            n_call++;
        n_call--; /* close */
        for (uint32_t n = 1; n <= n_call; n++)
            n_clean += fails_cleanly(program, i, n);
        is_int(n_clean, n_call, "%s: closed once after a failure at each call", cases[i].name);
    }
}

static void test_out_of_memory(const struct program *program)
{
    const struct placement full = {.out_of_memory = true, .oom_step = 2, .oom_bytes = 4096};
    struct fake_backend fake;
    struct err err = {0};

    fake_backend_init(&fake, 0);
    const enum status status =
        exec_program(program, EXEC_EXPANDED, &full, 3, &fake_backend, &fake, &err);
    is_int(status, STATUS_RUN, "a placement that ran out of memory is not run");
    is_str(err.text, "out of memory in step 2: no room for another 4096 bytes; nothing is run",
           "the reason says where memory ended");
    is_str(fake.log.at, "close\n", "no call but close is made");
    fake_backend_release(&fake);

    struct placement later = placement;
    later.out_of_memory = true;
    later.oom_step = 3;
    fake_backend_init(&fake, 0);
    is_int(exec_program(program, EXEC_UNIT, &later, 2, &fake_backend, &fake, &err), STATUS_OK,
           "the steps before memory ends are run");
    fake_backend_release(&fake);
}

int main(void)
{
    struct arena arena;
    struct program program;

    arena_init(&arena);
    build(&arena, &program);
    test_order(&program);
    test_failures(&program);
    test_out_of_memory(&program);
    arena_release(&arena);
    return tap_done();
}
