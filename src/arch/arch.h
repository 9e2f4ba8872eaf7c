/*
 * A family: what one kind of architecture adds to the program.
 *
 * It reads a config.json's sizes, makes modules and parameters from them, and describes the bodies
 * of its pieces. Everything else of src/ reaches a family through this table only.
 */
#ifndef SRC_ARCH_ARCH_H
#define SRC_ARCH_ARCH_H

#include "src/arena.h"
#include "src/err.h"
#include "src/json.h"
#include "src/model.h"

struct body_builder;

struct arch {
    const char *name;
    const char *const *model_types; /* of config.json, ends with NULL */

    /* Sizes from a whole config.json. STATUS_INPUT where they are missing or contradict. */
    enum status (*read_config)(const struct json_at *config, struct dims *out, struct err *err);

    /* Sizes from elsewhere: STATUS_INPUT with the name of one that contradicts, or is not known. */
    enum status (*check)(const struct dims *dims, struct err *err);

    /* Modules, parameters and pieces of a model; the caller has set out's name. */
    enum status (*build)(const struct dims *dims, struct arena *arena, struct model *out,
                         struct err *err);

    /* One pair for each kind that exists under the builder's options (src/body_builder.h). */
    enum status (*bodies)(const struct model *model, struct body_builder *builder, struct err *err);
    /* The same of our own operators; NULL: there are none for it. */
    enum status (*native_bodies)(const struct model *model, struct body_builder *builder,
                                 struct err *err);

    /* Why a step cannot be built, and how that is to be answered; NULL where it can. */
    const char *no_step;
    enum status no_step_status;

    bool norm_is_fused;    /* in eager PyTorch too: there is no composite form to choose */
    bool blocks_compile;   /* ops torch-compile has bodies of its own for them */
    const char *prefix;    /* that checkpoints of the bare model leave out, with its dot */
    bool weights_in_first; /* a linear layer's weight is [in, out], not [out, in] */
    /* Where nobody says which layers have adapters; NULL: of this family none are modelled. */
    const char *lora_targets;
    const char *const *extra; /* patterns of names in checkpoints that are no parameters, to NULL */
};

/* All families that a file can name, in the order in which messages list them; ends with NULL. */
extern const struct arch *const arch_families[];
extern const struct arch arch_copy_in;
extern const struct arch arch_gpt2;
extern const struct arch arch_kda;
extern const struct arch arch_llama;
extern const struct arch arch_mpt;
extern const struct arch arch_pack;
extern const struct arch arch_simple_llm;

/* Of tensors whose computation nobody described (src/model_tensors.h); in no list. */
extern const struct arch arch_tensors;

const struct arch *arch_find(const char *model_type); /* by a config's model_type, or NULL */
const struct arch *arch_by_name(const char *name);    /* by the family's own name, or NULL */

/* Says why no step of the model can be built. */
enum status arch_fail_step(const struct model *model, struct err *err);

/* src/arch/gpt_bodies.c: of gpt2 and mpt */
enum status gpt_bodies(const struct model *model, struct body_builder *builder, struct err *err);
/* src/arch/kda_bodies.c */
enum status kda_bodies(const struct model *model, struct body_builder *builder, struct err *err);
/* src/arch/llama_bodies.c */
enum status llama_bodies(const struct model *model, struct body_builder *builder, struct err *err);
/* src/arch/native_bodies.c */
enum status gpt2_native_bodies(const struct model *model, struct body_builder *builder,
                               struct err *err);
enum status kda_native_bodies(const struct model *model, struct body_builder *builder,
                              struct err *err);
enum status llama_native_bodies(const struct model *model, struct body_builder *builder,
                                struct err *err);
/* src/arch/simple_bodies.c */
enum status simple_bodies(const struct model *model, struct body_builder *builder, struct err *err);

#endif
