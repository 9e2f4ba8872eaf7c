/*
 * What the schedulers share: the state that the host would keep in Python objects, and the pieces
 * of a step that act on it. Internal to src/schedule/.
 *
 * A piece appends to the program; which piece when is the system's (fsdp2.c). Nothing here outlives
 * the build but the program itself.
 */
#ifndef SRC_SCHEDULE_PIECES_H
#define SRC_SCHEDULE_PIECES_H

#include "src/program_builder.h"

/* set_reduce_scatter_max_input_buffers: how many reduce-scatter inputs may be held. */
enum { MAX_REDUCE_IN = 1 };
enum { ADAMW_STATES = 3 }; /* step counter, exp_avg, exp_avg_sq */

/* Runs of member sizes that units of one shape share. */
struct shape_members {
    uint32_t shard, full, grads, states;
    uint64_t states_bytes;
};

struct unit_state {
    uint32_t shard, states;           /* buffers of scope RUN */
    uint32_t init_shard, init_states; /* the tasks that fill them first */
    uint32_t gathered, gather_event;  /* of a pending all-gather */
    uint32_t full;                    /* unsharded parameters, while is_full */
    uint32_t grads;                   /* gradients from autograd, or NO_BUFFER */
    uint32_t grad_shard;              /* reduced gradient until zero_grad, or NO_BUFFER */
    uint32_t order;                   /* where it stands in schedule.order */
    bool pending, is_full, reduce_postponed;
};

struct held { /* a buffer that may be freed once a stream has waited for the event */
    uint32_t buffer, event;
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
    struct held gathered; /* the last forward all-gather output: copied out, not freed */
    struct held reduce_in[MAX_REDUCE_IN + 1];
    uint32_t n_reduce_in;
    uint32_t post_event;   /* the last post-reduce work on stream RS */
    uint32_t *frames;      /* of this microbatch, by segment */
    uint32_t input;        /* token ids and labels of this microbatch */
    uint32_t workspace[2]; /* of the forward thread and of autograd's; scope RUN */
    bool has_workspace[2];
};

/* pieces.c */
void schedule_init(struct schedule *sched, const struct plan *plan, const struct layout *layout,
                   const struct body_table *bodies, struct arena *arena, struct program *program);

static inline const struct unit_layout *layout_of(const struct schedule *sched, uint32_t u)
{
    return &sched->layout->units[u];
}

static inline const struct shape_members *members_of(const struct schedule *sched, uint32_t u)
{
    return &sched->shapes[layout_of(sched, u)->shape];
}

static inline uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

/* unshard.c */
void schedule_unshard(struct schedule *sched, uint32_t u);
void schedule_wait_for_unshard(struct schedule *sched, uint32_t u, enum phase phase);
void schedule_reshard(struct schedule *sched, uint32_t u);
void schedule_release_held(struct schedule *sched);

/* compute.c */
void schedule_init_shards(struct schedule *sched);
void schedule_input(struct schedule *sched);
void schedule_forward_body(struct schedule *sched, uint32_t s);
uint32_t schedule_loss(struct schedule *sched); /* returns the gradient of the logits */
/* Returns the gradient of the segment's input, or NO_BUFFER. */
uint32_t schedule_backward_body(struct schedule *sched, uint32_t s, uint32_t d_out);
void schedule_optimizer(struct schedule *sched);

/* reduce.c */
void schedule_reduce(struct schedule *sched, uint32_t u);
void schedule_drain_reduce_in(struct schedule *sched, uint32_t keep);

#endif
