/*
 * `unshard check`: may these parameters share their units? Which arrangement each behavior can
 * execute, and a line for each rule that stands against the others.
 *
 * The rules are src/eligible.c's and the plan's. Units of equal parameters break the same rules, so
 * that one of them speaks for all.
 */
#include <string.h>

#include "src/cli/command.h"
#include "src/cli/prepare.h"

struct verdict {
    bool can;
    const char *why; /* lines, or "" */
};

struct check {
    struct prepared prepared;
    struct plan_options plan_options;
    struct verdict verdicts[BEHAVIOR_N][ARRANGE_N];
    uint64_t n_param,
        n_mixed; /* managed parameters; those that compute in another dtype than most */
    uint32_t n_unit, n_mixed_unit;
};

/* The first unit of each shape, as the rules want it. */
static bool next_unit(const struct check *check, bool *done, uint32_t *u, struct eligible_unit *out)
{
    const struct plan *plan = &check->prepared.plan;
    while (*u < plan->n_unit && done[check->prepared.layout.units[*u]->shape])
        ++*u;
    if (*u == plan->n_unit)
        return false;
    const struct unit *unit = &plan->units[*u];
    done[check->prepared.layout.units[*u]->shape] = true;
    *out = (struct eligible_unit){.name = unit->name,
                                  .model = plan->model,
                                  .policy = plan->policy,
                                  .params = &plan->unit_params[unit->param],
                                  .n_param = unit->n_param};
    return true;
}

/* All parameters of a unit in it, under one behavior. */
static void judge_native(struct check *check, enum behavior behavior, struct verdict *out)
{
    struct arena *arena = &check->prepared.arena;
    bool *done = arena_array(arena, bool, check->prepared.layout.n_shape + 1);
    struct eligible_unit unit;
    struct text broken;
    uint32_t u = 0;

    text_init(&broken);
    while (next_unit(check, done, &u, &unit))
        eligible_unit(&unit, behavior, ARRANGE_NATIVE, &broken);
    *out = (struct verdict){.can = broken.length == 0,
                            .why = arena_strdup(arena, broken.at ? broken.at : "")};
    text_release(&broken);
}

static void judge_by_dtype(struct check *check, enum behavior behavior, struct verdict *out)
{
    struct plan_options options = check->plan_options;
    struct plan plan;
    struct err why = {0};

    options.policy.behavior = behavior;
    options.arrange = ARRANGE_BY_DTYPE;
    out->can = plan_resolve(&check->prepared.model, &options, &check->prepared.arena, &plan,
                            &why) == STATUS_OK;
    out->why = out->can ? "" : arena_strdup(&check->prepared.arena, why.text);
}

static void judge(struct check *check)
{
    for (int b = 0; b < BEHAVIOR_N; b++) {
        struct verdict *of = check->verdicts[b];
        const char *never = eligible_arrange((enum behavior)b, ARRANGE_PRECAST);
        judge_native(check, (enum behavior)b, &of[ARRANGE_NATIVE]);
        judge_by_dtype(check, (enum behavior)b, &of[ARRANGE_BY_DTYPE]);
        of[ARRANGE_PRECAST] = of[ARRANGE_NATIVE];
        if (never)
            of[ARRANGE_PRECAST] = (struct verdict){.can = false, .why = never};
    }
}

/* What check has no option for is as in a step of sim. */
static void complete(struct options *options)
{
    for (unsigned id = 0; id < OPTION_N; id++) {
        const char *initial = option_initial((enum option_id)id, COMMAND_SIM);
        const unsigned of = option_table[id].commands;
        if ((of & COMMAND_SIM) && !(of & COMMAND_CHECK) && initial)
            options_take(options, (enum option_id)id, initial, NULL);
    }
}

/* The units without any cut by dtype, which behavior unshard allows whatever they mix. */
static enum status open_units(const struct options *options, struct check *check, struct err *err)
{
    struct prepared *prepared = &check->prepared;
    struct plan_options loose;
    enum status status = prepare_open(options, NULL, prepared, err);

    if (status != STATUS_OK)
        return status;
    check->plan_options = prepare_plan_options(options, &prepared->cluster);
    loose = check->plan_options;
    loose.policy.behavior = BEHAVIOR_UNSHARD;
    loose.arrange = ARRANGE_NATIVE;
    status = plan_resolve(&prepared->model, &loose, &prepared->arena, &prepared->plan, err);
    if (status == STATUS_OK)
        status = layout_build(&prepared->plan, &prepared->arena, &prepared->layout, err);
    return status;
}

static void count(struct check *check)
{
    const struct plan *plan = &check->prepared.plan;
    check->n_unit = plan->n_unit;
    for (uint32_t i = 0; i < plan->model->n_param; i++) {
        check->n_param += plan->policy[i].managed;
        check->n_mixed += plan->policy[i].managed && plan->policy[i].compute != plan->param_dtype;
    }
    for (uint32_t u = 0; u < plan->n_unit; u++)
        check->n_mixed_unit += check->prepared.layout.units[u]->wire == DTYPE_U8;
}

/* ---- text --------------------------------------------------------------------------------- */

enum { NAME_WIDTH = 18, VERDICT_WIDTH = 12 };

/* Words of a row but for the last are as wide as their column. */
static int width_of(int arrange)
{
    return arrange + 1 < ARRANGE_N ? VERDICT_WIDTH : 0;
}

static void add_table(const struct check *check, const struct term *term, struct text *out)
{
    text_add(out, "%s%-*s", term->quiet, NAME_WIDTH, "behavior");
    for (int a = 0; a < ARRANGE_N; a++)
        text_add(out, "%-*s", width_of(a), arrange_name((enum arrange)a));
    text_add(out, "%s\n", term->plain);
    for (int b = 0; b < BEHAVIOR_N; b++) {
        const bool asked = b == (int)check->plan_options.policy.behavior;
        text_add(out, "%s%-*s%s", asked ? term->strong : "", NAME_WIDTH,
                 behavior_name((enum behavior)b), asked ? term->plain : "");
        for (int a = 0; a < ARRANGE_N; a++) {
            const bool can = check->verdicts[b][a].can;
            text_add(out, "%s%-*s%s", can ? term->good : term->bad, width_of(a), can ? "yes" : "no",
                     term->plain);
        }
        text_add(out, "\n");
    }
}

/* Each line of a verdict as a paragraph below what it is about. */
static void add_lines(const char *lines, struct text *out)
{
    const struct term_margins margins = {.columns = TERM_PAGE_COLUMNS, .at = 2, .hanging = 4};
    for (const char *at = lines; *at;) {
        const size_t length = strcspn(at, "\n");
        struct text line;
        text_init(&line);
        text_add(&line, "%.*s", (int)length, at);
        text_add(out, "  ");
        term_wrap(line.at, margins, out);
        text_release(&line);
        at += length + (at[length] == '\n');
    }
}

static void add_reasons(const struct check *check, struct text *out)
{
    for (int b = 0; b < BEHAVIOR_N; b++)
        for (int a = 0; a < ARRANGE_N; a++) {
            if (check->verdicts[b][a].can)
                continue;
            text_add(out, "\n%s, %s:\n", behavior_name((enum behavior)b),
                     arrange_name((enum arrange)a));
            add_lines(check->verdicts[b][a].why, out);
        }
}

static void print_text(const struct check *check, const struct term *term, struct text *out)
{
    char name[TERM_NAME_BYTES], n[32], all[32];
    text_add(out, "%s: %s of %s parameters compute in another dtype than %s, in %u of %u units\n\n",
             term_name(check->prepared.model.name, name), text_count(check->n_mixed, n),
             text_count(check->n_param, all), dtype_name(check->prepared.plan.param_dtype),
             check->n_mixed_unit, check->n_unit);
    add_table(check, term, out);
    add_reasons(check, out);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void add_reasons_json(const char *lines, struct arena *arena, struct cJSON *parent)
{
    struct cJSON *why = json_add_array(parent, "why_not");
    while (*lines) {
        const size_t length = strcspn(lines, "\n");
        json_add_string(why, NULL, arena_printf(arena, "%.*s", (int)length, lines));
        lines += length + (lines[length] == '\n');
    }
}

static void print_json(struct check *check, struct text *out)
{
    struct cJSON *root = json_new_object();
    json_add_string(root, "schema", "unshard.check/1");
    json_add_string(root, "model", check->prepared.model.name);
    json_add_u64(root, "parameters", check->n_param);
    json_add_u64(root, "mixed_parameters", check->n_mixed);
    json_add_u64(root, "units", check->n_unit);
    json_add_u64(root, "mixed_units", check->n_mixed_unit);
    json_add_string(root, "behavior", behavior_name(check->plan_options.policy.behavior));
    struct cJSON *verdicts = json_add_array(root, "verdicts");
    for (int b = 0; b < BEHAVIOR_N; b++)
        for (int a = 0; a < ARRANGE_N; a++) {
            struct cJSON *verdict = json_add_object(verdicts, NULL);
            json_add_string(verdict, "behavior", behavior_name((enum behavior)b));
            json_add_string(verdict, "arrange", arrange_name((enum arrange)a));
            json_add_bool(verdict, "can", check->verdicts[b][a].can);
            add_reasons_json(check->verdicts[b][a].why, &check->prepared.arena, verdict);
        }
    json_print(root, out);
    json_free(root);
}

enum status cmd_check(struct options *options, struct output *out, struct err *err)
{
    struct check check = {0};
    complete(options);
    enum status status = open_units(options, &check, err);

    if (status == STATUS_OK) {
        judge(&check);
        count(&check);
        if (option_given(options, OPTION_JSON))
            print_json(&check, &out->result);
        else
            print_text(&check, &out->term, &out->result);
        if (!check.verdicts[check.plan_options.policy.behavior][ARRANGE_NATIVE].can)
            status = STATUS_NO;
    }
    prepared_release(&check.prepared);
    return status;
}
