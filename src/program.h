/*
 * The program: what the host thread issues in one step, as flat arrays.
 *
 * One program serves all ranks. It holds no times, no addresses and no rank, and is not changed
 * once built. Two levels:
 *
 *   unit level   one LAUNCH per unit and phase, one ALLOC / FREE per group (the parameters
 *                of a unit, its gradients, …). A forward or backward task names a body.
 *   expanded     each body replaced by its operators and slots, each group by its members
 *                (src/expand.h walks it; nothing of it is stored but ids).
 *
 * Walk of one parameter p, member i of unit u: shard (role SHARD, born in init, member i) → read by
 * copy_in(u), which writes the rank's slice of role GATHERED → all_gather(u) fills the rest →
 * copy_out(u) writes role FULL, member i → forward and backward bodies of u's segments read FULL →
 * backward gives birth to role GRADS, member i, on the body's tape → pack(u) reads GRADS and writes
 * REDUCE_IN → reduce_scatter(u) writes GRAD_SHARD → the optimizer reads it and writes SHARD.
 *
 * Buffers are single-assignment: each ALLOC has a buffer of its own, in each section; only buffers
 * of scope RUN are seen by more than one section. An ALLOC or FREE with INSTR_BY_BODY states at
 * unit level that the neighbouring body's tape does this at its exact place: it counts for order,
 * its bytes are in the body's net and rise, and an expanded walk passes over it.
 *
 * RECORD_STREAM says that a stream uses a buffer of another one's pool. When the buffer is freed the
 * allocator lets an event into each such stream, and gives its memory to nobody before the host has
 * seen all of them complete: so a FREE may stand before the end of the use, and where memory lies
 * depends on times (src/place.h). FSDP1 alone has it. Source: spec MEMORY 1.6.
 *
 * Of FSDP1 a unit has one flat parameter. copy_in(u) casts the shard to CAST_TEMP, all_gather(u) reads
 * that and writes FULL, which bodies read; pack(u) writes GRADS one behind the other to FLAT_GRAD,
 * which precast(u) casts to REDUCE_IN. Where nothing has to be cast the next one takes its place.
 *
 * Where a parameter is on one rank only nothing is gathered or scattered: copy_out reads SHARD,
 * post_reduce copies REDUCE_IN to GRAD_SHARD, and roles GATHERED and CAST_TEMP do not occur.
 *
 * Source of streams, events and lifetimes: spec FSDP2 sections 1 and 7, pseudo-code (a).
 */
#ifndef SRC_PROGRAM_H
#define SRC_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "src/layout.h"
#include "src/text.h"

/* X(ENUM, name) */
#define STREAMS(X) \
    X(C, "C")      \
    X(AGI, "AGI")  \
    X(AG, "AG")    \
    X(RS, "RS")    \
    X(AR, "AR")

enum stream {
#define X(id, name) STREAM_##id,
    STREAMS(X)
#undef X
        STREAM_N
};
const char *stream_name(enum stream stream);

/*
 * Communicators are queues: a collective starts when it heads its stream and its communicator.
 * SHARD: the ranks that parameters are cut over. REDUCE: the same ranks once more, where a plan
 * separates reduce-scatter from all-gather. REPLICATE: those that hold the same shards. KEPT: those
 * that share what an integer reshard keeps. WORLD: all, where replicas make that one more group.
 * SECOND: the ranks of SHARD once more, for parameters on the second mesh.
 * X(ENUM, name)
 */
#define COMMS(X)              \
    X(SHARD, "shard")         \
    X(REDUCE, "reduce")       \
    X(REPLICATE, "replicate") \
    X(KEPT, "kept")           \
    X(WORLD, "world")         \
    X(SECOND, "second")

enum comm {
#define X(id, name) COMM_##id,
    COMMS(X)
#undef X
        COMM_N,
    COMM_NONE = 0xff
};
const char *comm_name(enum comm comm);

/* The group that a rank is in: so many ranks, and how many of them share a node. One rank where the
   plan has no such communicator. */
struct comm_ranks {
    uint64_t ranks, per_node;
};
struct comm_ranks comm_ranks_of(const struct plan *plan, enum comm comm);

/* X(ENUM, name) */
#define INSTRS(X)             \
    X(ALLOC, "alloc")         \
    X(FREE, "free")           \
    X(LAUNCH, "launch")       \
    X(RECORD, "record")       \
    X(WAIT, "wait")           \
    X(HOST_WAIT, "host_wait") \
    X(MARK, "mark")           \
    X(RECORD_STREAM, "record_stream")

enum instr_op {
#define X(id, name) INSTR_##id,
    INSTRS(X)
#undef X
        INSTR_N
};

enum instr_flags { INSTR_BY_BODY = 1, INSTR_MARK_END = 2 };

struct instr {
    uint8_t op, stream; /* stream: of LAUNCH, RECORD, WAIT; of ALLOC and FREE the pool; of
                           RECORD_STREAM the one that uses the buffer */
    uint16_t flags;
    uint32_t id; /* buffer, task, event or, for MARK, enum phase */
};

/* Phases of a step: what MARK opens and closes. METRICS, behind a BACKWARD, stands last so that
   programs without it keep their hash. X(ENUM, name) */
#define PHASES(X)             \
    X(INIT, "init")           \
    X(FORWARD, "forward")     \
    X(LOSS, "loss")           \
    X(BACKWARD, "backward")   \
    X(OPTIMIZER, "optimizer") \
    X(METRICS, "metrics")

enum phase {
#define X(id, name) PHASE_##id,
    PHASES(X)
#undef X
        PHASE_N
};
const char *phase_name(enum phase phase);

/* X(ENUM, name) */
#define TASK_KINDS(X)                   \
    X(INIT, "init")                     \
    X(COPY_INPUT, "copy_input")         \
    X(COPY_IN, "copy_in")               \
    X(ALL_GATHER, "all_gather")         \
    X(COPY_OUT, "copy_out")             \
    X(FORWARD, "forward")               \
    X(BACKWARD, "backward")             \
    X(KEEP, "keep")                     \
    X(ACCUMULATE, "accumulate")         \
    X(ZERO_FILL, "zero_fill")           \
    X(PRECAST, "precast")               \
    X(PACK, "pack")                     \
    X(PRE_DIVIDE, "pre_divide")         \
    X(REDUCE_SCATTER, "reduce_scatter") \
    X(ALL_REDUCE, "all_reduce")         \
    X(POST_REDUCE, "post_reduce")       \
    X(CAST, "cast")                     \
    X(UNSCALE, "unscale")               \
    X(GRAD_NORM, "grad_norm")           \
    X(CLIP, "clip")                     \
    X(OPTIMIZER, "optimizer")

enum task_kind {
#define X(id, name) TASK_##id,
    TASK_KINDS(X)
#undef X
        TASK_KIND_N
};
const char *task_kind_name(enum task_kind kind);
bool task_kind_is_collective(enum task_kind kind);

/* PREMUL: the sum of inputs that were each multiplied by a factor. X(ENUM, name) */
#define REDUCTIONS(X) \
    X(NONE, "none")   \
    X(SUM, "sum")     \
    X(AVG, "avg")     \
    X(PREMUL, "premul")

enum reduction {
#define X(id, name) REDUCE_##id,
    REDUCTIONS(X)
#undef X
        REDUCTION_N
};
const char *reduction_name(enum reduction reduction);

enum access_mode { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_UPDATE = 3 };
struct access {
    uint32_t buffer : 30, mode : 2;
};

struct task {
    uint8_t kind, stream, comm /* COMM_NONE */,
        dtype /* what moves: of the wire, else of the result */;
    uint8_t reduction, bucket; /* the latter: of what is reduced, in the unit's layout */
    uint16_t unit;             /* NO_UNIT: loss, metrics, optimizer, inputs */
    uint16_t microbatch;
    uint32_t kernels; /* launches that the host makes for it */
    uint32_t body;    /* FORWARD, BACKWARD: in body_table.bodies; else NO_BODY */
    uint32_t frame;   /* the same: in program.frames; else NO_FRAME */
    uint32_t access, n_access;
    uint64_t elements; /* collectives: the full message, padding included; else what is written */
    double divisor;    /* of what is written: PRE_DIVIDE, POST_REDUCE, a reduction PREMUL; else 1 */
};

#define NO_BODY UINT32_MAX
#define NO_FRAME UINT32_MAX

/* The instruction is about a buffer. */
static inline bool instr_has_buffer(enum instr_op op)
{
    return op == INSTR_ALLOC || op == INSTR_FREE || op == INSTR_RECORD_STREAM;
}

/* What a buffer is for; the class follows from it. X(ENUM, name, CLASS) */
#define BUFFER_ROLES(X)                           \
    X(SHARD, "shard", SHARDED_PARAM)              \
    X(IGNORED, "ignored", SHARDED_PARAM)          \
    X(STATE, "state", OPTIMIZER)                  \
    X(WORKSPACE, "workspace", WORKSPACE)          \
    X(INPUT, "input", ACTIVATION)                 \
    X(CAST_TEMP, "cast_temp", TEMPORARY)          \
    X(GATHERED, "gathered", ALL_GATHER_BUFFER)    \
    X(CAT_TEMP, "cat_temp", TEMPORARY)            \
    X(FULL, "full", UNSHARDED_PARAM)              \
    X(KEPT, "kept", UNSHARDED_PARAM)              \
    X(HIDDEN, "hidden", ACTIVATION)               \
    X(D_HIDDEN, "d_hidden", TEMPORARY)            \
    X(LOGITS, "logits", LOGITS)                   \
    X(D_LOGITS, "d_logits", LOGITS)               \
    X(GRADS, "grads", UNSHARDED_GRAD)             \
    X(ACCUMULATED, "accumulated", UNSHARDED_GRAD) \
    X(ZEROS, "zeros", UNSHARDED_GRAD)             \
    X(PRECAST, "precast", TEMPORARY)              \
    X(REDUCE_IN, "reduce_in", REDUCE_BUFFER)      \
    X(REDUCE_OUT, "reduce_out", REDUCE_BUFFER)    \
    X(SCALAR, "scalar", TEMPORARY)                \
    X(PARTIAL, "partial", REDUCE_BUFFER)          \
    X(GRAD_SHARD, "grad_shard", SHARDED_GRAD)     \
    X(QUOTIENT, "quotient", TEMPORARY)            \
    X(FLAT_GRAD, "flat_grad", UNSHARDED_GRAD)     \
    X(UPDATE_TEMP, "update_temp", TEMPORARY)

enum buffer_role {
#define X(id, name, memory_class) ROLE_##id,
    BUFFER_ROLES(X)
#undef X
        ROLE_N
};
const char *buffer_role_name(enum buffer_role role);
enum memory_class buffer_role_class(enum buffer_role role);

/* RUN: to the end of the run. STEP: dead before the step ends. */
enum buffer_scope { SCOPE_RUN, SCOPE_STEP };

struct buffer {
    uint64_t bytes;            /* sum of its members */
    uint32_t member, n_member; /* in program.member_bytes, equal groups share a run of it;
                                   NO_MEMBER: one member of all the bytes */
    uint32_t expanded;         /* id of its first member at the expanded level */
    uint16_t unit;             /* NO_UNIT where it belongs to none */
    uint16_t segment;          /* of boundary tensors: whose they are; else NO_SEGMENT */
    uint16_t microbatch;
    uint8_t role, pool /* enum stream: source is always torch's own allocations */, scope;
};
#define NO_BUFFER UINT32_MAX
#define NO_MEMBER UINT32_MAX
#define NO_SEGMENT UINT16_MAX

/* One module run forward and backward once, or a metric forward: which buffers its pair's boundary
   slots are. */
struct frame {
    uint32_t pair;                 /* in body_table.pairs */
    uint32_t segment;              /* in plan.segments; NO_SEGMENT: of a loss or metric */
    uint32_t expanded;             /* id of the pair's slot 0 at the expanded level */
    uint32_t in, out, d_out, d_in; /* buffers, or NO_BUFFER */
    uint32_t grads;                /* in program.frame_grads: the segment's unit, its inner units */
};

/* X(ENUM, name) */
#define SECTIONS(X)   \
    X(INIT, "init")   \
    X(FIRST, "first") \
    X(STEADY, "steady")

enum section_id {
#define X(id, name) SECTION_##id,
    SECTIONS(X)
#undef X
        SECTION_N
};
const char *section_name(enum section_id section);

struct section {
    uint32_t begin, end; /* in program.instrs */
};

struct program {
    const struct plan *plan;
    const struct layout *layout;
    const struct body_table *bodies;
    struct section sections[SECTION_N];
    struct instr *instrs;
    struct task *tasks;
    struct access *accesses;
    struct buffer *buffers;
    struct frame *frames;
    uint32_t *frame_grads; /* the units' gradients, or NO_BUFFER */
    uint64_t *member_bytes;
    uint32_t n_instr, n_task, n_access, n_buffer, n_frame, n_frame_grad, n_member, n_event;
    bool host_waits; /* some instruction is a HOST_WAIT */
    uint32_t
        n_expanded; /* ids of the expanded level: members of all buffers, slots of all frames */
};

/* Over all arrays and the bodies they name, little-endian, without names and labels. */
uint64_t program_hash(const struct program *program);

/* Where memory lies depends on times: it has a RECORD_STREAM. */
bool program_is_timed(const struct program *program);

/* Bytes of the i-th member of a group. */
static inline uint64_t buffer_member_bytes(const struct program *program,
                                           const struct buffer *buffer, uint32_t i)
{
    return buffer->member == NO_MEMBER ? buffer->bytes : program->member_bytes[buffer->member + i];
}

#endif
