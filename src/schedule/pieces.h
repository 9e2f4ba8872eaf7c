/*
 * What the schedulers share: the state that the host would keep in Python objects, and the pieces
 * of a step that act on it. Internal to src/schedule/.
 *
 * A piece appends to the program; which piece when is the system's (fsdp2.c, fsdp1.c). Nothing here
 * outlives the build but the program itself.
 */
#ifndef SRC_SCHEDULE_PIECES_H
#define SRC_SCHEDULE_PIECES_H

#include "src/program_builder.h"
#include "src/schedule/divide.h"

enum {
    ADAMW_STATES = 3,    /* step counter, exp_avg, exp_avg_sq */
    FOREACH_TENSORS = 64 /* _foreach_copy_ takes at most so many a launch (spec FSDP2 5.3) */
};
#define NO_EVENT UINT32_MAX

/* Runs of member sizes that units of one shape share. */
struct shape_members {
    uint32_t shard, full, kept, grads, accumulated, zeros, states;
    uint32_t n_shard, n_states, n_zeros; /* FSDP1: of the one flat parameter */
    uint32_t whole;                      /* FSDP1: the parameters that it is made of */
    uint64_t kept_bytes, accumulated_bytes, zeros_bytes, states_bytes, whole_bytes;
};

/* One reduce dtype's gradients of a unit. */
struct bucket_state {
    uint32_t grad_shard; /* reduced gradient until zero_grad, or NO_BUFFER */
    uint32_t partial;    /* HSDP: scattered, not yet reduced over replicas, or NO_BUFFER */
    uint32_t kept;       /* HSDP: an all-reduced buffer that lives to the end of backward */
    uint32_t kept_event; /* of its all-reduce */
};

struct unit_state {
    uint32_t shard, states;           /* buffers of scope RUN; NO_BUFFER: none */
    uint32_t init_shard, init_states; /* the tasks that fill them first */
    uint32_t gathered, gather_event;  /* of a pending all-gather */
    uint32_t full;                    /* unsharded parameters, while is_full */
    uint32_t kept, kept_event;        /* what an integer reshard kept, or NO_BUFFER; its copy */
    uint32_t grads;                   /* gradients from autograd, or NO_BUFFER */
    uint32_t accumulated;             /* those of microbatches without sync, or NO_BUFFER */
    uint32_t zeros;                   /* in place of missing gradients, or NO_BUFFER */
    uint32_t order;                   /* where it stands in schedule.order */
    uint32_t post_event; /* of its last reduction that C did not wait for, or NO_EVENT */
    struct bucket_state buckets[MAX_BUCKETS];
    bool pending, is_full, done; /* the last: its post_backward ran in this backward */
    bool late;                   /* FSDP1: its post_backward comes after that of the unit before */
};

struct held { /* a buffer that may be freed once a stream has waited for the event */
    uint32_t buffer, event;
};

/*
 * FSDP1: events of FREEs that the host may still wait for, oldest first. The n-th FREE of each step
 * has the same one, so that a steady step waits for those of whatever step came before it.
 */
struct free_events {
    uint32_t first; /* id */
    uint32_t n;     /* FREEs of this step so far */
    uint32_t *queue, n_queue, cap;
};

struct schedule {
    struct program_builder build;
    const struct plan *plan;
    const struct layout *layout;
    const struct body_table *bodies;
    struct shape_members *shapes;
    struct unit_state *units;
    uint32_t *order; /* units in the order of their post-forward */
    uint32_t n_order;
    struct held gathered;   /* the last forward all-gather output: copied out, not freed */
    struct held *reduce_in; /* oldest first */
    uint32_t n_reduce_in;
    uint32_t post_event[STREAM_N];  /* the last post-reduce work on this stream, or NO_EVENT */
    uint32_t *frames;               /* of this microbatch, by segment */
    uint32_t hidden;                /* what the next body computes from */
    uint32_t input;                 /* what the model computes from, and labels */
    uint32_t ignored, init_ignored; /* parameters that no unit manages, or NO_BUFFER; their birth */
    uint32_t workspace[2];          /* of the forward thread and of autograd's; scope RUN */
    bool has_workspace[2];
    struct free_events frees;
    struct divide divides[DTYPE_N]; /* of what is reduced in a dtype */
};

/* pieces.c */
void schedule_init(struct schedule *sched, const struct plan *plan, const struct layout *layout,
                   const struct body_table *bodies, struct arena *arena, struct program *program);

static inline const struct unit_layout *layout_of(const struct schedule *sched, uint32_t u)
{
    return sched->layout->units[u];
}

static inline const struct shape_members *members_of(const struct schedule *sched, uint32_t u)
{
    return &sched->shapes[layout_of(sched, u)->shape];
}

static inline uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static inline bool is_fsdp1(const struct schedule *sched)
{
    return sched->plan->options.system == SYSTEM_FSDP1;
}

static inline bool is_root(const struct schedule *sched, uint32_t u)
{
    return plan_is_root(sched->plan, u);
}

static inline bool is_last_group(const struct schedule *sched, uint32_t u)
{
    return sched->plan->units[u].next_group == NO_UNIT;
}

static inline enum comm shard_comm(const struct schedule *sched, uint32_t u)
{
    return sched->plan->units[u].on_second_mesh ? COMM_SECOND : COMM_SHARD;
}

/* Whether something is done in the microbatch that is being built. */
static inline bool schedule_holds(const struct schedule *sched, enum microbatches when)
{
    return when == MICROBATCH_EVERY || sched->build.microbatch + 1u == sched->plan->options.accum;
}

/*
 * walk.c: hooks of units as modules run, forward and back. done: when a unit's last backward body is
 * launched.
 */
typedef void unit_hook(struct schedule *sched, uint32_t u);
/* Of a unit the last group first. */
void schedule_each_group_backward(struct schedule *sched, uint32_t u, unit_hook *fire);
void schedule_walk_forward(struct schedule *sched, unit_hook *pre, unit_hook *post);
void schedule_walk_backward(struct schedule *sched, uint32_t d_out, unit_hook *pre,
                            unit_hook *done);
/* A section: forward, loss, backward and metrics of each microbatch, and the optimizer. */
typedef void forward_pass(struct schedule *sched);
typedef void backward_pass(struct schedule *sched, uint32_t d_out);
void schedule_step(struct schedule *sched, enum section_id section, forward_pass *forward,
                   backward_pass *backward);

/* unshard.c */
void schedule_unshard(struct schedule *sched, uint32_t u, enum phase phase);
void schedule_wait_for_unshard(struct schedule *sched, uint32_t u, enum phase phase);
void schedule_reshard(struct schedule *sched, uint32_t u);
void schedule_reshard_to_ranks(struct schedule *sched, uint32_t u);
void schedule_release_held(struct schedule *sched);
void schedule_drop_pending(struct schedule *sched, uint32_t u);

/* compute.c */
void schedule_init_shards(struct schedule *sched); /* section init */
/* Section init of a program without a first step: all that lives for the run, and nobody fills it. */
void schedule_init_lasting(struct schedule *sched);
void schedule_input(struct schedule *sched);
void schedule_forward_body(struct schedule *sched, uint32_t s);
uint32_t schedule_loss(struct schedule *sched);   /* returns the gradient of what it is taken of */
void schedule_drop_input(struct schedule *sched); /* at the end of backward, but for metrics */
void schedule_metrics(struct schedule *sched);    /* nothing where a plan has none */
/* Returns the gradient of the segment's input, or NO_BUFFER. */
uint32_t schedule_backward_body(struct schedule *sched, uint32_t s, uint32_t d_out);

/* border.c */
void schedule_border_forward(struct schedule *sched, uint32_t s);
uint32_t schedule_border_backward(struct schedule *sched, uint32_t s, uint32_t d_hidden);

/* optimizer.c */
void schedule_host_reads(struct schedule *sched);
void schedule_optimizer(struct schedule *sched);

/* accumulate.c: gradients of microbatches that are not reduced */
void schedule_accumulate(struct schedule *sched, uint32_t u);
void schedule_keep_accumulated(struct schedule *sched, uint32_t u);

/* reduce.c */
void schedule_fill_zeros(struct schedule *sched, uint32_t u);
void schedule_reduce(struct schedule *sched, uint32_t u);
void schedule_reduce_scatter(struct schedule *sched, uint32_t u, uint32_t bucket, uint32_t in,
                             uint32_t out);
void schedule_pre_divide(struct schedule *sched, uint32_t u, uint32_t bucket, uint32_t in,
                         double divisor);
void schedule_drain_reduce_in(struct schedule *sched, uint32_t keep);
void schedule_wait_for_reduce(struct schedule *sched);

/* post_reduce.c: from a reduce-scatter's output to the gradient of the shards */
enum buffer_role schedule_out_role(const struct schedule *sched, uint32_t u, uint32_t bucket);
void schedule_post_reduce(struct schedule *sched, uint32_t u, uint32_t bucket, uint32_t out);
void schedule_release_kept(struct schedule *sched, uint32_t u);

/* flat_birth.c: section init, of the units whose outer unit this is; NO_UNIT: of all */
void schedule_flat_births(struct schedule *sched, uint16_t outer);

/* flat.c: FSDP1's flat parameters and their gradients */
void schedule_flat_unshard(struct schedule *sched, uint32_t u);
void schedule_flat_reshard(struct schedule *sched, uint32_t u, bool frees);
void schedule_flat_grads(struct schedule *sched, uint32_t u);
void schedule_flat_reduce(struct schedule *sched, uint32_t u); /* what that has made */
/* Of another pool than the user's: let the allocator wait for it, and free it. */
void schedule_free_used(struct schedule *sched, uint32_t buffer, enum stream user);

#endif
