/*
 * Inside the verifier: what src/verify.c (order and memory), src/verify_body.c (bodies and their
 * frames), src/verify_operands.c (what a body's operators read) and src/verify_fault.c (who is to
 * blame) share. Nobody else includes this.
 *
 * Tasks are counted per stream, from 1. A clock says per stream how many tasks lie before a point,
 * so that "a happens before b" is one compare: b's clock at a's stream against a's count. This is
 * exact, not an estimate: a stream is a chain, so what lies before a point is a prefix of each
 * stream and its length says all; every rule of order joins prefixes. Whoever follows a task
 * follows all that lies before it, so that following many tasks is following the join of their
 * clocks. One clock stands for the uses of everything freed in a pool, and one for all that the
 * next write of a buffer must follow: it starts as its pool's at the ALLOC, for the earlier uses of
 * the memory, is replaced by that of each write, and joined with that of each read.
 */
#ifndef SRC_VERIFY_INNER_H
#define SRC_VERIFY_INNER_H

#include "src/verify.h"

#include "src/body.h"

enum { LANES = 8 }; /* of a clock: the next power of two, for vector units; the rest stays zero */
_Static_assert((int)STREAM_N <= (int)LANES, "a clock has a lane for each stream");

struct clock {
    int32_t at[LANES]; /* signed: that is what every vector unit can compare */
};

enum { ALIVE = 1, BY_BODY = 2 };

/* A buffer since its last ALLOC. */
struct life {
    struct clock uses;      /* what the next write must follow */
    int32_t written;        /* count of its last write, on stream writer; 0: none, or freed */
    uint32_t born;          /* members that tapes have allocated */
    uint16_t writer, flags; /* not bytes: a store of one could be to anything */
    uint16_t users;         /* a bit for each stream of a RECORD_STREAM */
};

struct frame_life {
    int32_t forward; /* its count, on stream */
    uint8_t stream, walk /* 0: never forward */, open /* no backward yet */;
};

/* Of a body. What it does to its boundary: a bit for each slot before the gradients. */
struct acts {
    uint32_t n_grad;   /* gradients allocated */
    const char *wrong; /* with what its operators read and write; NULL: nothing */
    uint8_t allocs, frees;
};

/* How the first task of a fault is to be found, and with it, for BLAME_FREED, the buffer. */
enum blame_how {
    BLAME_NOBODY,
    BLAME_COUNT, /* the count-th task of a stream */
    BLAME_USER,  /* a use of the buffer that is not in the clock */
    BLAME_FREED, /* the same, of what was freed in the pool before the ALLOC of written */
};
struct blame {
    enum blame_how how;
    int32_t count;
    uint32_t stream, pool;
    uint32_t written; /* NO_BUFFER: slots of the body that is launched now */
    struct clock clock;
};

enum { WALKS = 4 };
extern const uint8_t verify_walks[WALKS + 1];   /* sections; walk 0 is none */
extern const struct clock verify_one[STREAM_N]; /* one task on the stream */

struct verify {
    const struct program *program;
    struct arena *arena;
    struct clock streams[STREAM_N], comms[COMM_N];
    struct clock pools[STREAM_N]; /* uses of all that was freed so far */
    struct clock *events;
    bool *recorded;     /* by event */
    struct life *lives; /* by buffer */
    struct frame_life *frames;
    struct acts *acts; /* by body */
    uint32_t n_alive;  /* buffers */
    uint32_t n_open;   /* frames */
    /* ALLOCs by body that wait for their LAUNCH; FREEs by body that the last LAUNCH asks for. */
    uint32_t *allocs, frees[SLOT_GRAD];
    uint32_t n_alloc, cap_alloc, n_free;
    bool beside; /* any of these */
    uint8_t body_stream;
    uint32_t body_task; /* the last LAUNCH of a body, on body_stream */
    uint32_t walk;      /* 1 to WALKS */
    uint32_t instr;     /* where the fault is */
    struct fault fault;
    struct blame blame;
    const char *why; /* of kinds that have several reasons */
};

/* Counts stay far below 2^31 (PLAN_MAX_UNROLLED) and are never negative. */
static inline bool clock_follows(const struct clock *clock, const struct clock *all)
{
    int32_t late = 0;
    for (int i = 0; i < LANES; i++)
        late |= clock->at[i] - all->at[i];
    return late >= 0;
}

static inline void clock_join(struct clock *clock, const struct clock *other)
{
    for (int i = 0; i < LANES; i++)
        clock->at[i] = clock->at[i] < other->at[i] ? other->at[i] : clock->at[i];
}

/* Keep only what does not lie before done: whole prefixes, since a clock follows all before it. */
static inline void clock_forget(struct clock *clock, const struct clock *done)
{
    for (int i = 0; i < LANES; i++)
        clock->at[i] = clock->at[i] <= done->at[i] ? 0 : clock->at[i];
}

/* One task more. All lanes are added to, since a load behind a store to one of them would stall. */
static inline void clock_count(struct clock *clock, uint32_t stream)
{
    for (int i = 0; i < LANES; i++)
        clock->at[i] += verify_one[stream].at[i];
}

/* These note a fault and return false, which ends the walk. */
bool verify_fault_of(struct verify *v, enum fault_kind kind, uint32_t second, uint32_t buffer,
                     const char *why);
/* First is the count-th task of a stream. */
bool verify_fault_after(struct verify *v, enum fault_kind kind, uint32_t stream, int32_t count,
                        uint32_t second, uint32_t buffer, const char *why);
/* First used the buffer, and clock lacks it. */
bool verify_fault_use(struct verify *v, enum fault_kind kind, const struct clock *clock,
                      uint32_t second, uint32_t buffer);
/* The same of what was freed in a pool; second writes a buffer, or NO_BUFFER: slots of its body. */
bool verify_fault_reuse(struct verify *v, const struct clock *clock, uint32_t second, uint32_t pool,
                        uint32_t written);
bool verify_fault_event(struct verify *v, const struct instr *wait);
/* Find what is still to be found, and say it. */
enum status verify_fault_report(struct verify *v, struct err *err);

/* The boundary acts of every body, into v->acts, which is zeroed. */
void verify_body_acts(struct verify *v);
/* Of a pair of profile native: what is wrong with its bodies' operands, into the acts of all bodies. */
void verify_operands(const struct body_table *bodies, const struct body_pair *pair,
                     struct arena *arena, struct acts *acts);
/* LAUNCH of a body, its clock already counting it: before its accesses. */
bool verify_body_launch(struct verify *v, const struct clock *clock, const struct instr *instr);
bool verify_body_alloc(struct verify *v, uint32_t buffer); /* ALLOC by body */
bool verify_body_free(struct verify *v, uint32_t buffer);  /* FREE by body */
/* An instruction, or NULL for the section's end, while ALLOCs or FREEs by body are outstanding. */
bool verify_body_settle(struct verify *v, const struct instr *instr);
bool verify_body_end(struct verify *v); /* of a section */

#endif
