/*
 * The parts of the device check (spec GPU 6): each is run alone, in a process of its own, so that one
 * that ends badly leaves the others theirs.
 *
 * A part knows no device: it is given one, and sizes. On the host it is the same with small sizes, so
 * that its plan, its units and what it expects are tested where there is no GPU; the host's speeds are
 * told and not judged. Files: device_casts.c, device_packing.c, device_speed.c, device_post.c,
 * device_far.c, device_step.c; what is packed: device_unit.c.
 */
#ifndef SRC_CLI_DEVICE_PART_H
#define SRC_CLI_DEVICE_PART_H

#include "src/cli/timed_device.h"
#include "src/device_check.h"

/* How large it is on a kind of device. */
struct device_scale {
    uint64_t shrink;     /* sides of matrices are divided by it */
    uint64_t cast_runs;  /* of CAST_RUN patterns each, of 2^32 */
    uint64_t copy_bytes; /* of a large copy */
    uint64_t far;        /* elements of one large tensor */
    bool is_small;       /* as little memory as on the host */
    bool judges_speed;
};
const struct device_scale *device_scale(enum device device);

enum { DEVICE_MOST_LINES = 64 };

struct device_part_run {
    const struct device_ops *ops;
    struct device_scale scale;
    struct timed_device timed; /* of a part that has memory */
    struct check_line lines[DEVICE_MOST_LINES];
    uint32_t n_line;
    struct device_facts facts;
    struct arena arena;
    void (*note)(void *context,
                 const struct device_part_run *run); /* after each line; NULL: nobody */
    void *context;
};

/* X(name, core, seconds, GiB on a GPU, MiB on the host, what it is). A part without memory opens the
   device itself. */
#define DEVICE_PARTS(X)                                                                         \
    X(environment, true, 10, 1, 2, "what the device is, and what was loaded")                   \
    X(casts, true, 35, 1, 128, "FP32 to BF16 and FP16, every pattern, against the host's body") \
    X(packing, true, 30, 2, 32, "copy-in, copy-out and gradients, bit by bit")                  \
    X(speed, true, 35, 24, 192, "packing against the device's own copies")                      \
    X(step, true, 30, 0, 0, "a small step: its losses, its memory, its prediction")             \
    X(post, false, 20, 1, 8, "scale, cast and add behind a reduce-scatter, bit by bit")         \
    X(far, false, 60, 16, 32, "a tensor past 2^31 elements and 2^32 bytes")

struct device_part {
    const char *name, *words;
    bool core;
    unsigned seconds; /* its limit */
    uint64_t cuda_bytes, host_bytes;
    enum status (*run)(struct device_part_run *run, struct err *err);
};
extern const struct device_part device_parts[]; /* ends with a NULL name */

/* Runs it; what it found so far is there also where it fails. Texts to the run's arena, which is to be
   released on every path. */
enum status device_part_run(const struct device_part *part, const struct device_ops *ops,
                            const struct device_scale *scale, struct device_part_run *out,
                            struct err *err);

/* A line more. faults: none may be. */
void device_faults(struct device_part_run *run, const char *key, const char *words,
                   uint64_t faults);
void device_tell(struct device_part_run *run, const char *key, const char *words,
                 enum check_unit unit, double value);
/* A goal of speed, judged where speeds are. */
void device_goal(struct device_part_run *run, const char *key, const char *words,
                 enum check_unit unit, double value, enum check_bound bound, double limit);

#define X(name, core, seconds, gib, mib, words) \
    enum status device_part_##name(struct device_part_run *run, struct err *err);
DEVICE_PARTS(X)
#undef X

/* ---- what is packed: device_unit.c ------------------------------------------------------------------ */

struct device_param {
    uint64_t rows, columns;
    uint8_t dtype; /* that it computes in, and its gradient is in */
};

/* Parameters cut by rows over ranks; slots of a rank's slice are aligned as this program's are. */
struct device_unit {
    const char *name;
    const struct device_param *params;
    uint32_t n_param, ranks;
};

/* q, k, v, o, up and down of `pack-50m`; is_mixed: with norms and gates in FP32. */
struct device_unit device_unit_block(uint64_t shrink, uint32_t ranks, bool is_mixed,
                                     struct arena *arena);
/* n parameters, of which a fiftieth, or two, are short; is_mixed: these are FP32. */
struct device_unit device_unit_of(uint32_t n, uint64_t shrink, uint32_t ranks, bool is_mixed,
                                  struct arena *arena);

/* Where a whole parameter lies among all of them, in bytes. */
uint64_t device_unit_offset(const struct device_unit *unit, uint32_t param);

/* Copy-in of rank 0, from FP32 shards; copy-out of all slices; gradients to FP32, or to reduce. */
enum device_move { MOVE_IN, MOVE_OUT, MOVE_PACK };
struct device_packing {
    struct pack_table table;
    uint64_t from_bytes, to_bytes; /* of both sides, gaps included */
};
void device_unit_pack(const struct device_unit *unit, enum device_move move, enum dtype reduce,
                      struct arena *arena, struct device_packing *out);

#endif
