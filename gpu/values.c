/*
 * Seeded numbers; see values.h. One generator, counted, so that any element is there at once.
 */
#include "gpu/values.h"

#include <math.h>
#include <string.h>

/* splitmix64's output number i of a stream; public domain algorithm by S. Vigna. */
static uint64_t draw(uint64_t stream, uint64_t i)
{
    uint64_t z = stream + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* In (0, 1). */
static double uniform(uint64_t stream, uint64_t i)
{
    return ((double)(draw(stream, i) >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller's transform, one of the two. */
static double normal(uint64_t stream, uint64_t i)
{
    const double radius = sqrt(-2 * log(uniform(stream, 2 * i)));
    return radius * cos(2 * M_PI * uniform(stream, 2 * i + 1));
}

static uint64_t stream_of(uint64_t seed, const char *name)
{
    uint64_t hash = seed ^ UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return draw(hash, 0);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

enum start { START_WEIGHT, START_ONE, START_ZERO, START_A_LOG, START_DT_BIAS };

static enum start start_of(const struct param *param)
{
    if (ends_with(param->name, "A_log"))
        return START_A_LOG;
    if (ends_with(param->name, "dt_bias"))
        return START_DT_BIAS;
    if (ends_with(param->name, "bias"))
        return START_ZERO;
    return param->n_dim == 1 ? START_ONE : START_WEIGHT;
}

static double start_value(enum start start, uint64_t stream, uint64_t i)
{
    switch (start) {
    case START_ONE:
        return 1;
    case START_ZERO:
        return 0;
    case START_A_LOG:
        return log(1 + 15 * uniform(stream, i));
    case START_DT_BIAS: {
        const double step = exp(log(0.001) + uniform(stream, i) * (log(0.1) - log(0.001)));
        return step + log(-expm1(-step));
    }
    default:
        return 0.02 * normal(stream, i);
    }
}

static enum status seeded_param(void *context, uint32_t param, uint64_t first, uint64_t n,
                                float *out, struct err *err)
{
    const struct seeded_values *from = context;
    const struct param *of = &from->plan->model->params[param];
    const uint64_t stream = stream_of(from->seed, of->name);
    const enum start start = start_of(of);

    (void)err;
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)start_value(start, stream, first + i);
    return STATUS_OK;
}

/* The first of a rank's sequences in a microbatch, counted over the whole run and all ranks. */
static uint64_t first_sequence(const struct seeded_values *from, uint32_t step, uint32_t microbatch)
{
    const struct plan_options *options = &from->plan->options;
    const uint64_t microbatches = (uint64_t)step * options->accum + microbatch;
    return from->sequences + (microbatches * from->plan->world + from->rank) * options->batch;
}

/* The one that a learner can find out. */
static uint64_t follower(uint64_t seed, uint64_t token, uint64_t vocab)
{
    return draw(seed, token) % vocab;
}

static void seeded_tokens(void *context, uint32_t step, uint32_t microbatch, uint64_t n,
                          int64_t *ids, int64_t *labels)
{
    const struct seeded_values *from = context;
    const uint64_t vocab = from->plan->model->dims.vocab, seq = from->plan->options.seq;
    const uint64_t first = first_sequence(from, step, microbatch);
    const uint64_t rule = stream_of(from->seed, "rule"), text = stream_of(from->seed, "text");

    for (uint64_t i = 0; i < n; i++) {
        const uint64_t stream = draw(text, first + i / seq), place = i % seq;
        const uint64_t any = draw(stream, 2 * place + 1) % vocab;
        const bool follows = draw(stream, 2 * place + 2) % 4 != 0;
        ids[i] = place == 0 ? (int64_t)(draw(stream, 0) % vocab) : labels[i - 1];
        labels[i] = (int64_t)(follows ? follower(rule, (uint64_t)ids[i], vocab) : any);
    }
}

static void seeded_hidden(void *context, uint32_t step, uint32_t microbatch, uint64_t n, float *out)
{
    const struct seeded_values *from = context;
    const uint64_t per_sequence = from->plan->options.seq * from->plan->model->dims.hidden;
    const uint64_t first = first_sequence(from, step, microbatch);
    const uint64_t text = stream_of(from->seed, "hidden");

    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)normal(draw(text, first + i / per_sequence), i % per_sequence);
}

struct values values_seeded(struct seeded_values *context)
{
    return (struct values){.context = context,
                           .param = seeded_param,
                           .tokens = seeded_tokens,
                           .hidden = seeded_hidden};
}
