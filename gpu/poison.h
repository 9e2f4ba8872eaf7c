/*
 * Poison: memory that a program has freed is filled with 0xA5, so that whoever still relies on it gets
 * other numbers. A tool for tests; it adds fills to streams and nothing to the program.
 *
 * Invariant: memory is filled on the stream of its pool, right before the first write to anything
 * that was allocated there after it was freed: by then the verifier has proved all its uses done
 * (src/verify.h). Where another stream than the pool's writes first a fill would be ordered with
 * nothing, and is left out.
 */
#ifndef GPU_POISON_H
#define GPU_POISON_H

#include "gpu/device.h"
#include "src/backend.h"

/* Freed memory of one pool that nothing was written over yet, oldest first. */
struct freed {
    char *at;
    uint64_t bytes;
    uint32_t when;
};
struct freed_list {
    struct freed *at;
    uint32_t n, cap;
};

struct poison {
    const struct program *program;
    const struct device_ops *device;
    void *device_self;
    struct arena *arena; /* fills live in it */
    uint32_t now;        /* counts births and deaths */
    uint32_t *born;      /* by expanded id */
    struct freed_list freed[STREAM_N];
};

void poison_init(struct poison *poison, const struct program *program,
                 const struct device_ops *device, void *device_self, struct arena *arena);
void poison_note_birth(struct poison *poison, uint32_t expanded_id);
void poison_note_death(struct poison *poison, enum stream pool, char *at, uint64_t bytes);
/* To be called ahead of each launch. */
enum status poison_before(struct poison *poison, const struct launch *launch, struct err *err);
/* Memory is unmapped: nothing is left to fill. */
void poison_forget(struct poison *poison);

#endif
