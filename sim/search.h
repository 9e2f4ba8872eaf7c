/*
 * The best plan of a space under a limit of memory.
 *
 * Every plan is judged by sim/judge, or by another objective; what bounds already exclude is not. Small spaces are gone through
 * whole, so that the answer is optimal; of large ones a beam of the best points is widened by their
 * neighbours until none of them gets better, and a bound says how far the answer can be off.
 *
 * Points are judged in batches whose composition depends on earlier batches alone, and all decisions
 * are made between batches in the order of the points: the same answer, and the same counts, on any
 * number of threads.
 *
 * Order of points: those within the limit first; the faster; then the one of fewer units; then the one
 * that was met first. Outside the limit the smaller.
 */
#ifndef SIM_SEARCH_H
#define SIM_SEARCH_H

#include "sim/bounds.h"
#include "sim/judge_pool.h"

struct search_progress {
    uint64_t judged, passed_over; /* points so far: simulated; excluded by a bound */
    uint64_t expected;            /* points that may be looked at, all in all */
    int64_t best_ns;              /* 0: nothing within the limit yet */
};

struct search_options {
    uint64_t limit_bytes;  /* requested bytes at the peak */
    uint64_t exact_points; /* go through spaces up to this size whole */
    uint64_t most_points;  /* judge no more in others */
    unsigned bounds;       /* bits of enum bound_kind; none of them holds for another objective */
    enum objective objective;
    uint32_t jobs;      /* threads, 1 or more */
    uint32_t max_units; /* 0: as many as there are */
    /* Called now and then; false ends the search with what it has. NULL: never. */
    bool (*go_on)(void *self, const struct search_progress *progress);
    void *self;
};
struct search_options search_options_default(void);

struct found {
    const uint8_t *point;
    struct judged judged;
    uint32_t n_unit;
};

struct search_result {
    struct found *found; /* all that were judged, in the order above */
    uint32_t n;
    struct search_progress progress;
    struct judged least; /* of every point of the space; 0: nothing is known */
    double space_size;
    bool whole;   /* all of the space was gone through, so that the first one is optimal */
    bool stopped; /* go_on said so */
};

/* Everything lives in the arena. STATUS_INPUT, STATUS_USAGE: the fine plan cannot be priced. */
enum status search_run(const struct space *space, const struct cluster *cluster,
                       const struct body_table *bodies, const struct search_options *options,
                       struct arena *arena, struct search_result *out, struct err *err);

/*
 * Of found points, in their order, those than which none within the limit is as fast and smaller: the
 * front of time and peak. Indices to the arena; returns how many.
 */
uint32_t search_front(const struct search_result *result, uint64_t limit_bytes, struct arena *arena,
                      uint32_t **out);

#endif
