/*
 * Units as a person names them: a scheme, patterns on module paths, or a file of both single
 * patterns and lists. Decides only who claims which module; invariant: each at most once.
 */
#include "src/plan_units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/json.h"
#include "src/plan.h"
#include "src/plan_schemes.h"

struct claims {
    const struct model *model;
    struct arena *arena;
    struct unit_drafts *drafts;
};

uint32_t unit_drafts_add(struct unit_drafts *drafts, struct arena *arena, const char *origin,
                         const char *place)
{
    drafts->drafts = arena_grow(arena, drafts->drafts, &drafts->cap_draft, drafts->n_draft + 1,
                                sizeof(*drafts->drafts));
    drafts->drafts[drafts->n_draft] = (struct unit_draft){origin, place, NO_MODULE};
    return drafts->n_draft++;
}

enum status unit_draft_fail(const struct unit_draft *draft, struct err *err, const char *fmt, ...)
{
    char text[560];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return err_set(err, *draft->place ? STATUS_INPUT : STATUS_USAGE, "%s%s", draft->place, text);
}

static bool has_wildcard(const char *pattern)
{
    return strpbrk(pattern, "*?");
}

/* The first module from this one on that the pattern matches; n_module where there is none. */
static uint32_t next_match(const struct model *model, const char *pattern, uint32_t from)
{
    if (!has_wildcard(pattern)) {
        int module = model_module(model, pattern);
        return module >= (int)from ? (uint32_t)module : model->n_module;
    }
    while (from < model->n_module && !text_matches(pattern, model->modules[from].path))
        from++;
    return from;
}

/* What matches once something stands before it: 'model.norm' for 'norm', '*.0.*' for '0.*'. */
static const char *find_by_tail(const struct claims *c, const char *pattern)
{
    const char *longer = arena_printf(c->arena, "*.%s", pattern);
    for (uint32_t i = 1; i < c->model->n_module; i++)
        if (text_matches(longer, c->model->modules[i].path))
            return has_wildcard(pattern) ? longer : c->model->modules[i].path;
    return NULL;
}

/* Schemes are near names only where a scheme could have stood. */
static const char *find_nearest(const struct claims *c, const char *pattern, bool or_scheme)
{
    uint32_t n = c->model->n_module - 1;
    const char **names = arena_array(c->arena, const char *, n + n_plan_schemes);
    for (uint32_t i = 0; i < n; i++)
        names[i] = c->model->modules[i + 1].path;
    for (uint32_t i = 0; or_scheme && i < n_plan_schemes; i++)
        names[n++] = plan_scheme_names[i];
    int near = text_nearest(pattern, names, n);
    return near >= 0 ? names[near] : NULL;
}

/* 'model.layers.*' for 'model.layer.*': modules before the first wildcard are put right. */
static const char *find_by_head(const struct claims *c, const char *pattern)
{
    size_t head = strcspn(pattern, "*?");
    if (!pattern[head])
        return NULL;
    while (head > 0 && pattern[head] != '.')
        head--;
    const char *near = find_nearest(c, arena_printf(c->arena, "%.*s", (int)head, pattern), false);
    const char *whole = near ? arena_printf(c->arena, "%s%s", near, pattern + head) : NULL;
    return whole && next_match(c->model, whole, 1) < c->model->n_module ? whole : NULL;
}

static enum status fail_no_match(const struct claims *c, const struct unit_draft *source,
                                 bool or_scheme, struct err *err)
{
    const char *pattern = source->origin;
    for (uint32_t i = 0; i < n_plan_schemes; i++)
        if (strcmp(pattern, plan_scheme_names[i]) == 0)
            return unit_draft_fail(source, err,
                                   "no module matches '%s'; a scheme stands alone, not in a list",
                                   pattern);
    const char *hint = find_by_tail(c, pattern);
    if (!hint)
        hint = find_by_head(c, pattern);
    if (!hint)
        hint = find_nearest(c, pattern, or_scheme);
    if (hint)
        return unit_draft_fail(source, err, "no module matches '%s'; did you mean '%s'?", pattern,
                               hint);
    const struct model *model = c->model;
    return unit_draft_fail(source, err, "no module matches '%s'; paths run from '%s' to '%s'",
                           pattern, model->modules[1].path,
                           model->modules[model->n_module - 1].path);
}

static enum status claim(const struct claims *c, uint32_t module, uint32_t draft, struct err *err)
{
    uint32_t *owner = &c->drafts->of_module[module];
    if (*owner != NO_DRAFT && *owner != draft) {
        const struct unit_draft *drafts = c->drafts->drafts;
        return unit_draft_fail(
            &drafts[draft], err, "module '%s' would be in two units, '%s' and '%s'",
            c->model->modules[module].path, drafts[*owner].origin, drafts[draft].origin);
    }
    *owner = draft;
    return STATUS_OK;
}

/*
 * The outermost matches of one pattern: into the given draft, or a new one each where it is
 * NO_DRAFT.
 */
static enum status claim_matches(const struct claims *c, const struct unit_draft *source,
                                 uint32_t draft, bool or_scheme, struct err *err)
{
    const struct model *model = c->model;
    const char *pattern = source->origin;
    uint32_t module = next_match(model, pattern, 1);
    if (module == model->n_module)
        return fail_no_match(c, source, or_scheme, err);
    for (; module < model->n_module;
         module = next_match(model, pattern, model->modules[module].end)) {
        uint32_t to = draft != NO_DRAFT
                          ? draft
                          : unit_drafts_add(c->drafts, c->arena, pattern, source->place);
        enum status status = claim(c, module, to, err);
        if (status)
            return status;
    }
    if (c->drafts->n_draft > PLAN_MAX_UNITS)
        return unit_draft_fail(source, err, "'%s' makes more than %d units", pattern,
                               PLAN_MAX_UNITS);
    return STATUS_OK;
}

static char *trim(char *word)
{
    word += strspn(word, " \t");
    size_t length = strlen(word);
    while (length > 0 && (word[length - 1] == ' ' || word[length - 1] == '\t'))
        word[--length] = '\0';
    return word;
}

static enum status draft_patterns(const struct claims *c, const char *text, struct err *err)
{
    bool alone = !strchr(text, ',');
    char *next = arena_strdup(c->arena, text);
    while (next) {
        char *word = next;
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        struct unit_draft source = {.origin = trim(word), .place = ""};
        if (!*source.origin)
            return err_set(err, STATUS_USAGE, "empty pattern in the list of units '%s'", text);
        enum status status = claim_matches(c, &source, NO_DRAFT, alone, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

/* A list is called by its first patterns. */
static void name_list(const struct claims *c, uint32_t draft, uint32_t index, const char *pattern)
{
    enum { SHOWN = 3 };
    const char **origin = &c->drafts->drafts[draft].origin;
    if (index <= SHOWN)
        *origin = arena_printf(c->arena, "%s%s%s", *origin, index > 0 ? ", " : "",
                               index < SHOWN ? pattern : "...");
}

/* One pattern of a file. Its text outlives the document. */
static enum status draft_element(const struct claims *c, const struct json_at *at, uint32_t draft,
                                 struct err *err)
{
    const char *pattern;
    enum status status = json_string(at, &pattern, err);
    if (status)
        return status;
    struct unit_draft source = {.origin = arena_strdup(c->arena, pattern),
                                .place =
                                    arena_printf(c->arena, "%s: %s: ", at->doc->name, at->path)};
    if (draft != NO_DRAFT)
        name_list(c, draft, at->index, source.origin);
    return claim_matches(c, &source, draft, false, err);
}

/* A list is one unit, as in fully_shard([a, b]). */
static enum status draft_list(const struct claims *c, const struct json_at *list, struct err *err)
{
    const char *place = arena_printf(c->arena, "%s: %s: ", list->doc->name, list->path);
    uint32_t draft = unit_drafts_add(c->drafts, c->arena, "", place);
    struct json_at it = json_first(list);
    if (!it.node)
        return json_fail(list, err, "a unit without patterns");
    for (; it.node; it = json_next(&it)) {
        enum status status = draft_element(c, &it, draft, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static enum status draft_document(const struct claims *c, const struct json_doc *doc,
                                  struct err *err)
{
    struct json_at root = json_root(doc);
    enum status status = STATUS_OK;
    if (!json_is_array(&root))
        return json_fail(&root, err, "must be a list of patterns and lists of patterns");
    struct json_at it = json_first(&root);
    if (!it.node)
        return json_fail(&root, err, "names no unit; the scheme 'whole' is the root alone");
    for (; it.node && !status; it = json_next(&it))
        status =
            json_is_array(&it) ? draft_list(c, &it, err) : draft_element(c, &it, NO_DRAFT, err);
    return status;
}

/* In a file, or on the command line itself. */
static enum status draft_json(const struct claims *c, const char *text, struct err *err)
{
    struct json_doc doc;
    enum status status =
        *text == '@' ? json_read_file(text + 1, &doc, err) : json_parse(text, "--units", &doc, err);
    if (status)
        return status;
    status = draft_document(c, &doc, err);
    json_release(&doc);
    return status;
}

enum status plan_units_draft(const struct model *model, const char *text, struct arena *arena,
                             struct unit_drafts *out, struct err *err)
{
    struct unit_drafts drafts = {.of_module = arena_array(arena, uint32_t, model->n_module)};
    struct claims claims = {model, arena, &drafts};
    for (uint32_t i = 0; i < model->n_module; i++)
        drafts.of_module[i] = NO_DRAFT;

    bool found = false;
    enum status status = plan_scheme_draft(model, text, arena, &drafts, &found, err);
    if (!status && !found)
        status = *text == '@' || *text == '[' ? draft_json(&claims, text, err)
                                              : draft_patterns(&claims, text, err);
    if (!status)
        *out = drafts;
    return status;
}
