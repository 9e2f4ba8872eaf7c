/*
 * A model: its modules, their parameters, and the order in which a step computes them.
 *
 * Knows nothing of ranks, units or dtypes of compute. Built by a family (src/arch/) from a few
 * sizes. Invariants: modules are in preorder, so that a subtree is a range; parameters are in
 * registration order (that of module.parameters()), so that a subtree's are a range too;
 * pieces are in forward order, the head last, and each parameter belongs to exactly one piece; but
 * a tied embedding's weight is the head's as well and listed in both, first of all and last. Where
 * shapes are known and the computation is not (struct arch: no_step) there may be no pieces at all.
 */
#ifndef SRC_MODEL_H
#define SRC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "src/arena.h"
#include "src/dtype.h"
#include "src/err.h"
#include "src/json.h"

enum { PARAM_MAX_DIMS = 8, MODEL_MAX_LAYERS = 4096 };

/* Of the two matrices of a low-rank adapter (src/lora.h); A comes first. */
enum adapter { ADAPTER_NONE, ADAPTER_A, ADAPTER_B };

struct param {
    const char *name; /* "model.layers.0.mlp.up_proj.weight" */
    uint32_t module;  /* the module that owns it directly */
    uint8_t n_dim, storage /* enum dtype, in training */, trainable;
    uint8_t adapter;    /* enum adapter */
    bool keep_fp32;     /* computes in FP32 where all others compute in the plan's dtype */
    bool unused;        /* what is computed with it does not reach the loss: it has no gradient */
    const char *stored; /* dtype in the file that was read, as safetensors names it; or NULL */
    uint64_t shape[PARAM_MAX_DIMS];
    uint64_t numel;
};

struct module {
    const char *path;                /* "model.layers.0.mlp"; "" is the model itself */
    uint32_t parent;                 /* module 0 is its own parent */
    uint32_t end;                    /* one past its last descendant */
    uint32_t first_param, end_param; /* parameters of the whole subtree */
};

/*
 * The finest cut of compute between which unit borders may run. A block is an attention piece (with
 * its input norm and residual) and an MLP piece (the same); a plan joins the two where they lie in
 * one unit. A block of parameters alone is one piece, without operators.
 */
/* X(ENUM, name) */
#define BODY_KINDS(X)           \
    X(EMBEDDING, "embedding")   \
    X(ATTENTION, "attention")   \
    X(MLP, "mlp")               \
    X(BLOCK, "block")           \
    X(NORM, "norm")             \
    X(HEAD, "head")             \
    X(LOSS, "loss")             \
    X(PARAMETERS, "parameters") \
    X(METRIC, "metric")

enum body_kind {
#define X(id, name) BODY_##id,
    BODY_KINDS(X)
#undef X
        BODY_KIND_N
};
const char *body_kind_name(enum body_kind kind);

struct piece {
    uint8_t kind;            /* enum body_kind; never BLOCK, LOSS or METRIC */
    uint16_t layer;          /* of ATTENTION, MLP and PARAMETERS */
    uint32_t param, n_param; /* in model.piece_params: the order of the body's grad slots */
};

/*
 * What a family makes a model from. JSON files name the fields so (src/model_json.h). A family
 * refuses what it has no use for.
 */
/* X(field, name): counts */
#define DIMS_COUNTS(X)                                            \
    X(layers, "layers")                                           \
    X(hidden, "hidden")                                           \
    X(intermediate, "intermediate")                               \
    X(heads, "heads")                                             \
    X(kv_heads, "kv_heads")                                       \
    X(head_dim, "head_dim")                                       \
    X(vocab, "vocab")         /* 0: neither embedding nor head */ \
    X(positions, "positions") /* learned ones; 0: none */         \
    X(default_seq, "seq")     /* tokens per sequence where nobody says otherwise */
/* X(field, name): switches, off where nothing is said */
#define DIMS_SWITCHES(X)                                        \
    X(tied, "tied") /* the head reads the embedding's weight */ \
    X(bias, "bias") /* of linear layers and norms */            \
    X(flat, "flat") /* FP32 parameters are in no module of their own */

struct dims {
#define X(field, name) uint64_t field;
    DIMS_COUNTS(X)
#undef X
#define X(field, name) bool field;
    DIMS_SWITCHES(X)
#undef X
};

struct arch;

struct model {
    const char *name;
    const struct arch *arch;
    struct dims dims;
    struct module *modules;
    struct param *params;
    struct piece *pieces;
    uint32_t *piece_params;        /* parameter ids */
    const struct module **by_path; /* all modules, sorted, for model_module() */
    uint32_t n_module, n_param, n_piece;
    uint32_t n_piece_param;
    uint32_t tied_head; /* the head's module where it has no weight of its own, else 0 */
    uint64_t n_element; /* all parameters, padding never counted */
    const char *lora;   /* the text that adapters were made from; NULL: there are none */
    uint64_t lora_rank;
};

/*
 * what: a built-in name; a config.json; unshard's own JSON; safetensors (one file or an index),
 * whose headers are held against the config.json beside them, or are all that is known; a folder,
 * for the weights in it or else for the config.json. layers > 0 cuts the model to that many blocks.
 * Errors: STATUS_USAGE for a name that is none of these (with the nearest), STATUS_INPUT for a file
 * that makes no sense.
 */
enum status model_open(const char *what, uint64_t layers, struct arena *arena, struct model *out,
                       struct err *err);

/* The same of what such a file has in it; name is what messages call it, and lives as the model. */
enum status model_open_json(const char *json, const char *name, uint64_t layers,
                            struct arena *arena, struct model *out, struct err *err);

/* Make it again with so many learned positions. STATUS_USAGE for a model that learns none. */
enum status model_set_positions(struct model *model, uint64_t positions, struct arena *arena,
                                struct err *err);

/* Parameters as fully_shard finds them, n_param of them: of a module after those of its children. */
void model_param_order(const struct model *model, uint32_t *out);
/* As FullyShardedDataParallel flattens them: of a module before those of its children. */
void model_flat_order(const struct model *model, uint32_t *out);

/* Index of the module with this path, or -1. */
int model_module(const struct model *model, const char *path);

struct builtin_model {
    const char *name, *arch;
    struct dims dims;
};
extern const struct builtin_model builtin_models[];
extern const uint32_t n_builtin_models;

/*
 * FLOPs of a token, forward and backward without recompute: 6 N + causal attention (DESIGN 8), but
 * 4 N of what the model itself freezes, whose own gradients nobody computes.
 */
double model_flops_per_token(const struct model *model, uint64_t seq);

#endif
