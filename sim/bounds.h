/*
 * What a plan costs at least: bounds that let a search pass over plans without simulating them.
 *
 * From the prices of each unit alone, taken once from a program in which it occurs and remembered for
 * all units like it. Of FSDP2, whose units launch the same tasks whatever the others are. No bound is
 * ever above what judge_plan() says (tests/bounds.c).
 *
 * Time. Let C be all work of stream C in a step, M that of one communicator, c the contention. While
 * some collective runs C works at 1/(1+c) or not at all. At the start of a step C has nothing to do
 * before the first unit is copied in and gathered; at its end, before the optimizer, nothing until the
 * gradients of the last unit are reduced and cast. Call those four times together I. In a step of
 * length T, C works for C + x*c/(1+c), where x of the collectives' time falls on its work, and stands
 * still for I at least and for the other M - x at least. T is least where x is as large as it can be,
 * M - I, hence
 *
 *     compute   T >= C + I + max(0, M - I) * c/(1+c), of the communicator with the largest M
 *     comm      T >= M of each communicator, which does one thing at a time
 *
 * The host has no bound here: what it was late in the first two steps it may make up for in the third,
 * so that the third can be shorter than what the host needs for it.
 *
 * Memory. When the gradients of a unit are packed these are alive at once: shards, optimizer states
 * and workspaces; what forward left of everything before the unit but for the tensor between; its
 * gradients and the packed ones; the reduced gradients of the units behind it; the parameters of units
 * before it that are kept.
 */
#ifndef SIM_BOUNDS_H
#define SIM_BOUNDS_H

#include "sim/judge.h"
#include "sim/space.h"

/* X(ENUM, name): each can be switched off */
#define BOUNDS(X)         \
    X(COMPUTE, "compute") \
    X(COMM, "comm")       \
    X(MEMORY, "memory")

enum bound_kind {
#define X(id, name) BOUND_##id,
    BOUNDS(X)
#undef X
        BOUND_N
};
enum { BOUNDS_ALL = (1 << BOUND_N) - 1 };

struct bounds;

/*
 * on: bits of enum bound_kind; 0 for a plan of which none is known to hold. All of them outlive the bounds,
 * which live in the arena and judge with the judge.
 */
struct bounds *bounds_new(const struct space *space, struct judge *judge, unsigned on,
                          struct arena *arena);

/* Not more than judge_plan() says of the point; 0 where nothing is known. */
struct judged bounds_of(struct bounds *bounds, const uint8_t *point);

/* The same for every point of the space at once. */
struct judged bounds_of_space(struct bounds *bounds);

#endif
