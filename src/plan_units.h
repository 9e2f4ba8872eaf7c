/*
 * From the text of --units to drafts: which modules were named to form which unit.
 *
 * A pattern is compared with whole module paths; '*' stands for any run of characters, dots
 * included, '?' for one. Of all that one pattern matches the outermost modules count, each a unit:
 * 'model.layers.*' is every block, and not what is inside them. What other patterns match may lie
 * inside: 'model,model.layers.*' is every block, and one unit of the rest of the model around them.
 * In a file (or in JSON in its place) a list is one unit of all that its patterns match, found one pattern at a time.
 *
 * A draft only says what was asked for. Whether the result can be run, and what a unit owns once
 * inner units took their part, is src/plan_cut.h. Invariant: a module is claimed by at most one
 * draft; module 0 by none, since what nobody claims belongs to the root.
 */
#ifndef SRC_PLAN_UNITS_H
#define SRC_PLAN_UNITS_H

#include "src/model.h"

#define NO_DRAFT UINT32_MAX
#define NO_MODULE UINT32_MAX

struct unit_draft {
    const char *origin;   /* the scheme or pattern, as it was typed */
    const char *place;    /* "units.json: [3]: ", or "" where it comes from the command line */
    uint32_t named_after; /* a module, or NO_MODULE: after all of its modules */
};

struct unit_drafts {
    struct unit_draft *drafts;
    uint32_t *of_module; /* the draft that claims it, or NO_DRAFT */
    uint32_t n_draft, cap_draft;
};

/* text: a scheme, comma-separated patterns, @FILE, or what such a file holds. Everything lives in the arena. */
enum status plan_units_draft(const struct model *model, const char *text, struct arena *arena,
                             struct unit_drafts *out, struct err *err);

/* STATUS_USAGE, or STATUS_INPUT with the place for a draft from a file. */
enum status unit_draft_fail(const struct unit_draft *draft, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A new draft without modules; returns its index. */
uint32_t unit_drafts_add(struct unit_drafts *drafts, struct arena *arena, const char *origin,
                         const char *place);

#endif
