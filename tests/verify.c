/*
 * The verifier on tiny programs: each rule once kept and once broken, and what is said of the
 * breach. A brute-force closure, which shares no code with it, must agree.
 */
#include "src/verify.h"

#include "tests/closure.h"
#include "tests/tap.h"
#include "tests/tiny.h"

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
     "section 'steady': memory of freed buffer 'full u' may be written by 'copy_out u' while "
     "'all_gather u' uses it"},
    {"memory of one pool is not given to another",
     "a+ C:wa C>AG AG:ra a- s+ C:ws s- AG>C", "a+ C:wa C>AG AG:ra a- b+ C:wb b- AG>C",
     FAULT_REUSE, 1, 2, 'a', NULL},
    {"but not before the allocator has seen the end of a recorded use",
     "a+ C:wa C>AG AG:ra a@AG a- b+ C:wb b- AG>C", "a+ C:wa C>AG AG:ra a- b+ C:wb b- AG>C",
     FAULT_REUSE, 1, 2, 'a', NULL},
    {"which is that of all before it too",
     "a+ RS:wa RS>C C:ra a@C a- b+ AG:wb AG>C b- C>RS", "a+ RS:wa RS>C C:ra a- b+ AG:wb AG>C b- C>RS",
     FAULT_REUSE, 0, 2, 'a', NULL},
    {"and of no stream that was not recorded",
     "a+ C:wa C>AG C>RS AG:ra RS:ra a@AG a@RS a- b+ C:wb b- AG>C RS>C",
     "a+ C:wa C>AG C>RS AG:ra RS:ra a@RS a- b+ C:wb b- AG>C RS>C", FAULT_REUSE, 1, 3, 'a', NULL},
    {"nor of what is launched behind the FREE",
     "g+ AG:wg AG>C C:rg g@C g- c+ C:wc c- C>AG", "g+ AG:wg AG>C C:rg g@C g- C:rg",
     FAULT_DEAD, -1, 2, 'g', NULL},
    {"a stream is recorded in a buffer's life", "a+ C:wa a@AG a-", "a+ C:wa a- a@AG",
     FAULT_LIFETIME, -1, -1, 'a',
     "section 'steady': buffer 'full u' is recorded where it is not allocated"},
    {"a later write that is late is a race of the buffer's own",
     "a+ C:wa C>AG AG:ra a- b+ AG>RS RS:wb RS>C C:wb b-",
     "a+ C:wa C>AG AG:ra a- b+ AG>RS RS:wb C:wb b- RS>C", FAULT_RACE, 2, 3, 'b', NULL},
    {"a race is of one life of a buffer",
     "a+ RS:wa a- a+ RS:wa RS>AR AR:wa a- AR>RS", "a+ RS:wa a- a+ RS:wa AR:wa a- AR>RS",
     FAULT_RACE, 1, 2, 'a', NULL},
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
    {"nor does a first step, not even in the place of what should last",
     "init z+ first c+ c- steady a+ a-", "init z+ first z- c+ steady a+ a-", FAULT_LIFETIME, -1, -1,
     'c', "section 'first': buffer 'logits u' is alive at the end of its section"},
    {"what lasts is allocated once and for all", "init z+ C:wz first C:rz steady C:uz",
     "init z+ C:wz first C:rz steady z+", FAULT_LIFETIME, -1, -1, 'z', NULL},

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
    {"not even the end of the section",
     BEFORE FORWARD BACKWARD AFTER " c+ c-", BEFORE FORWARD BACKWARD AFTER " c+t",
     FAULT_BODY, -1, -1, 'c', NULL},
    {"a body allocates no more than its boundary", "a+ b+ c+ g+ s+ e+ a- b- c- g- s- e-",
     "a+t b+t c+t g+t s+t e+t a- b- c- g- s- e-", FAULT_BODY, -1, -1, 'e', NULL},
#define FORWARD_BACKWARD_OF(frame, grads) \
    BEFORE "o+t C:F" frame ",ri,wo e+t " grads " C:B" frame ",rd,we d-t i-t o- e- "
    {"a group is freed once all of it was born",
     FORWARD_BACKWARD_OF("1", "q+t") FORWARD_BACKWARD_OF("2", "") "q-",
     FORWARD_BACKWARD_OF("1", "q+t") "q-", FAULT_BODY, -1, -1, 'q', NULL},
    {"each member of a group is born once",
     FORWARD_BACKWARD_OF("1", "q+t") FORWARD_BACKWARD_OF("2", "") "q-",
     FORWARD_BACKWARD_OF("1", "q+t") FORWARD_BACKWARD_OF("2", "") FORWARD_BACKWARD_OF("3", "")
     "q-", FAULT_BODY, -1, 8, 'q', NULL},
    {"a task runs the body of its frame",
     BEFORE FORWARD BACKWARD AFTER, BEFORE "o+t C:X,ri,wo " BACKWARD AFTER,
     FAULT_BODY, -1, 1, '-', NULL},
    {"a frame that goes forward goes backward",
     BEFORE FORWARD BACKWARD AFTER, BEFORE FORWARD "d- i- o-", FAULT_BODY, 1, -1, '-',
     "section 'steady': its frame never goes backward: 'forward u block0'"},
    {"a frame goes forward before it goes backward",
     BEFORE FORWARD BACKWARD AFTER, BEFORE "e+t p+t C:B,rd,we,wp d-t i-t e- p-",
     FAULT_BODY, -1, 1, '-', NULL},
    {"a frame goes forward once",
     BEFORE FORWARD BACKWARD AFTER, BEFORE FORWARD "o- " FORWARD BACKWARD AFTER,
     FAULT_BODY, -1, 2, '-', NULL},
    {"and backward once",
     BEFORE FORWARD BACKWARD AFTER,
     BEFORE FORWARD BACKWARD "e- p- " BEFORE BACKWARD AFTER, FAULT_BODY, -1, 4, '-', NULL},
    {"a backward follows its forward on the device",
     BEFORE FORWARD "C>AR e+t p+t AR:B,rd,we,wp d-t i-t AR>C " AFTER,
     BEFORE "C>AR " FORWARD "e+t p+t AR:B,rd,we,wp d-t i-t AR>C " AFTER,
     FAULT_BODY, 1, 2, '-', NULL},
    {"a body writes freed memory of its pool",
     "a+ C:wa C>AG AG:ra a- AG>C " BEFORE FORWARD BACKWARD AFTER,
     "i+ d+ C:wi,wd a+ C:wa C>AG AG:ra a- " FORWARD "AG>C " BACKWARD AFTER,
     FAULT_REUSE, 2, 3, 'a', NULL},
    {"be it in no more than slots that nobody else sees",
     BEFORE FORWARD "a+ C:wa C>AG AG:ra a- AG>C e+t p+t C:B d-t i-t " AFTER,
     BEFORE FORWARD "a+ C:wa C>AG AG:ra a- e+t p+t C:B d-t i-t AG>C " AFTER,
     FAULT_REUSE, 3, 4, 'a', NULL},
    {"a body writes the memory that its tape frees",
     BEFORE "C>AG AG:rd AG>C " FORWARD BACKWARD AFTER,
     BEFORE "C>AG AG:rd " FORWARD BACKWARD "AG>C " AFTER, FAULT_REUSE, 1, 3, 'd', NULL},
    {"memory of a body's slots is written after the body",
     BEFORE FORWARD BACKWARD AFTER " c+ C>AG AG:wc c- AG>C",
     BEFORE FORWARD BACKWARD AFTER " C>1 c+ AG:wc c- AG>C", FAULT_REUSE, 0, 3, 'd', NULL},
    {"that of slots that nobody else sees too",
     BEFORE "C>1 " FORWARD "c+ o- C>AG AG:wc AG>C c- " BACKWARD "e- p-",
     BEFORE "C>1 " FORWARD "c+ o- 1>AG AG:wc AG>C c- " BACKWARD "e- p-", FAULT_REUSE, 1, 2, '-',
     "section 'steady': memory of a freed slot may be written by 'all_gather u' "
     "while 'forward u block0' uses it"},
    {"that of slots which forward left to a backward elsewhere too",
     BEFORE FORWARD "C>AR e+t p+t AR:B d-t i-t c+ AR>C C:wc c- " AFTER,
     BEFORE FORWARD "C>AR e+t p+t AR:B d-t i-t c+ C:wc c- AR>C " AFTER,
     FAULT_REUSE, 2, 3, '-', NULL},
};

static uint32_t or_none(int task)
{
    return task < 0 ? UINT32_MAX : (uint32_t)task;
}

static void check_good(const struct tiny_case *c)
{
    struct tiny t;
    struct fault fault = {.kind = FAULT_NONE};
    struct err err = {0};

    tiny_init(&t, c->good);
    const enum status status = verify_program(&t.program, &t.arena, &fault, &err);
    if (!ok(status == STATUS_OK && closure_says_safe(&t.program), "%s: kept", c->rule))
        tap_note("%s", err.text);
    tiny_release(&t);
}

static void check_bad(const struct tiny_case *c)
{
    struct tiny t;
    struct fault fault = {.kind = FAULT_NONE};
    struct err err = {0};

    tiny_init(&t, c->bad);
    const uint32_t buffer = c->buffer == '-'   ? NO_BUFFER
                            : c->buffer <= '9' ? (uint32_t)(c->buffer - '0')
                                               : tiny_buffer(&t, c->buffer);
    const enum status status = verify_program(&t.program, &t.arena, &fault, &err);
    if (!ok(status == STATUS_RUN && fault.kind == c->kind && fault.first == or_none(c->first) &&
                fault.second == or_none(c->second) && fault.buffer == buffer,
            "%s: its breach names tasks and buffer", c->rule))
        tap_note("kind %d, first %d, second %d, buffer %d: %s", (int)fault.kind, (int)fault.first,
                 (int)fault.second, (int)fault.buffer, err.text);
    ok(!closure_says_safe(&t.program), "%s: the closure sees the breach", c->rule);
    if (c->text != NULL)
        is_str(err.text, c->text, "%s: the line about it", c->rule);
    tiny_release(&t);
}

int main(void)
{
    for (size_t i = 0; i < sizeof tiny_cases / sizeof *tiny_cases; i++) {
        check_good(&tiny_cases[i]);
        check_bad(&tiny_cases[i]);
    }
    return tap_done();
}
