/*
 * The class that every allocated byte has (spec: MEMORY 2.2).
 */
#ifndef SRC_MEMORY_CLASS_H
#define SRC_MEMORY_CLASS_H

/* X(ENUM, name) */
#define MEMORY_CLASSES(X)                     \
    X(SHARDED_PARAM, "sharded_param")         \
    X(OPTIMIZER, "optimizer")                 \
    X(SHARDED_GRAD, "sharded_grad")           \
    X(ALL_GATHER_BUFFER, "all_gather_buffer") \
    X(UNSHARDED_PARAM, "unsharded_param")     \
    X(UNSHARDED_GRAD, "unsharded_grad")       \
    X(REDUCE_BUFFER, "reduce_buffer")         \
    X(ACTIVATION, "activation")               \
    X(LOGITS, "logits")                       \
    X(TEMPORARY, "temporary")                 \
    X(WORKSPACE, "workspace")

enum memory_class {
#define X(id, name) CLASS_##id,
    MEMORY_CLASSES(X)
#undef X
        CLASS_N
};
const char *memory_class_name(enum memory_class memory_class);

#endif
