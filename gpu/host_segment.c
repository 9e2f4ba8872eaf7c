/*
 * The memory of the host device: real mappings, taken and given back as the placement says.
 *
 * A caching segment is mapped whole; an expandable one is a range of addresses that nobody may
 * touch, parts of which are mapped. What is reported is what the system says of these ranges, not
 * what was asked for. Not here: who uses what (the placement), and whether it is still in use.
 *
 * Invariant: what is unmapped and mapped again is fresh memory.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/host_inner.h"

enum { POISON = 0xa5 };

static enum status cannot(const struct segment_op *op, const char *what, struct err *err)
{
    return err_set(err, STATUS_RUN, "cannot %s %" PRIu64 " bytes of segment %" PRIu32 ": %s", what,
                   op->bytes, op->segment, strerror(errno));
}

static void grow(struct host_segments *segments, uint32_t n)
{
    if (n <= segments->n)
        return;
    const size_t bytes = n * sizeof(*segments->list);
    segments->list = realloc(segments->list, bytes);
    if (!segments->list)
        err_out_of_memory(bytes);
    memset(segments->list + segments->n, 0, (n - segments->n) * sizeof(*segments->list));
    segments->n = n;
}

static enum status reserve(struct host_segments *segments, const struct segment_op *op,
                           struct err *err)
{
    const int protection = op->expandable ? PROT_NONE : PROT_READ | PROT_WRITE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

    grow(segments, op->segment + 1);
    struct host_segment *segment = &segments->list[op->segment];
    assert(!segment->base);
    void *base = mmap(NULL, op->bytes, protection, flags, -1, 0);
    if (base == MAP_FAILED)
        return cannot(op, "reserve", err);
    *segment = (struct host_segment){base, op->bytes};
    return STATUS_OK;
}

/* In place of what is there: protection alone would keep the bytes. */
static enum status remap(char *at, const struct segment_op *op, int protection, struct err *err)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(at, op->bytes, protection, flags, -1, 0) == MAP_FAILED)
        return cannot(op, protection == PROT_NONE ? "unmap" : "map", err);
    return STATUS_OK;
}

static enum status release(struct host_segment *segment, const struct segment_op *op,
                           struct err *err)
{
    if (munmap(segment->base, segment->bytes) != 0)
        return cannot(op, "release", err);
    *segment = (struct host_segment){0};
    return STATUS_OK;
}

static enum status apply(struct host_segments *segments, const struct segment_op *op,
                         struct err *err)
{
    if (op->act == SEGMENT_RESERVE)
        return reserve(segments, op, err);

    struct host_segment *segment = &segments->list[op->segment];
    assert(segment->base && op->offset + op->bytes <= segment->bytes);
    switch ((enum segment_act)op->act) {
    case SEGMENT_MAP:
        return remap(segment->base + op->offset, op, PROT_READ | PROT_WRITE, err);
    case SEGMENT_UNMAP:
        return remap(segment->base + op->offset, op, PROT_NONE, err);
    default:
        return release(segment, op, err);
    }
}

enum status host_segments_apply(struct host_segments *segments, const struct segment_op *op,
                                bool poison, struct err *err)
{
    const bool is_fresh = op->act == (op->expandable ? SEGMENT_MAP : SEGMENT_RESERVE);

    const enum status status = apply(segments, op, err);
    if (status == STATUS_OK && is_fresh && poison)
        memset(segments->list[op->segment].base + op->offset, POISON, op->bytes);
    return status;
}

static uint64_t overlap(const struct host_segments *segments, uint64_t begin, uint64_t end)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < segments->n; i++) {
        const struct host_segment *segment = &segments->list[i];
        const uint64_t base = (uint64_t)(uintptr_t)segment->base;
        const uint64_t first = begin > base ? begin : base;
        const uint64_t last = end < base + segment->bytes ? end : base + segment->bytes;
        bytes += first < last ? last - first : 0;
    }
    return bytes;
}

/* A line is "begin-end rwxp ...", in hexadecimal digits; the system joins neighbours as it likes. */
uint64_t host_segments_mapped(const struct host_segments *segments)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char *line = NULL;
    size_t size = 0;
    uint64_t bytes = 0;

    while (maps && getline(&line, &size, maps) > 0) {
        uint64_t begin, end;
        char readable;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c", &begin, &end, &readable) == 3 &&
            readable == 'r')
            bytes += overlap(segments, begin, end);
    }
    free(line);
    if (maps)
        fclose(maps);
    return bytes;
}

void host_segments_release(struct host_segments *segments)
{
    for (uint32_t i = 0; i < segments->n; i++) {
        if (segments->list[i].base)
            munmap(segments->list[i].base, segments->list[i].bytes);
    }
    free(segments->list);
    *segments = (struct host_segments){0};
}
