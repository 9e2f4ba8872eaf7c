/*
 * What the parts of the binder share; see bind.h. Internal to gpu/bind*.c.
 */
#ifndef GPU_BIND_INNER_H
#define GPU_BIND_INNER_H

#include "gpu/bind.h"
#include "gpu/member.h"

/* Where a parameter of the model is: a member of its unit's groups, or ignored. */
struct param_home {
    uint16_t unit;       /* NO_UNIT: ignored */
    uint32_t member;     /* among all of the unit */
    uint32_t grad;       /* among those that have a gradient, or that are filled with zeros */
    uint64_t ignored_at; /* bytes */
};

/* One placed step. */
struct bound_pass {
    const struct place_step *step;
    struct bound *launches;
};

struct bind {
    struct bind_setup setup;
    const struct program *program;
    const struct plan *plan;
    const struct layout *layout;
    struct arena lasting, arena; /* arena: of what bind_forget() forgets */
    struct param_home *homes;    /* by parameter */
    const struct task **writers; /* by buffer: the first task that writes it, or NULL */
    uint32_t shard_rank;
    struct op_shape shape;
    uint32_t n_launch[SECTION_N];
    struct bound_pass passes[PLACE_MAX_STEPS + 1];
    uint32_t n_pass;
};

/* One launch on its way: works are appended. */
struct binding {
    struct bind *bind;
    const struct launch *launch;
    const struct task *task;
    struct work *works;
    uint32_t n, cap;
};

static inline struct work *binding_add(struct binding *to, enum work_kind kind)
{
    to->works = arena_grow(&to->bind->arena, to->works, &to->cap, to->n + 1, sizeof *to->works);
    to->works[to->n] = (struct work){.kind = (uint8_t)kind, .state = to->bind->setup.state};
    return &to->works[to->n++];
}

/* bind_find.c */
/* The n-th access of the task to a buffer of this role, counted from 0; NO_BUFFER. */
uint32_t binding_find(const struct binding *of, enum buffer_role role, uint32_t n);
/* The first access that reads, that writes or updates; NO_BUFFER. */
uint32_t binding_source(const struct binding *of);
uint32_t binding_target(const struct binding *of, enum access_mode *mode);
char *binding_member(const struct binding *of, uint32_t buffer, uint32_t member);

static inline const struct buffer *binding_buffer(const struct binding *of, uint32_t buffer)
{
    return &of->bind->program->buffers[buffer];
}

/* The dtype that a buffer of one dtype has: that of the task which first writes it. */
static inline enum dtype binding_dtype(const struct binding *of, uint32_t buffer)
{
    return (enum dtype)of->bind->writers[buffer]->dtype;
}

static inline struct member member_of(const struct bind *bind, uint32_t unit, uint32_t i)
{
    return unit_member(bind->plan, bind->layout, unit, i);
}

/* bind_give.c: what the host hands over */
void bind_init(struct binding *to);
void bind_input(struct binding *to);
/* bind_pack.c: what is moved, cast and scaled */
void bind_move(struct binding *to);
/* bind_collective.c */
void bind_collective(struct binding *to);
/* bind_body.c: one operator */
enum status bind_operator(struct binding *to, struct err *err);
/* bind_update.c: over all gradients of the shards */
void bind_over_grads(struct binding *to);
/* What the scaler found, where the buffer is that number. */
void bind_verdict(struct binding *to, uint32_t scalar);

#endif
