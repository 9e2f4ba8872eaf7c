/*
 * Makes the operands of a case, runs its passes and judges what they wrote.
 *
 * Tensors end where their memory ends, so that the address sanitizer sees a step too far; what is
 * to be written holds 0xA5 before.
 */
#include "tests/op_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/number.h"
#include "tests/tap.h"

enum { N_PASS = 4, MAX_TENSORS = TRIAL_MAX_OUT + TRIAL_MAX_IN };

struct trial {
    const struct op_case *is;
    const struct op_sizes *sizes;
    struct op_shape shape;
    struct step_state state;
    uint64_t *seed;
    uint8_t dtype;
    struct op_tensor in[TRIAL_MAX_IN], d_out, labels;
    struct op_tensor written[MAX_TENSORS]; /* outputs, then gradients of inputs */
    double *in_values[TRIAL_MAX_IN], *out_values[TRIAL_MAX_OUT], *d_values;
    int without; /* of written: nobody wants it; -1: all are wanted */
    bool adds;   /* modes of what may be added to */
};

host_op *(*op_trial_find)(enum op_kind kind, enum op_pass pass) = host_op_find;

/* ---- operands ----------------------------------------------------------------------------- */

static uint64_t dimension(const struct op_sizes *s, char letter)
{
    switch (letter) {
    case 'T':
        return s->batch * s->seq;
    case 'H':
        return s->hidden;
    case 'F':
        return s->inner;
    case 'V':
        return s->vocab;
    case 'P':
        return s->positions;
    case 'N':
        return s->heads;
    case 'D':
        return s->head_dim;
    case 'Q':
        return s->heads * s->head_dim;
    case 'K':
        return s->kv_heads * s->head_dim;
    case 'W':
        return (s->heads + 2 * s->kv_heads) * s->head_dim;
    case 'B':
        return s->batch;
    case 'C':
        return (s->seq + DELTA_CHUNK - 1) / DELTA_CHUNK;
    case '4':
        return 4;
    }
    return 1;
}

static struct op_tensor make_tensor(const struct trial *trial, const char *dims)
{
    struct op_tensor tensor = {.dtype = strchr(dims, '.') ? DTYPE_FP32 : trial->dtype, .n = 1};
    for (; *dims; dims++)
        tensor.n *= dimension(trial->sizes, *dims);
    tensor.at = malloc(tensor.n * dtype_bytes(tensor.dtype));
    return tensor;
}

static void poison(const struct op_tensor *tensor)
{
    memset(tensor->at, 0xA5, tensor->n * dtype_bytes(tensor->dtype));
}

static double draw(struct trial *trial, const char *dims)
{
    const double x = (double)tap_below(trial->seed, 3001) / 1000 - 1.5;
    if (strchr(dims, '-'))
        return -fabs(x) / 4;
    if (strchr(dims, '+'))
        return fabs(x) / 2 + 0.1;
    if (strchr(dims, '~'))
        return x / sqrt((double)trial->sizes->head_dim);
    return strchr(dims, '^') ? 3 * x : x;
}

/* Random numbers into the tensor; returns them as the tensor has them. */
static double *fill(struct trial *trial, const struct op_tensor *tensor, const char *dims)
{
    double *values = malloc(tensor->n * sizeof *values);
    for (uint64_t i = 0; i < tensor->n; i++) {
        number_set(tensor->dtype, tensor->at, i, draw(trial, dims));
        values[i] = number_get(tensor->dtype, tensor->at, i);
    }
    return values;
}

static void make_labels(struct trial *trial)
{
    const uint64_t tokens = dimension(trial->sizes, 'T');
    int64_t *labels = malloc(tokens * sizeof *labels);
    for (uint64_t t = 0; t < tokens; t++)
        labels[t] = (int64_t)tap_below(trial->seed, trial->sizes->vocab);
    trial->labels = (struct op_tensor){.at = labels, .n = tokens};
}

static void make_inputs(struct trial *trial)
{
    for (int i = 0; i < TRIAL_MAX_IN; i++) {
        const char *dims = trial->is->in[i];
        if (!dims)
            continue;
        trial->in[i] = make_tensor(trial, dims);
        trial->in_values[i] = fill(trial, &trial->in[i], dims);
        trial->written[TRIAL_MAX_OUT + i] = make_tensor(trial, dims);
    }
    make_labels(trial);
}

static void make_outputs(struct trial *trial)
{
    for (int i = 0; i < TRIAL_MAX_OUT; i++) {
        const char *dims = trial->is->out[i];
        if (!dims)
            continue;
        trial->written[i] = make_tensor(trial, dims);
        trial->out_values[i] = malloc(trial->written[i].n * sizeof(double));
        if (i != trial->is->counts)
            continue;
        trial->d_out = make_tensor(trial, dims);
        trial->d_values = fill(trial, &trial->d_out, dims);
        if (strchr(dims, '1'))
            trial->d_values[0] = (double)trial->state.grad_scale;
    }
}

static void trial_init(struct trial *trial, const struct op_case *is, const struct op_sizes *sizes,
                       enum dtype dtype, uint64_t *seed)
{
    *trial = (struct trial){.is = is,
                            .sizes = sizes,
                            .shape = {.batch = sizes->batch,
                                      .seq = sizes->seq,
                                      .heads = sizes->heads,
                                      .kv_heads = sizes->kv_heads,
                                      .head_dim = sizes->head_dim,
                                      .vocab = sizes->vocab,
                                      .rope_base = sizes->rope_base},
                            .state = {.grad_scale = 12},
                            .seed = seed,
                            .dtype = (uint8_t)dtype,
                            .without = -1};
    make_inputs(trial);
    make_outputs(trial);
}

static void trial_release(struct trial *trial)
{
    for (int i = 0; i < TRIAL_MAX_IN; i++) {
        free(trial->in[i].at);
        free(trial->in_values[i]);
    }
    for (int i = 0; i < MAX_TENSORS; i++)
        free(trial->written[i].at);
    for (int i = 0; i < TRIAL_MAX_OUT; i++)
        free(trial->out_values[i]);
    free(trial->labels.at);
    free(trial->d_out.at);
    free(trial->d_values);
}

/* ---- passes ------------------------------------------------------------------------------- */

static const char *roles_of(const struct op_case *is, int pass)
{
    const char *const roles[N_PASS] = {is->forward, is->dgrad, is->wgrad, is->bias_wgrad};
    return roles[pass];
}

/* Which of written a role of this pass writes, or -1. */
static int written_by(const char *role, int pass)
{
    if (pass == 0 && (role[0] == 'O' || role[0] == 'A'))
        return role[1] - '0';
    return role[0] == 'G' || role[0] == 'g' ? TRIAL_MAX_OUT + role[1] - '0' : -1;
}

static struct op_tensor operand(const struct trial *trial, const char *role, int pass)
{
    struct op_tensor tensor = {.at = NULL};
    const int writes = written_by(role, pass);
    if (writes >= 0 && writes != trial->without) {
        tensor = trial->written[writes];
        tensor.mode = trial->adds && strchr("AG", role[0]) ? OP_UPDATE : OP_WRITE;
    } else if (role[0] == 'I') {
        tensor = trial->in[role[1] - '0'];
    } else if (role[0] == 'O' && pass > 0) {
        tensor = trial->written[role[1] - '0'];
    } else if (role[0] == 'D') {
        tensor = trial->d_out;
    } else if (role[0] == 'L') {
        tensor = trial->labels;
    }
    return tensor;
}

static void set_product(const struct trial *trial, struct op_call *call)
{
    const uint64_t t = dimension(trial->sizes, 'T');
    const uint64_t h = trial->sizes->hidden, f = trial->sizes->inner;
    const uint64_t of_pass[][3] = {
        [PASS_FORWARD] = {t, f, h}, [PASS_DGRAD] = {t, h, f}, [PASS_WGRAD] = {f, h, t}};
    call->weight_in_first = trial->is->weight_in_first;
    call->m = of_pass[call->pass][0];
    call->n = of_pass[call->pass][1];
    call->k = of_pass[call->pass][2];
}

static void run_pass(struct trial *trial, int pass)
{
    static const enum op_pass passes[N_PASS] = {PASS_FORWARD, PASS_DGRAD, PASS_WGRAD, PASS_WGRAD};
    const char *role = roles_of(trial->is, pass);
    struct op_call call = {.kind = pass == 3 ? OP_SUM : trial->is->kind,
                           .pass = passes[pass],
                           .shape = &trial->shape,
                           .state = &trial->state};
    if (!role)
        return;
    for (; role; role = strchr(role, ' ')) {
        role += *role == ' ';
        call.tensors[call.n_tensor++] = operand(trial, role, pass);
    }
    set_product(trial, &call);
    host_op *run = op_trial_find(call.kind, call.pass);
    if (run)
        run(&call);
    else
        ok(run, "%s: it is there in pass %d", trial->is->name, pass);
}

static void run_all(struct trial *trial)
{
    for (int pass = 0; pass < N_PASS; pass++)
        run_pass(trial, pass);
}

static void poison_written(struct trial *trial)
{
    for (int i = 0; i < MAX_TENSORS; i++)
        if (trial->written[i].at)
            poison(&trial->written[i]);
}

/* ---- values ------------------------------------------------------------------------------- */

/* Sums over elements of one tensor. */
struct distance {
    double error, want; /* squares */
    uint64_t n;
};

static void distance_add(struct distance *distance, double got, double want)
{
    distance->error += (got - want) * (got - want);
    distance->want += want * want;
    distance->n++;
}

/* Of what is allowed. least: of the root mean square of what is wanted, so that a sum of terms about
   one that happens to be small is not held against itself. */
static double distance_share(const struct trial *trial, const struct distance *distance,
                             enum dtype dtype, double least)
{
    const double bound = (trial->is->bound > 0 ? trial->is->bound : 2e-6) + number_unit(dtype);
    const double root = sqrt((double)distance->n);
    double size = sqrt(distance->want);
    if (size < 1e-9 * root)
        size = root;
    size = fmax(size, least * root);
    const double step = dtype == DTYPE_FP16 ? 0x1p-25 * root : 0; /* of subnormal numbers, half */
    return sqrt(distance->error) / (bound * size + step);
}

static void refer(struct trial *trial)
{
    trial->is->reference(trial->sizes, trial->labels.at, trial->in_values, trial->out_values);
}

static void check_values(struct trial *trial)
{
    refer(trial);
    for (int i = 0; i < TRIAL_MAX_OUT && trial->is->out[i]; i++) {
        const struct op_tensor *out = &trial->written[i];
        struct distance distance = {0};
        for (uint64_t e = 0; e < out->n; e++)
            distance_add(&distance, number_get(out->dtype, out->at, e), trial->out_values[i][e]);
        const double share = distance_share(trial, &distance, out->dtype, 0.3);
        ok(share <= 1, "%s, %s: output %d is the reference's, error %.2f of the bound",
           trial->is->name, dtype_name(trial->dtype), i, share);
    }
}

/* Of sum(d * out) by this element, a central difference. */
static double slope(struct trial *trial, double *element)
{
    const double here = *element, step = 1e-4;
    const uint8_t counts = trial->is->counts;
    double change = 0;
    for (int side = 1; side >= -1; side -= 2) {
        *element = here + side * step;
        refer(trial);
        for (uint64_t i = 0; i < trial->d_out.n; i++)
            change += side * trial->d_values[i] * trial->out_values[counts][i];
    }
    *element = here;
    return change / (2 * step);
}

static void check_gradient(struct trial *trial, int i, uint32_t n_sample)
{
    const struct op_tensor *grad = &trial->written[TRIAL_MAX_OUT + i];
    struct distance distance = {0};
    const bool all = grad->n <= n_sample;
    for (uint64_t s = 0; s < (all ? grad->n : n_sample); s++) {
        const uint64_t e = all ? s : tap_below(trial->seed, grad->n);
        distance_add(&distance, number_get(grad->dtype, grad->at, e),
                     slope(trial, &trial->in_values[i][e]));
    }
    const double share = distance_share(trial, &distance, grad->dtype, 0);
    ok(share <= 1, "%s, %s: gradient of input %d is the difference's, error %.2f of the bound",
       trial->is->name, dtype_name(trial->dtype), i, share);
}

static void check_gradients(struct trial *trial, uint32_t n_sample)
{
    for (int pass = 1; pass < N_PASS; pass++)
        for (const char *role = roles_of(trial->is, pass); role && *role; role++)
            if (written_by(role, pass) >= 0)
                check_gradient(trial, role[1] - '0', n_sample);
}

/* ---- bytes -------------------------------------------------------------------------------- */

static void copy_written(const struct trial *trial, struct op_tensor *copies)
{
    for (int i = 0; i < MAX_TENSORS; i++) {
        const uint64_t bytes = trial->written[i].n * dtype_bytes(trial->written[i].dtype);
        copies[i] = trial->written[i];
        if (!trial->written[i].at)
            continue;
        copies[i].at = malloc(bytes);
        memcpy(copies[i].at, trial->written[i].at, bytes);
    }
}

static void free_copies(struct op_tensor *copies)
{
    for (int i = 0; i < MAX_TENSORS; i++)
        free(copies[i].at);
}

static bool same_bytes(const struct op_tensor *a, const struct op_tensor *b)
{
    return !a->at || memcmp(a->at, b->at, a->n * dtype_bytes(a->dtype)) == 0;
}

static void check_again(struct trial *trial, const struct op_tensor *first)
{
    bool same = true;
    poison_written(trial);
    run_all(trial);
    for (int i = 0; i < MAX_TENSORS; i++)
        same &= same_bytes(&trial->written[i], &first[i]);
    ok(same, "%s, %s: a second run gives the same bytes", trial->is->name,
       dtype_name(trial->dtype));
}

static uint32_t count_written(const struct trial *trial, int pass)
{
    uint32_t n = 0;
    for (const char *role = roles_of(trial->is, pass); role && *role; role++)
        n += written_by(role, pass) >= 0;
    return n;
}

/* Each result of a pass that has others is left out once; the others are as before. */
static void check_absent(struct trial *trial, const struct op_tensor *first)
{
    bool same = true;
    for (int pass = 0; pass < N_PASS; pass++)
        for (const char *role = roles_of(trial->is, pass); role && *role; role++) {
            trial->without = written_by(role, pass);
            if (trial->without < 0 || count_written(trial, pass) < 2)
                continue;
            run_pass(trial, pass);
            for (int i = 0; i < MAX_TENSORS; i++)
                same &= same_bytes(&trial->written[i], &first[i]);
        }
    trial->without = -1;
    ok(same, "%s, %s: what is not wanted changes nothing else", trial->is->name,
       dtype_name(trial->dtype));
}

/* What was there, and then what is written, rounded. */
static bool is_sum(const struct op_tensor *got, const double *before, const struct op_tensor *more)
{
    for (uint64_t i = 0; i < got->n; i++) {
        const double sum = before[i] + number_get(more->dtype, more->at, i);
        if (number_get(got->dtype, got->at, i) != number_nearest(got->dtype, sum))
            return false;
    }
    return true;
}

static bool adds_rightly(struct trial *trial, int pass, int which, const struct op_tensor *first)
{
    struct op_tensor *written = &trial->written[which];
    double *before = fill(trial, written, "");
    trial->adds = true;
    run_pass(trial, pass);
    trial->adds = false;
    const bool right = is_sum(written, before, &first[which]);
    memcpy(written->at, first[which].at, written->n * dtype_bytes(written->dtype));
    free(before);
    return right;
}

static void check_updates(struct trial *trial, const struct op_tensor *first)
{
    bool right = true;
    for (int pass = 0; pass < N_PASS; pass++)
        for (const char *role = roles_of(trial->is, pass); role && *role; role++)
            if (strchr("AG", role[0]) && written_by(role, pass) >= 0)
                right &= adds_rightly(trial, pass, written_by(role, pass), first);
    ok(right, "%s, %s: an update rounds, then adds with one rounding", trial->is->name,
       dtype_name(trial->dtype));
}

void op_trial(const struct op_case *is, const struct op_sizes *sizes, enum dtype dtype,
              uint32_t n_sample, uint64_t *seed)
{
    struct trial trial;
    struct op_tensor first[MAX_TENSORS];
    trial_init(&trial, is, sizes, dtype, seed);
    poison_written(&trial);
    run_all(&trial);
    check_values(&trial);
    check_gradients(&trial, n_sample);
    copy_written(&trial, first);
    check_again(&trial, first);
    check_absent(&trial, first);
    check_updates(&trial, first);
    free_copies(first);
    trial_release(&trial);
}

void op_trial_dtypes(const struct op_case *is, const struct op_sizes *sizes, uint32_t n_sample,
                     uint64_t *seed)
{
    op_trial(is, sizes, DTYPE_FP32, n_sample, seed);
    op_trial(is, sizes, DTYPE_BF16, n_sample, seed);
    op_trial(is, sizes, DTYPE_FP16, n_sample, seed);
}
