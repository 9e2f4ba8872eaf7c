/*
 * Points in words; see space_text() in space.h.
 */
#include <stdio.h>
#include <string.h>

#include "sim/space.h"

enum { UNIT_BYTES = 96 };

static const char *end_name(const struct space *space, uint32_t atom)
{
    const struct plan *fine = space->source.fine;

    if (plan_is_root(fine, atom))
        return "rest";
    if (!space->source.joins[atom])
        return "emb+norm+head";
    switch ((enum body_kind)fine->segments[fine->units[atom].first_segment].kind) {
    case BODY_EMBEDDING:
        return "emb";
    case BODY_NORM:
        return "norm";
    default:
        return "head";
    }
}

/* Whole blocks, and halves of which the other one is elsewhere. */
static void add_blocks(const struct space *space, uint32_t first, uint32_t n, char *out)
{
    const struct plan *fine = space->source.fine;
    double blocks = 0;

    for (uint32_t a = first; a < first + n; a++)
        blocks += fine->segments[fine->units[a].first_segment].kind == BODY_BLOCK ||
                          fine->segments[fine->units[a].first_segment].kind == BODY_PARAMETERS
                      ? 1
                      : 0.5;
    snprintf(out + strlen(out), UNIT_BYTES - strlen(out), "%s%g", *out ? "+" : "", blocks);
}

/* The unit that begins with the atom; returns how many atoms it has. */
static uint32_t unit_text(const struct space *space, const uint8_t *point, uint32_t first,
                          char out[UNIT_BYTES])
{
    const uint8_t *atoms = point + POINT_ATOMS;
    uint32_t end = first + 1, a = first;

    *out = '\0';
    while (end < space->n_atom && atoms[end] & ATOM_JOINS)
        end++;
    while (a < end) {
        uint32_t n = 0;
        while (a + n < end && space->is_block[a + n])
            n++;
        if (n > 0)
            add_blocks(space, a, n, out);
        else
            snprintf(out + strlen(out), UNIT_BYTES - strlen(out), "%s%s", *out ? "+" : "",
                     end_name(space, a));
        a += n > 0 ? n : 1;
    }
    if (space_keeps(space, point, first))
        snprintf(out + strlen(out), UNIT_BYTES - strlen(out), "k");
    return end - first;
}

/* Whether a unit is one of blocks alone is to be seen from its first character. */
static void add_units(const char *unit, uint32_t n, struct text *out)
{
    const char *blank = out->length > 0 ? " " : "";

    if (n > 1 || (*unit >= '0' && *unit <= '9' && !strchr(unit, '+')))
        text_add(out, "%s%ux%s", blank, n, unit);
    else if (n == 1)
        text_add(out, "%s%s", blank, unit);
}

static void add_root(const struct space *space, const uint8_t *point, struct text *out)
{
    const uint8_t *atoms = point + POINT_ATOMS;
    bool any = false, frees = false;

    for (uint32_t a = 0; a < space->n_atom; a++) {
        if (!(atoms[a] & ATOM_ROOT))
            continue;
        if (!any)
            frees = !space_keeps(space, point, a);
        if (space->is_block[a])
            text_add(out, "%s", any ? ",block" : "root(block");
        else
            text_add(out, "%s%s", any ? "," : "root(", end_name(space, a));
        any = true;
    }
    if (any)
        text_add(out, ")%s", frees ? "freed" : "");
}

void space_text(const struct space *space, const uint8_t *point, struct text *out)
{
    const uint8_t *atoms = point + POINT_ATOMS;
    char unit[UNIT_BYTES], before[UNIT_BYTES] = "";
    struct text words;
    uint32_t n = 0;

    text_init(&words);
    add_root(space, point, &words);
    for (uint32_t a = 0; a < space->n_atom;) {
        if (atoms[a] & ATOM_ROOT) {
            a++;
            continue;
        }
        a += unit_text(space, point, a, unit);
        if (n > 0 && strcmp(unit, before) != 0) {
            add_units(before, n, &words);
            n = 0;
        }
        memcpy(before, unit, sizeof before);
        n++;
    }
    if (n > 0)
        add_units(before, n, &words);
    text_add(out, "%s", words.at);
    text_release(&words);
}
