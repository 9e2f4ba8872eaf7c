/*
 * PyTorch's caching allocator, without the memory.
 *
 * Answers where each request would lie and how much would be reserved (spec MEMORY section 1;
 * source of the rules: c10/cuda/CUDACachingAllocator.cpp). It knows no program and no time: events
 * of record_stream complete when the caller says so. Addresses rise with the number of the segment.
 * Invariants: blocks of a segment tile it; no two free neighbours that could merge; allocated <=
 * active <= reserved.
 */
#ifndef SRC_ALLOC_H
#define SRC_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "src/arena.h"
#include "src/memory_class.h"

enum { ALLOC_MAX_POOLS = 16 };
#define ALLOC_UNLIMITED UINT64_MAX

struct alloc_config {
    uint64_t capacity_bytes;           /* what the driver can give; ALLOC_UNLIMITED */
    uint64_t max_split_bytes;          /* ALLOC_UNLIMITED: split anything */
    uint32_t roundup_power2_divisions; /* a power of two; 0: off */
    uint64_t allowed_bytes;            /* per-process memory fraction × total; ALLOC_UNLIMITED */
    double garbage_threshold;          /* 0: off; needs allowed_bytes */
    bool expandable;
};
struct alloc_config alloc_config_default(void);

struct alloc_stats {
    uint64_t allocated, active, requested, reserved, inactive_split; /* bytes now */
    uint64_t peak_allocated, peak_active, peak_requested, peak_reserved;
    uint64_t by_class[CLASS_N];                      /* of allocated */
    uint64_t peak_by_class[CLASS_N];                 /* when peak_allocated was reached first */
    uint64_t reserved_by_pool[ALLOC_MAX_POOLS];      /* of reserved */
    uint64_t peak_reserved_by_pool[ALLOC_MAX_POOLS]; /* when peak_reserved was reached first */
    uint32_t segments, retries, ooms;
    uint32_t driver_calls; /* operations ever, those of alloc_ops() */
};

/*
 * What the driver is asked for, in order. offset and bytes within the segment. In expandable mode
 * RESERVE and RELEASE are of addresses alone, and MAP and UNMAP are of the memory behind them; else
 * RESERVE and RELEASE are of both, and there is no other.
 */
enum segment_act { SEGMENT_RESERVE, SEGMENT_MAP, SEGMENT_UNMAP, SEGMENT_RELEASE };
struct segment_op {
    uint8_t act, pool;
    bool expandable;
    uint32_t segment; /* dense; the lowest free number, so that what repeats gets the same again */
    uint64_t offset, bytes;
};

typedef uint32_t alloc_block; /* a handle; ALLOC_NO_BLOCK for a request of 0 bytes */
#define ALLOC_NO_BLOCK UINT32_MAX

struct alloc;
/* Dies with the arena. */
struct alloc *alloc_new(const struct alloc_config *config, struct arena *arena);

/* false: out of memory (counted in ooms; nothing else changed but what the failure order freed). */
bool alloc_malloc(struct alloc *alloc, uint8_t pool, uint64_t bytes, enum memory_class memory_class,
                  alloc_block *out);
/* The streams whose events it then waits for, one more on each, as bits; 0: it is free. */
uint32_t alloc_free(struct alloc *alloc, alloc_block block);

struct alloc_address {
    uint64_t offset; /* within the segment */
    uint32_t segment;
};
struct alloc_address alloc_block_address(const struct alloc *alloc, alloc_block block);

/* record_stream: keep the block, once freed, until the event recorded on stream then is done. */
void alloc_record_stream(struct alloc *alloc, alloc_block block, uint8_t stream);
void alloc_events_done(struct alloc *alloc, uint8_t stream); /* all on stream so far */
void alloc_event_done(struct alloc *alloc, uint8_t stream);  /* the oldest one */
void alloc_empty_cache(struct alloc *alloc);

const struct alloc_stats *alloc_stats(const struct alloc *alloc);
void alloc_reset_peak(struct alloc *alloc); /* peaks become what is there now */

/* Driver operations since the last call of alloc_clear_ops(). */
const struct segment_op *alloc_ops(const struct alloc *alloc, uint32_t *n);
void alloc_clear_ops(struct alloc *alloc);

/*
 * Equal for two states from which equal requests get equal answers forever: covers segment numbers,
 * address order and every block.
 */
uint64_t alloc_state_hash(const struct alloc *alloc);

#endif
