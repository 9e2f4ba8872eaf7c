/*
 * Schemes are found from a model's pieces, not from names of modules, so that they hold for every
 * family. Invariant: a scheme never claims a module twice.
 */
#include "src/plan_schemes.h"

#include <assert.h>
#include <string.h>

struct scheme_run {
    const struct model *model;
    struct arena *arena;
    struct unit_drafts *drafts;
    const char *origin;
    uint64_t blocks_per_unit;
};

static uint32_t draft_new(struct scheme_run *run)
{
    return unit_drafts_add(run->drafts, run->arena, run->origin, "");
}

/* One past the last piece of the block that starts at this piece; the piece itself if none does. */
static uint32_t block_end(const struct model *model, uint32_t piece)
{
    uint32_t end = piece;
    while (end < model->n_piece && model->pieces[end].layer == model->pieces[piece].layer &&
           (model->pieces[end].kind == BODY_ATTENTION || model->pieces[end].kind == BODY_MLP ||
            model->pieces[end].kind == BODY_PARAMETERS))
        end++;
    return end;
}

/* The innermost module that holds all parameters of some consecutive pieces. */
static uint32_t common_module(const struct model *model, uint32_t piece, uint32_t end)
{
    const struct piece *last = &model->pieces[end - 1];
    uint32_t low = UINT32_MAX, high = 0;
    for (uint32_t i = model->pieces[piece].param; i < last->param + last->n_param; i++) {
        uint32_t param = model->piece_params[i];
        low = param < low ? param : low;
        high = param > high ? param : high;
    }
    uint32_t module = model->params[low].module;
    while (model->modules[module].end_param <= high)
        module = model->modules[module].parent;
    return module;
}

uint32_t plan_block_module(const struct model *model, uint32_t layer)
{
    uint32_t piece = 0;
    while (block_end(model, piece) == piece || model->pieces[piece].layer != layer)
        piece++;
    return common_module(model, piece, block_end(model, piece));
}

static void claim_block(struct scheme_run *run, uint32_t draft, uint32_t piece, uint32_t end)
{
    uint32_t module = common_module(run->model, piece, end);
    assert(module != 0 && run->drafts->of_module[module] == NO_DRAFT);
    run->drafts->of_module[module] = draft;
}

static void draft_blocks(struct scheme_run *run)
{
    uint32_t draft = NO_DRAFT;
    uint64_t n = 0;
    for (uint32_t piece = 0, end; piece < run->model->n_piece; piece = end) {
        end = block_end(run->model, piece);
        if (end == piece) {
            end++;
            continue;
        }
        if (n++ % run->blocks_per_unit == 0)
            draft = draft_new(run);
        claim_block(run, draft, piece, end);
    }
}

/* Attention and its norm are siblings below the block, so that half a block is a list. */
static void claim_half(struct scheme_run *run, uint32_t block, uint32_t piece)
{
    const struct model *model = run->model;
    const struct piece *half = &model->pieces[piece];
    uint32_t draft = draft_new(run);
    for (uint32_t i = half->param; i < half->param + half->n_param; i++) {
        uint32_t module = model->params[model->piece_params[i]].module;
        assert(module != block);
        while (model->modules[module].parent != block)
            module = model->modules[module].parent;
        assert(run->drafts->of_module[module] == NO_DRAFT ||
               run->drafts->of_module[module] == draft);
        run->drafts->of_module[module] = draft;
        if (i == half->param)
            run->drafts->drafts[draft].named_after = module;
    }
}

static void draft_halves(struct scheme_run *run)
{
    for (uint32_t piece = 0, end; piece < run->model->n_piece; piece = end) {
        end = block_end(run->model, piece);
        if (end == piece) {
            end++;
            continue;
        }
        uint32_t block = common_module(run->model, piece, end);
        for (uint32_t half = piece; half < end; half++)
            claim_half(run, block, half);
    }
}

/* The modules that own a piece's parameters themselves, be they one or several. */
static void claim_owners(struct scheme_run *run, uint32_t draft, uint32_t piece)
{
    const struct piece *p = &run->model->pieces[piece];
    for (uint32_t i = p->param; i < p->param + p->n_param; i++)
        run->drafts->of_module[run->model->params[run->model->piece_params[i]].module] = draft;
}

/*
 * What is around the blocks: embedding, norm and head, all of them one unit where embedding and head
 * are tied. Else the embedding is one, and norm and head are one together or one each.
 */
static void draft_ends(struct scheme_run *run, bool norm_with_head)
{
    const struct model *model = run->model;
    uint32_t tail = NO_DRAFT;
    for (uint32_t piece = 0; piece < model->n_piece; piece++) {
        uint8_t kind = model->pieces[piece].kind;
        if (kind != BODY_EMBEDDING && kind != BODY_NORM && kind != BODY_HEAD)
            continue;
        if (model->tied_head == 0 && (kind == BODY_EMBEDDING || !norm_with_head))
            claim_owners(run, draft_new(run), piece);
        else {
            if (tail == NO_DRAFT)
                tail = draft_new(run);
            claim_owners(run, tail, piece);
        }
    }
    if (model->tied_head != 0)
        run->drafts->of_module[model->tied_head] = tail;
}

static void draft_torchtitan(struct scheme_run *run)
{
    draft_blocks(run);
    draft_ends(run, true);
}

static void draft_pieces(struct scheme_run *run)
{
    draft_blocks(run);
    draft_ends(run, false);
}

static void draft_half_pieces(struct scheme_run *run)
{
    draft_halves(run);
    draft_ends(run, false);
}

/* Nothing is claimed: all of it is the root's. */
static void draft_whole(struct scheme_run *run)
{
    (void)run;
}

static const struct scheme {
    const char *name;
    void (*draft)(struct scheme_run *run);
} schemes[] = {
    {"block", draft_blocks},          {"attn+mlp", draft_halves}, {"whole", draft_whole},
    {"torchtitan", draft_torchtitan}, {"piece", draft_pieces},    {"half", draft_half_pieces},
};

const char *const plan_scheme_names[] = {"block",      "block*K", "attn+mlp", "whole",
                                         "torchtitan", "piece",   "half"};
const uint32_t n_plan_schemes = sizeof(plan_scheme_names) / sizeof(*plan_scheme_names);

enum status plan_scheme_draft(const struct model *model, const char *text, struct arena *arena,
                              struct unit_drafts *drafts, bool *found, struct err *err)
{
    static const char many[] = "block*";
    struct scheme_run run = {model, arena, drafts, text, 1};
    uint64_t blocks;
    bool is_many =
        strncmp(text, many, strlen(many)) == 0 && text_to_u64(text + strlen(many), &blocks);
    *found = true;
    if (is_many) {
        if (blocks == 0)
            return err_set(err, STATUS_USAGE,
                           "no unit can have 0 blocks, as in '%s'; 'block*2' "
                           "puts two into each",
                           text);
        run.blocks_per_unit = blocks;
        draft_blocks(&run);
        return STATUS_OK;
    }
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (strcmp(schemes[i].name, text) == 0) {
            schemes[i].draft(&run);
            return STATUS_OK;
        }
    *found = false;
    return STATUS_OK;
}
