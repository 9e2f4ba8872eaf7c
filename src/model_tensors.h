/*
 * A list of named tensors, as a checkpoint or a JSON file has it, and what it says of a model.
 *
 * Either a model is known and the list has to agree with it, or the list is all that is known: then
 * the dotted names give modules and parameters, and no step can be built.
 */
#ifndef SRC_MODEL_TENSORS_H
#define SRC_MODEL_TENSORS_H

#include "src/model.h"

enum { TENSOR_NAME_MAX = 500 };

struct tensor {
    const char *name;
    const char *file;   /* for messages */
    const char *stored; /* dtype in that file, or NULL */
    uint8_t n_dim;
    uint64_t shape[PARAM_MAX_DIMS];
    uint64_t at_bytes; /* where its data begin in that file; 0 of a list that is not of a file */
};

struct tensor_list {
    struct tensor *at;
    uint32_t n, cap;
};

/* Printable ASCII in parts between dots, none of them empty: fit for paths and for a terminal. */
bool tensor_name_is_good(const char *name);

/* Sort by name, numbers between dots by value; STATUS_INPUT where a name is there twice. */
enum status tensor_list_sort(struct tensor_list *list, struct err *err);

/* Of a sorted list; NULL where none has the name. */
const struct tensor *tensor_list_find(const struct tensor_list *list, const char *name);

/* The tensor has this shape. source: who gives it, for the message. */
enum status tensor_check_shape(const struct tensor *tensor, unsigned n_dim, const uint64_t *shape,
                               const char *source, struct err *err);

/* Modules and parameters from a sorted list; sets everything of *out but its name. */
enum status model_from_tensors(const struct tensor_list *list, struct arena *arena,
                               struct model *out, struct err *err);

/*
 * A sorted list has the model's parameters in their shapes. Names may lack the family's prefix, and
 * what the family knows not to be parameters, or to be tied, may be there. source: who gives the
 * model's shapes.
 */
enum status model_check_tensors(const struct model *model, const struct tensor_list *list,
                                const char *source, struct arena *arena, struct err *err);

/* A parameter's tensor in a sorted list, its name whole or without the family's prefix; or NULL. */
const struct tensor *model_find_tensor(const struct model *model, const struct tensor_list *list,
                                       const struct param *param);

/* Notes for each parameter as what the list has it stored. */
void model_note_stored(struct model *model, const struct tensor_list *list, struct arena *arena);

#endif
