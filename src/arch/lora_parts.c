/*
 * From the rows of linear layers to those of layers with adapters; see lora_parts.h.
 *
 *     forward    base = W x, mid = A x, up = B mid, scaled = s up, y = base + scaled
 *     backward   d_scaled = s d_y, then B's two products, A's two, and W's as before
 *
 * The adapter was built last and so runs first: what reaches x from it is there before what comes
 * through W, and the second is added to it in place. Only A x is saved that was not before.
 */
#include "src/arch/lora_parts.h"

#include <assert.h>
#include <string.h>

#include "src/arch/body_tensors.h"

/* The tensors of one adapter, behind the family's. */
enum {
    LORA_BASE,
    LORA_MID,
    LORA_UP,
    LORA_SCALED,
    LORA_D_SCALED,
    LORA_D_MID,
    LORA_D_IN,
    LORA_G_A,
    LORA_G_B,
    LORA_TENSORS
};
enum { MAX_LINEARS = 4 }; /* of a part */
_Static_assert(TENSOR_N + BLOCK_PARTS * MAX_LINEARS * LORA_TENSORS <= BODY_MAX_TENSORS,
               "more tensors than the builder holds");

struct linear {
    uint8_t weight; /* its gradient */
    uint8_t first;  /* of its adapter's tensors; NO_TENSOR where it has none */
};

struct adapting {
    struct body_builder *builder;
    struct body_tensor *tensors;
    uint32_t first_tensor; /* of the part's adapters */
    struct linear linears[MAX_LINEARS];
    uint32_t n_linear, n_product; /* n_product: of forward, so far */
};

struct row_list {
    struct arena *arena;
    struct body_row *at;
    uint32_t n, cap;
};

static void push(struct row_list *list, const struct body_row *row)
{
    list->at = arena_grow(list->arena, list->at, &list->cap, list->n + 1, sizeof *list->at);
    list->at[list->n++] = *row;
}
#define PUSH(list, ...) push((list), &(const struct body_row){__VA_ARGS__})

/* The words of body_builder.h, where sizes are not known by name. */
#define PRODUCT_OF(m_, n_, k_) RUN(MM), .unbiased = true, .m = (m_), .n = (n_), .k = (k_)
#define MOVES_OF(each, dim) .moved = {{(each), DIM_T, (dim), false}}

/* ---- gradients ---------------------------------------------------------------------------- */

static const struct piece *first_piece(const struct model *model, enum body_kind kind)
{
    const struct piece *piece = model->pieces;
    while (piece->kind != kind)
        piece++;
    return piece;
}

/* The gradient of the piece's next parameter. Of these the matrices are linear layers' weights. */
static uint8_t next_grad(struct adapting *adapting, const struct param *param, const uint8_t **base)
{
    if (param->adapter == ADAPTER_NONE) {
        assert(param->n_dim < 2 || adapting->n_linear < MAX_LINEARS);
        if (param->n_dim == 2)
            adapting->linears[adapting->n_linear++].weight = **base;
        return *(*base)++;
    }
    const uint32_t last = adapting->n_linear - 1; /* whose adapter it is */
    const uint8_t first = (uint8_t)(adapting->first_tensor + last * LORA_TENSORS);
    adapting->linears[last].first = first;
    return (uint8_t)(first + (param->adapter == ADAPTER_A ? LORA_G_A : LORA_G_B));
}

static void adapt_grads(struct adapting *adapting, const struct piece *piece,
                        struct body_part *part)
{
    const struct model *model = adapting->builder->model;
    const struct body_part core = *part;
    const uint8_t *base = core.grads;
    for (uint32_t i = 0; i < piece->n_param; i++)
        part->grads[i] =
            next_grad(adapting, &model->params[model->piece_params[piece->param + i]], &base);
}

/* ---- forward ------------------------------------------------------------------------------ */

static void add_tensors(struct adapting *adapting, uint8_t first, uint8_t out, uint8_t in)
{
    const uint8_t widths[LORA_G_A] = {
        [LORA_BASE] = out,     [LORA_MID] = DIM_R,   [LORA_UP] = out,  [LORA_SCALED] = out,
        [LORA_D_SCALED] = out, [LORA_D_MID] = DIM_R, [LORA_D_IN] = in,
    };
    for (int i = 0; i < LORA_G_A; i++)
        adapting->tensors[first + i] =
            (struct body_tensor){.size = {2, DIM_T, widths[i], false}, .name = "of an adapter"};
}

/* What the layer's row lets go of, the frame around it holds to the end. */
static void adapt_product(struct row_list *list, const struct body_row *linear, uint8_t first)
{
    struct body_row base = *linear;
    struct body_row sum = {RUN(ADD), MOVES_OF(6, linear->n), BORN(linear->born[0]),
                           DIES(first + LORA_SCALED, first + LORA_BASE)};
    memcpy(sum.dies + 2, linear->dies, sizeof sum.dies - 2);
    base.born[0] = (uint8_t)(first + LORA_BASE);
    memset(base.dies, NO_TENSOR, sizeof base.dies);
    push(list, &base);
    PUSH(list, PRODUCT_OF(DIM_T, DIM_R, linear->k), BORN(first + LORA_MID));
    PUSH(list, PRODUCT_OF(DIM_T, linear->n, DIM_R), BORN(first + LORA_UP), DIES(first + LORA_MID));
    PUSH(list, RUN(MUL), MOVES_OF(4, linear->n), BORN(first + LORA_SCALED), DIES(first + LORA_UP));
    push(list, &sum);
}

static struct body_rows adapt_forward(struct adapting *adapting, const struct body_rows *rows)
{
    struct row_list list = {.arena = adapting->builder->arena};
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct body_row *row = &rows->row[i];
        const uint8_t first =
            row->kind == OP_MM ? adapting->linears[adapting->n_product++].first : NO_TENSOR;
        if (first == NO_TENSOR) {
            push(&list, row);
            continue;
        }
        add_tensors(adapting, first, row->n, row->k);
        adapt_product(&list, row, first);
    }
    return (struct body_rows){list.at, list.n};
}

/* ---- backward ----------------------------------------------------------------------------- */

/* The gradient of a layer's weight is made of that of its output, and of its input. */
static uint8_t input_of(const struct body_row *wgrad, uint8_t d_out)
{
    const uint8_t reads[] = {wgrad->uses[0], wgrad->uses[1], wgrad->dies[0], wgrad->dies[1]};
    int i = 0;
    while (reads[i] == NO_TENSOR || reads[i] == d_out)
        i++;
    return reads[i];
}

/* What the adapter does with the gradient of the layer's output, to that of its input. */
static void add_adapter(struct row_list *list, const struct body_row *dgrad,
                        const struct body_row *wgrad, uint8_t first, uint8_t d_in)
{
    const uint8_t out = dgrad->k, in = dgrad->n, d_out = dgrad->uses[0];
    PUSH(list, RUN(MUL), MOVES_OF(4, out), BORN(first + LORA_D_SCALED), USES(d_out));
    PUSH(list, PRODUCT_OF(DIM_T, DIM_R, out), BORN(first + LORA_D_MID),
         USES(first + LORA_D_SCALED));
    PUSH(list, PRODUCT_OF(DIM_R, out, DIM_T), OF_WEIGHT, BORN(first + LORA_G_B),
         USES(first + LORA_MID, first + LORA_D_SCALED));
    PUSH(list, PRODUCT_OF(DIM_T, in, DIM_R), BORN(d_in), USES(first + LORA_D_MID));
    PUSH(list, PRODUCT_OF(in, DIM_R, DIM_T), OF_WEIGHT, BORN(first + LORA_G_A),
         USES(input_of(wgrad, d_out), first + LORA_D_MID));
}

static void add_sum(struct row_list *list, uint8_t to, uint8_t summand, uint8_t dim)
{
    PUSH(list, RUN(ADD), MOVES_OF(6, dim), CHANGES(to), DIES(summand));
}

/* Two rows, with a third where the layer's input has been reached by others before. */
static void adapt_gradients(struct row_list *list, const struct body_row *row, uint32_t n,
                            uint8_t first)
{
    struct body_row dgrad = row[0];
    const uint8_t d_in = dgrad.born[0], own = (uint8_t)(first + LORA_D_IN);
    const bool is_summand = n > 2 && row[2].kind == OP_ADD && row[2].dies[0] == d_in;
    add_adapter(list, &dgrad, &row[1], first, is_summand ? own : d_in);
    if (is_summand)
        add_sum(list, row[2].changes[0], own, dgrad.n);
    else
        dgrad.born[0] = own;
    push(list, &dgrad);
    push(list, &row[1]);
    if (!is_summand)
        add_sum(list, d_in, own, dgrad.n);
}

/* The tensors of the adapter whose layer has its gradients in this row and the next, or none. */
static uint8_t find_adapter(const struct adapting *adapting, const struct body_row *row, uint32_t n)
{
    if (n < 2 || row[0].kind != OP_MM || !row[1].weight_grad || row[1].kind != OP_MM)
        return NO_TENSOR;
    for (uint32_t i = 0; i < adapting->n_linear; i++)
        if (adapting->linears[i].weight == row[1].born[0])
            return adapting->linears[i].first;
    return NO_TENSOR;
}

static struct body_rows adapt_backward(const struct adapting *adapting,
                                       const struct body_rows *rows)
{
    struct row_list list = {.arena = adapting->builder->arena};
    for (uint32_t i = 0, n = 1; i < rows->n; i += n) {
        const uint8_t first = find_adapter(adapting, &rows->row[i], rows->n - i);
        n = first == NO_TENSOR ? 1 : 2;
        if (first == NO_TENSOR)
            push(&list, &rows->row[i]);
        else
            adapt_gradients(&list, &rows->row[i], rows->n - i, first);
    }
    return (struct body_rows){list.at, list.n};
}

/* ---- parts -------------------------------------------------------------------------------- */

static void adapt_part(struct body_builder *builder, struct body_tensor *tensors, uint32_t at,
                       struct body_part *part)
{
    static const enum body_kind kinds[BLOCK_PARTS] = {BODY_ATTENTION, BODY_MLP};
    struct adapting adapting = {.builder = builder,
                                .tensors = tensors,
                                .first_tensor = TENSOR_N + at * MAX_LINEARS * LORA_TENSORS};
    adapt_grads(&adapting, first_piece(builder->model, kinds[at]), part);
    for (int list = 0; list < BODY_LISTS; list++) {
        part->forward[list] = adapt_forward(&adapting, &part->forward[list]);
        part->backward[list] = adapt_backward(&adapting, &part->backward[list]);
    }
}

void lora_adapt(struct body_builder *builder, struct body_part parts[BLOCK_PARTS])
{
    struct body_tensor *tensors = arena_array(builder->arena, struct body_tensor, BODY_MAX_TENSORS);
    memcpy(tensors, builder->tensors, TENSOR_N * sizeof *tensors);
    builder->tensors = tensors;
    for (uint32_t at = 0; at < BLOCK_PARTS; at++)
        adapt_part(builder, tensors, at, &parts[at]);
}
