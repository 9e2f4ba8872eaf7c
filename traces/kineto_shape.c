/*
 * Sizes of products, attention and collectives from the arguments of their events.
 *
 * Operators are the innermost ones, which launch the kernels themselves: what calls them is not
 * counted again. An argument that is not as PyTorch writes it gives no size.
 */
#include <string.h>

#include "traces/kineto_inner.h"

enum { DIM_MAX = 4, INPUT_MAX = 4 };

struct shape {
    int64_t at[DIM_MAX];
    int n; /* -1: none, or more than DIM_MAX */
};

/* Which inputs tell the shape: of products the two factors, of attention queries and keys. */
struct op_inputs {
    const char *name;
    uint8_t op;         /* enum kineto_op */
    uint8_t a, b;       /* of "Input Dims" */
    uint8_t seq, heads; /* attention: where they stand in a shape */
    uint8_t causal;     /* attention: of "Concrete Inputs" */
};

static const struct op_inputs ops[] = {
    {"aten::mm", KINETO_MATMUL, 0, 1, 0, 0, 0},
    {"aten::addmm", KINETO_MATMUL, 1, 2, 0, 0, 0},
    {"aten::_addmm_activation", KINETO_MATMUL, 1, 2, 0, 0, 0},
    {"aten::bmm", KINETO_MATMUL, 0, 1, 0, 0, 0},
    {"aten::baddbmm", KINETO_MATMUL, 1, 2, 0, 0, 0},
    {"aten::_flash_attention_forward", KINETO_SDPA, 0, 1, 1, 2, 8},
    {"aten::_flash_attention_backward", KINETO_SDPA_BACKWARD, 1, 2, 1, 2, 11},
    {"aten::_scaled_dot_product_cudnn_attention", KINETO_SDPA, 0, 1, 2, 1, 6},
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The element of a list; false where it ends before. */
static bool element_at(const struct json_span *list, unsigned index, struct json_span *out)
{
    struct json_scan scan = json_scan_of(list->at, list->length);
    if (list->type != SPAN_ARRAY || !json_scan_open(&scan, '['))
        return false;
    for (unsigned i = 0; i <= index; i++) {
        if (!json_scan_element(&scan, out))
            return false;
    }
    return true;
}

static struct shape shape_of(const struct json_span *inputs, unsigned index)
{
    struct shape shape = {.n = -1};
    struct json_span list, value;
    if (!element_at(inputs, index, &list) || list.type != SPAN_ARRAY)
        return shape;
    struct json_scan scan = json_scan_of(list.at, list.length);
    int n = 0;
    for (json_scan_open(&scan, '['); json_scan_element(&scan, &value); n++) {
        if (n == DIM_MAX || !json_span_int(&value, &shape.at[n]) || shape.at[n] < 1)
            return shape;
    }
    shape.n = n;
    return shape;
}

static bool set_product(struct shape a, struct shape b, struct kineto_product_key *key)
{
    if (a.n != b.n || (a.n != 2 && a.n != 3) || a.at[a.n - 1] != b.at[b.n - 2])
        return false;
    key->batch = a.n == 3 ? a.at[0] : 1;
    key->m = a.at[a.n - 2];
    key->k = a.at[a.n - 1];
    key->n = b.at[b.n - 1];
    return a.n == 2 || a.at[0] == b.at[0];
}

static bool set_attention(struct shape q, struct shape k, const struct op_inputs *of,
                          struct kineto_product_key *key)
{
    if (q.n != DIM_MAX || k.n != DIM_MAX || q.at[0] != k.at[0] ||
        q.at[DIM_MAX - 1] != k.at[DIM_MAX - 1])
        return false;
    key->m = q.at[of->seq];
    key->k = k.at[of->seq];
    key->n = q.at[DIM_MAX - 1];
    return !__builtin_mul_overflow(q.at[0], q.at[of->heads], &key->batch);
}

uint32_t kineto_product_of(struct kineto_state *state, const struct trace_event *event)
{
    const struct json_span *dims = &event->args[ARG_INPUT_DIMS];
    const struct op_inputs *of = NULL;
    struct kineto_product_key key = {0};
    struct json_span type, causal;
    for (size_t i = 0; i < LENGTH(ops) && !of; i++) {
        if (json_span_is(&event->name, ops[i].name))
            of = &ops[i];
    }
    if (!of || !element_at(&event->args[ARG_INPUT_TYPES], of->a, &type))
        return KINETO_NONE;
    const struct shape a = shape_of(dims, of->a), b = shape_of(dims, of->b);
    if (of->op == KINETO_MATMUL ? !set_product(a, b, &key) : !set_attention(a, b, of, &key))
        return KINETO_NONE;
    key.op = of->op;
    key.dtype = kineto_name_of(state, &type);
    key.causal = of->op != KINETO_MATMUL &&
                 element_at(&event->args[ARG_CONCRETE_INPUTS], of->causal, &causal) &&
                 json_span_is(&causal, "True");
    return kineto_id(&state->products, &key, sizeof(key));
}

double kineto_product_flop(const struct kineto_product *product)
{
    const double square = (double)product->batch * (double)product->m * (double)product->k;
    const double factors[] = {[KINETO_MATMUL] = 2, [KINETO_SDPA] = 4, [KINETO_SDPA_BACKWARD] = 10};
    return factors[product->op] * square * (double)product->n * (product->causal ? 0.5 : 1);
}

/* As torch spells the types of collectives. 0: another. */
static uint64_t dtype_bytes(const struct json_span *dtype)
{
    static const struct {
        const char *name;
        uint8_t bytes;
    } dtypes[] = {
        {"Float", 4},  {"BFloat16", 2}, {"Half", 2},   {"Double", 8},        {"Byte", 1},
        {"Char", 1},   {"Bool", 1},     {"Int", 4},    {"Long", 8},          {"Short", 2},
        {"UInt16", 2}, {"UInt32", 4},   {"UInt64", 8}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
    };
    for (size_t i = 0; i < LENGTH(dtypes); i++) {
        if (json_span_is(dtype, dtypes[i].name))
            return dtypes[i].bytes;
    }
    return 0;
}

/* One side is the slice of a rank, which one depends on the kind: the larger is the message. */
uint32_t kineto_collective_of(struct kineto_state *state, const struct trace_event *event)
{
    const struct json_span *args = event->args;
    struct kineto_collective_key key = {0};
    int64_t in, out, ranks, bytes;
    if (args[ARG_COLLECTIVE_NAME].type != SPAN_STRING ||
        !json_span_int(&args[ARG_IN_NELEMS], &in) || !json_span_int(&args[ARG_OUT_NELEMS], &out) ||
        !json_span_int(&args[ARG_GROUP_SIZE], &ranks) || in < 0 || out < 0 || ranks < 1 ||
        ranks > UINT32_MAX)
        return KINETO_NONE;
    const int64_t elements = in > out ? in : out;
    if (__builtin_mul_overflow(elements, (int64_t)dtype_bytes(&args[ARG_DTYPE]), &bytes))
        return KINETO_NONE;
    key.elements = (uint64_t)elements;
    key.bytes = (uint64_t)bytes;
    key.ranks = (uint64_t)ranks;
    key.kind = kineto_collective_kind(&args[ARG_COLLECTIVE_NAME]);
    key.group = kineto_name_of(state, &args[ARG_GROUP_NAME]);
    key.list = kineto_name_of(state, &args[ARG_GROUP_RANKS]);
    key.dtype = kineto_name_of(state, &args[ARG_DTYPE]);
    return kineto_id(&state->collectives, &key, sizeof(key));
}

uint32_t kineto_collective_unsized(struct kineto_state *state, const char *kernel)
{
    const struct json_span name = {SPAN_STRING, kernel, strlen(kernel)};
    const struct json_span none = {SPAN_STRING, "", 0};
    struct kineto_collective_key key = {.kind = kineto_collective_kind(&name)};
    key.group = key.list = key.dtype = kineto_name_of(state, &none);
    return kineto_id(&state->collectives, &key, sizeof(key));
}
