/*
 * What our program says in the words of recorded schedules: events, counts, layout.
 *
 * The case's options go the way of the command line, its model through a file, so that they mean
 * here what they mean there. A unit of ours has the recorded name whose modules hold its
 * parameters. Everything is in the projection's arena.
 */
#ifndef TESTS_ORACLE_PROJECT_H
#define TESTS_ORACLE_PROJECT_H

#include "src/cli/prepare.h"
#include "tests/oracle_read.h"

/* The case as a verified program. To be released on every path. */
struct oracle_plan {
    struct options options;
    struct prepared prepared;
    char model_file[32], units_file[32]; /* removed by the release */
};

enum status oracle_plan_init(const struct oracle_case *of, struct oracle_plan *out,
                             struct err *err);
/* With further words for the command line, which end with NULL. */
enum status oracle_plan_init_with(const struct oracle_case *of, const char *const *more,
                                  struct oracle_plan *out, struct err *err);
void oracle_plan_release(struct oracle_plan *plan);

/* One event more than the file can say: in which span, and what a pack reads. */
struct our_event {
    struct oracle_event event;
    uint8_t span;   /* ORACLE_FORWARD, ORACLE_BACKWARD */
    unsigned reads; /* of a pack: bit enum dtype */
};

struct oracle_projection {
    struct our_event *events; /* of all kinds: an unshard and its copy_in too */
    uint32_t n;
    struct oracle_param *params;
    uint32_t n_param;
};

void oracle_project(const struct oracle_case *of, const struct prepared *prepared,
                    enum section_id section, struct arena *arena, struct oracle_projection *out);

#endif
