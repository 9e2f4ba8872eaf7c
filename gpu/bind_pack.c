/*
 * Which bytes go where: copy-in, copy-out, keep, packing of gradients, and casts, as tables; sums,
 * divisions and casts behind a reduction as pieces of post-reduce.
 *
 * The unsharded tensor is in its natural order; a shard is [before][chunk_rows][behind] with zeros
 * where a rank has fewer rows. An integer reshard keeps the shards of so many neighbouring ranks one
 * behind the other, and its gather is one of such groups. Source: spec FSDP2 2, GPU 2.1.
 */
#include "gpu/bind_inner.h"

/* Segments at addresses; they become offsets at the end. */
struct pieces {
    struct arena *arena;
    struct pack_segment *at;
    uint32_t n, cap;
};

static void add(struct pieces *to, struct pack_segment segment)
{
    to->at = arena_grow(to->arena, to->at, &to->cap, to->n + 1, sizeof *to->at);
    to->at[to->n++] = segment;
}

static uint64_t address(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

static uint64_t lowest(const struct pieces *pieces, bool of_source)
{
    uint64_t low = UINT64_MAX;
    for (uint32_t i = 0; i < pieces->n; i++) {
        const struct pack_segment *segment = &pieces->at[i];
        const uint64_t at = of_source ? segment->from : segment->to;
        if ((segment->n > 0 || !of_source) && at < low)
            low = at;
    }
    return low;
}

static uint64_t bytes_of(const struct pieces *pieces)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pieces->n; i++)
        bytes += pack_segment_bytes(&pieces->at[i]);
    return bytes;
}

static void finish(struct binding *to, struct pieces *pieces)
{
    struct pack_table *table;
    struct work_pack *pack;
    uint64_t from = lowest(pieces, true), at = lowest(pieces, false);

    if (pieces->n == 0)
        return;
    if (from == UINT64_MAX) /* zeros alone */
        from = at;
    at -= at % 128; /* so that tiles, whose borders are lines from here on, end on the device's */
    for (uint32_t i = 0; i < pieces->n; i++) {
        pieces->at[i].from = pieces->at[i].n > 0 ? pieces->at[i].from - from : 0;
        pieces->at[i].to -= at;
    }
    table = arena_array(pieces->arena, struct pack_table, 1);
    pack = arena_array(pieces->arena, struct work_pack, 1);
    pack_table_build(pieces->at, pieces->n, pack_pick_tile(bytes_of(pieces)), pieces->arena, table);
    *pack = (struct work_pack){
        .table = table, .from = (const void *)(uintptr_t)from, .to = (void *)(uintptr_t)at};
    struct work *work = binding_add(to, WORK_PACK);
    work->n = 1;
    work->is.packs = pack;
}

/* ---- one shard of one parameter ------------------------------------------------------------ */

/* A rank's rows between the whole tensor and its shard. */
struct shard_move {
    const struct member *member;
    uint64_t rank;
    char *whole, *shard;
    enum dtype whole_dtype, shard_dtype;
    uint64_t behind_bytes; /* to_shard: zeros behind the shard */
};

/* Bytes from one row of the dimensions before the sharded one to the next. */
static uint64_t whole_pitch(const struct shard_move *move)
{
    const struct member *m = move->member;
    return m->place->rows * m->behind * dtype_bytes(move->whole_dtype);
}

static uint64_t shard_pitch(const struct shard_move *move)
{
    const struct member *m = move->member;
    return m->place->chunk_rows * m->behind * dtype_bytes(move->shard_dtype);
}

/* Where a row of the rank begins in the whole tensor. */
static uint64_t whole_start(const struct shard_move *move, struct rows rows)
{
    return address(move->whole) +
           rows.first * move->member->behind * dtype_bytes(move->whole_dtype);
}

static void whole_to_shard(struct pieces *pieces, const struct shard_move *move)
{
    const struct member *m = move->member;
    const struct rows rows = member_rows(m, move->rank);
    const uint64_t n = rows.n * m->behind, pitch = shard_pitch(move);
    const uint64_t shard = address(move->shard),
                   row_zeros = pitch - n * dtype_bytes(move->shard_dtype);
    const bool dense = m->before == 1;

    if (m->before > 0)
        add(pieces, (struct pack_segment){.from = whole_start(move, rows),
                                          .to = shard,
                                          .n = n,
                                          .n_zero = row_zeros + (dense ? move->behind_bytes : 0),
                                          .from_dtype = (uint8_t)move->whole_dtype,
                                          .to_dtype = (uint8_t)move->shard_dtype,
                                          .n_row = m->before,
                                          .from_pitch = whole_pitch(move),
                                          .to_pitch = pitch});
    if (!dense)
        add(pieces,
            (struct pack_segment){.to = shard + m->before * pitch, .n_zero = move->behind_bytes});
}

static void shard_to_whole(struct pieces *pieces, const struct shard_move *move)
{
    const struct member *m = move->member;
    const struct rows rows = member_rows(m, move->rank);

    if (rows.n > 0 && m->before > 0)
        add(pieces, (struct pack_segment){.from = address(move->shard),
                                          .to = whole_start(move, rows),
                                          .n = rows.n * m->behind,
                                          .from_dtype = (uint8_t)move->shard_dtype,
                                          .to_dtype = (uint8_t)move->whole_dtype,
                                          .n_row = m->before,
                                          .from_pitch = shard_pitch(move),
                                          .to_pitch = whole_pitch(move)});
}

/* ---- unsharding ---------------------------------------------------------------------------- */

/* So many neighbouring ranks' shards make one slice of the gather. */
static uint64_t ranks_of_slice(const struct plan *plan, bool kept)
{
    return kept ? plan->shard_ranks / plan->options.reshard_ranks : 1;
}

static uint32_t n_member(const struct binding *of)
{
    return of->bind->plan->units[of->task->unit].n_param;
}

static const struct unit_layout *unit_layout_of(const struct binding *of)
{
    return of->bind->layout->units[of->task->unit];
}

/* Shards, or what an integer reshard kept, into the rank's slice. */
static void copy_in(struct binding *to, struct pieces *pieces)
{
    const uint32_t source = binding_source(to), gathered = binding_find(to, ROLE_GATHERED, 0);
    const bool kept = binding_buffer(to, source)->role == ROLE_KEPT;
    const uint64_t ranks = ranks_of_slice(to->bind->plan, kept);
    const uint64_t slice = unit_layout_of(to)->slice_bytes * ranks;
    const uint64_t me =
        kept ? to->bind->shard_rank % to->bind->plan->options.reshard_ranks : to->bind->shard_rank;
    char *mine = binding_member(to, gathered, 0) + me * slice;

    for (uint32_t i = 0; i < n_member(to); i++) {
        const struct member m = member_of(to->bind, to->task->unit, i);
        add(pieces,
            (struct pack_segment){.from = address(binding_member(to, source, i)),
                                  .to = address(mine) + m.place->gather_offset_bytes * ranks,
                                  .n = m.place->shard_elements * ranks,
                                  .from_dtype = kept ? m.policy->compute : m.policy->storage,
                                  .to_dtype = m.policy->compute});
    }
}

/* Whether what was gathered is what an integer reshard kept. */
static bool is_from_kept(const struct binding *of, uint32_t gathered)
{
    const struct task *copy_in_task = of->bind->writers[gathered];
    const struct binding writer = {.bind = of->bind, .launch = of->launch, .task = copy_in_task};
    return binding_find(&writer, ROLE_KEPT, 0) != NO_BUFFER;
}

static void copy_out_gathered(struct binding *to, struct pieces *pieces, uint32_t gathered,
                              uint32_t full)
{
    const struct plan *plan = to->bind->plan;
    const uint64_t ranks = ranks_of_slice(plan, is_from_kept(to, gathered));
    const uint64_t slice = unit_layout_of(to)->slice_bytes * ranks;

    for (uint32_t i = 0; i < n_member(to); i++) {
        const struct member m = member_of(to->bind, to->task->unit, i);
        const enum dtype dtype = (enum dtype)m.policy->compute;
        for (uint64_t r = 0; r < plan->shard_ranks; r++)
            shard_to_whole(pieces,
                           &(struct shard_move){
                               .member = &m,
                               .rank = r,
                               .whole = binding_member(to, full, i),
                               .shard = binding_member(to, gathered, 0) + r / ranks * slice +
                                        m.place->gather_offset_bytes * ranks +
                                        r % ranks * m.place->shard_elements * dtype_bytes(dtype),
                               .whole_dtype = dtype,
                               .shard_dtype = dtype});
    }
}

/* On one rank only the shard is the whole. */
static void copy_out(struct binding *to, struct pieces *pieces)
{
    const uint32_t source = binding_source(to), full = binding_find(to, ROLE_FULL, 0);

    if (binding_buffer(to, source)->role == ROLE_GATHERED) {
        copy_out_gathered(to, pieces, source, full);
        return;
    }
    for (uint32_t i = 0; i < n_member(to); i++) {
        const struct member m = member_of(to->bind, to->task->unit, i);
        add(pieces, (struct pack_segment){.from = address(binding_member(to, source, i)),
                                          .to = address(binding_member(to, full, i)),
                                          .n = m.place->numel,
                                          .from_dtype = m.policy->storage,
                                          .to_dtype = m.policy->compute});
    }
}

static void keep(struct binding *to, struct pieces *pieces)
{
    const struct plan *plan = to->bind->plan;
    const uint64_t ranks = ranks_of_slice(plan, true);
    const uint64_t first = to->bind->shard_rank % plan->options.reshard_ranks * ranks;
    const uint32_t full = binding_source(to), kept = binding_find(to, ROLE_KEPT, 0);

    for (uint32_t i = 0; i < n_member(to); i++) {
        const struct member m = member_of(to->bind, to->task->unit, i);
        const enum dtype dtype = (enum dtype)m.policy->compute;
        for (uint64_t r = 0; r < ranks; r++)
            whole_to_shard(pieces, &(struct shard_move){.member = &m,
                                                        .rank = first + r,
                                                        .whole = binding_member(to, full, i),
                                                        .shard = binding_member(to, kept, i) +
                                                                 r * m.place->shard_elements *
                                                                     dtype_bytes(dtype),
                                                        .whole_dtype = dtype,
                                                        .shard_dtype = dtype});
    }
}

/* ---- gradients ----------------------------------------------------------------------------- */

/* The dtype that gradients have in a buffer of this role. */
static enum dtype grad_dtype(const struct member *m, enum buffer_role role)
{
    return (enum dtype)(role == ROLE_ACCUMULATED ? m->policy->reduce : m->policy->grad);
}

/* Where the gradient of a member is, as a group or in place of one; NULL: it has none. */
static char *grad_of(const struct binding *of, const struct member *m, enum dtype *dtype)
{
    const bool filled = !m->policy->has_grad;
    uint32_t buffer = binding_find(of, ROLE_ZEROS, 0);

    if (!filled) {
        buffer = binding_find(of, ROLE_ACCUMULATED, 0);
        buffer = buffer == NO_BUFFER ? binding_find(of, ROLE_GRADS, 0) : buffer;
    }
    *dtype = grad_dtype(m, (enum buffer_role)binding_buffer(of, buffer)->role);
    return binding_member(of, buffer, of->bind->homes[m->param].grad);
}

static void precast(struct binding *to, struct pieces *pieces)
{
    uint64_t at = address(binding_member(to, binding_find(to, ROLE_PRECAST, 0), 0));

    for (uint32_t i = 0; i < n_member(to); i++) {
        const struct member m = member_of(to->bind, to->task->unit, i);
        enum dtype dtype;
        if (m.place->bucket == NO_BUCKET || m.policy->grad == m.policy->reduce ||
            m.policy->reduce != to->task->dtype)
            continue;
        const char *grad = grad_of(to, &m, &dtype);
        add(pieces, (struct pack_segment){.from = address(grad),
                                          .to = at,
                                          .n = m.place->numel,
                                          .from_dtype = (uint8_t)dtype,
                                          .to_dtype = m.policy->reduce});
        at += m.place->numel * dtype_bytes((enum dtype)m.policy->reduce);
    }
}

/* Bytes from the end of a member's shard to the next one's, in a rank's slice of the bucket. */
static uint64_t gap_behind(const struct binding *of, uint32_t i, const struct param_layout *place)
{
    const struct bucket *bucket = &unit_layout_of(of)->buckets[place->bucket];
    uint64_t next = bucket->shard_elements;

    for (uint32_t j = i + 1; j < n_member(of); j++) {
        const struct member m = member_of(of->bind, of->task->unit, j);
        if (m.place->bucket == place->bucket) {
            next = m.place->reduce_offset;
            break;
        }
    }
    return (next - place->reduce_offset - place->shard_elements) *
           dtype_bytes((enum dtype)bucket->dtype);
}

static void pack_member(struct binding *to, struct pieces *pieces, uint32_t i,
                        struct shard_move move)
{
    const struct member *m = move.member;
    const struct bucket *bucket = &unit_layout_of(to)->buckets[to->task->bucket];
    char *in = binding_member(to, binding_find(to, ROLE_REDUCE_IN, 0), 0);

    move.shard_dtype = (enum dtype)bucket->dtype;
    move.behind_bytes = gap_behind(to, i, m->place);
    for (move.rank = 0; move.rank < to->bind->plan->shard_ranks; move.rank++) {
        move.shard = in + (move.rank * bucket->shard_elements + m->place->reduce_offset) *
                              dtype_bytes(move.shard_dtype);
        whole_to_shard(pieces, &move);
    }
}

static void pack(struct binding *to, struct pieces *pieces)
{
    const uint32_t cast = binding_find(to, ROLE_PRECAST, 0);
    char *casted = cast == NO_BUFFER ? NULL : binding_member(to, cast, 0);

    for (uint32_t i = 0; i < n_member(to); i++) {
        const struct member m = member_of(to->bind, to->task->unit, i);
        struct shard_move move = {.member = &m};
        if (m.place->bucket != to->task->bucket)
            continue;
        move.whole = grad_of(to, &m, &move.whole_dtype);
        if (casted && m.policy->grad != m.policy->reduce) {
            move.whole = casted;
            move.whole_dtype = (enum dtype)m.policy->reduce;
            casted += m.place->numel * dtype_bytes(move.whole_dtype);
        }
        pack_member(to, pieces, i, move);
    }
}

static void zero_fill(struct binding *to, struct pieces *pieces)
{
    const uint32_t zeros = binding_find(to, ROLE_ZEROS, 0);
    const struct buffer *group = binding_buffer(to, zeros);

    for (uint32_t i = 0; i < group->n_member; i++)
        add(pieces,
            (struct pack_segment){.to = address(binding_member(to, zeros, i)),
                                  .n_zero = buffer_member_bytes(to->bind->program, group, i)});
}

/* ---- what scales and adds ------------------------------------------------------------------ */

/* As torch's div_ by a number: multiplies by the reciprocal in FP32 (spec GPU 1.4). */
static float scale_of(const struct task *task)
{
    return task->divisor == 1 ? 1 : 1.0f / (float)task->divisor;
}

static void add_post(struct binding *to, struct post_reduce post)
{
    struct post_reduce *kept = arena_array(&to->bind->arena, struct post_reduce, 1);
    struct work *work = binding_add(to, WORK_POST);

    *kept = post;
    work->n = 1;
    work->is.posts = kept;
}

/* In place, from one to another, or added to it. */
static void scale_and_add(struct binding *to)
{
    enum access_mode mode;
    const uint32_t target = binding_target(to, &mode), read = binding_source(to);
    const uint32_t source = read == NO_BUFFER ? target : read;

    add_post(to, (struct post_reduce){.from = binding_member(to, source, 0),
                                      .to = binding_member(to, target, 0),
                                      .n = to->task->elements,
                                      .from_dtype = (uint8_t)binding_dtype(to, source),
                                      .to_dtype = to->task->dtype,
                                      .accumulates = read != NO_BUFFER && mode == ACCESS_UPDATE,
                                      .scale = scale_of(to->task)});
}

/* Gradients of one microbatch to those of the ones before. */
static void accumulate(struct binding *to)
{
    enum access_mode mode;
    const uint32_t source = binding_source(to), target = binding_target(to, &mode);
    const enum buffer_role role = (enum buffer_role)binding_buffer(to, target)->role;

    for (uint32_t i = 0; i < n_member(to); i++) {
        const struct member m = member_of(to->bind, to->task->unit, i);
        const uint32_t at = to->bind->homes[m.param].grad;
        if (m.policy->has_grad)
            add_post(to, (struct post_reduce){.from = binding_member(to, source, at),
                                              .to = binding_member(to, target, at),
                                              .n = m.place->numel,
                                              .from_dtype = m.policy->grad,
                                              .to_dtype = (uint8_t)grad_dtype(&m, role),
                                              .accumulates = mode == ACCESS_UPDATE,
                                              .scale = 1});
    }
}

/* A border's cast, or the loss as the host will read it. */
static void cast(struct binding *to, struct pieces *pieces)
{
    enum access_mode mode;
    const uint32_t source = binding_source(to), target = binding_target(to, &mode);

    if (source == NO_BUFFER) {
        binding_add(to, WORK_LOSS)->is.loss = (float *)(void *)binding_member(to, target, 0);
        return;
    }
    add(pieces, (struct pack_segment){.from = address(binding_member(to, source, 0)),
                                      .to = address(binding_member(to, target, 0)),
                                      .n = to->task->elements,
                                      .from_dtype = (uint8_t)binding_dtype(to, source),
                                      .to_dtype = to->task->dtype});
}

void bind_move(struct binding *to)
{
    static void (*const tables[TASK_KIND_N])(struct binding *, struct pieces *) = {
        [TASK_COPY_IN] = copy_in, [TASK_COPY_OUT] = copy_out,   [TASK_KEEP] = keep,
        [TASK_PRECAST] = precast, [TASK_ZERO_FILL] = zero_fill, [TASK_PACK] = pack,
        [TASK_CAST] = cast,
    };
    struct pieces pieces = {.arena = &to->bind->arena};

    if (to->task->kind == TASK_ACCUMULATE)
        accumulate(to);
    else if (tables[to->task->kind])
        tables[to->task->kind](to, &pieces);
    else
        scale_and_add(to);
    finish(to, &pieces);
}
