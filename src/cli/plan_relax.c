/*
 * Ladders of changes, each climbed until something fits; see plan_relax.h.
 */
#include "src/cli/plan_relax.h"

#include <string.h>

#include "gpu/stop_signal.h"
#include "src/cli/plan_rows.h"
#include "src/cli/term.h"
#include "src/json.h"

enum { MOST_DOUBLINGS = 7 };

struct relaxing {
    struct comparison *c;
    struct plan_prober *prober;
    const struct options *now; /* of the smallest plan */
    struct plan_relax *relax;
    struct plan_change under; /* together with each change; value NULL: nothing */
};

static enum status try(struct relaxing *r, enum option_id id, const char *value, bool *fits,
                       struct err *err)
{
    struct plan_relaxation *it = &r->relax->at[r->relax->n];

    *it = (struct plan_relaxation){0};
    if (r->under.value)
        it->changes[it->n_change++] = r->under;
    it->changes[it->n_change++] = (struct plan_change){id, value};
    const enum status status =
        plan_probe(r->prober, it->changes, it->n_change, EFFORT_FITS, &it->probe, err);
    *fits = status == STATUS_OK && it->probe.fits;
    r->relax->n += *fits;
    return status;
}

static enum status try_allocator(struct relaxing *r, struct err *err)
{
    bool fits;

    return option_number(r->now, OPTION_ALLOCATOR) != 0
               ? STATUS_OK
               : try(r, OPTION_ALLOCATOR, "expandable", &fits, err);
}

static bool has_full_ac(const struct options *options)
{
    return strcmp(option_text(options, OPTION_AC), "full") == 0;
}

static enum status try_ac(struct relaxing *r, struct err *err)
{
    static const char *const words[] = {"op", "full"};
    const bool none = strcmp(option_text(r->now, OPTION_AC), "none") == 0;
    enum status status = STATUS_OK;
    bool fits = r->under.value || has_full_ac(r->now);

    for (size_t i = none ? 0 : 1; i < 2 && status == STATUS_OK && !fits; i++)
        status = try(r, OPTION_AC, words[i], &fits, err);
    return status;
}

static enum status try_batch(struct relaxing *r, struct err *err)
{
    enum status status = STATUS_OK;
    bool fits = false;

    for (uint64_t batch = option_number(r->now, OPTION_BATCH) / 2;
         batch > 0 && status == STATUS_OK && !fits; batch /= 2)
        status = try(r, OPTION_BATCH, arena_printf(&r->c->arena, "%llu", (unsigned long long)batch),
                     &fits, err);
    return status;
}

/* Nodes that were given are as many GPUs each, so that they would have to follow. */
static enum status try_gpus(struct relaxing *r, struct err *err)
{
    enum status status = STATUS_OK;
    uint64_t gpus = option_number(r->now, OPTION_GPUS);
    bool fits = option_given(r->c->options, OPTION_NODES);

    for (unsigned i = 0; i < MOST_DOUBLINGS && status == STATUS_OK && !fits; i++) {
        if ((gpus *= 2) > PLAN_MAX_RANKS)
            break;
        r->relax->most_gpus = gpus;
        status = try(r, OPTION_GPUS, arena_printf(&r->c->arena, "%llu", (unsigned long long)gpus),
                     &fits, err);
    }
    return status;
}

static enum status try_all(struct relaxing *r, struct err *err)
{
    static enum status (*const ladders[])(struct relaxing *, struct err *) = {try_allocator, try_ac,
                                                                              try_batch, try_gpus};
    enum status status = STATUS_OK;

    for (size_t i = 0; i < sizeof ladders / sizeof *ladders && status == STATUS_OK; i++)
        status = ladders[i](r, err);
    return status;
}

enum status plan_relax(struct comparison *c, struct err *err)
{
    struct relaxing r = {.c = c, .now = &c->report.smallest->options, .relax = &c->report.relax};
    enum status status = plan_prober_new(c, &r.prober, err);

    if (status != STATUS_OK)
        return status;
    r.relax->on = true;
    status = try_all(&r, err);
    if (status == STATUS_OK && r.relax->n == 0 && !has_full_ac(r.now)) {
        r.under = (struct plan_change){OPTION_AC, "full"};
        status = try_all(&r, err);
    }
    if (stop_signal_came()) /* what was found until then is as good */
        status = STATUS_OK;
    plan_prober_free(r.prober);
    return status;
}

void plan_relax_changes(const struct plan_relaxation *relaxation, struct text *out)
{
    for (uint32_t i = 0; i < relaxation->n_change; i++)
        text_add(out, " --%s" TERM_GLUE "%s", option_table[relaxation->changes[i].id].name,
                 relaxation->changes[i].value);
}

static void add_none(const struct plan_relax *relax, struct text *out)
{
    char gpus[32];

    if (relax->most_gpus > 0)
        text_add(out, "neither smaller batches and checkpointing nor %s GPUs are enough\n",
                 text_count(relax->most_gpus, gpus));
    else
        text_add(out, "neither smaller batches nor checkpointing are enough\n");
}

void plan_relax_text(const struct plan_relax *relax, struct text *out)
{
    char step[32], total[32];

    if (!relax->on)
        return;
    if (relax->n == 0)
        add_none(relax, out);
    for (uint32_t i = 0; i < relax->n; i++) {
        const struct plan_probe *probe = &relax->at[i].probe;
        struct text words;
        text_init(&words);
        plan_relax_changes(&relax->at[i], &words);
        for (char *glue = words.at; (glue = strchr(glue, *TERM_GLUE));)
            *glue = ' ';
        text_add(out, "%s%-28s %10s a step %7.0f tokens/s/GPU %9s%s\n",
                 i == 0 ? "fits with:" : "       or:", words.at, text_ns(probe->step_ns, step),
                 plan_probe_tokens_per_s(probe), text_bytes(probe->total_bytes, total),
                 probe->retries ? "  retries" : "");
        text_release(&words);
    }
}

static void add_changes(const struct plan_relaxation *relaxation, struct cJSON *parent)
{
    struct cJSON *object = json_add_object(parent, "options");

    for (uint32_t i = 0; i < relaxation->n_change; i++)
        json_add_string(object, option_table[relaxation->changes[i].id].name,
                        relaxation->changes[i].value);
}

void plan_relax_json(const struct plan_relax *relax, struct cJSON *root)
{
    if (!relax->on)
        return;
    struct cJSON *array = json_add_array(root, "relaxations");
    for (uint32_t i = 0; i < relax->n; i++) {
        const struct plan_probe *probe = &relax->at[i].probe;
        struct cJSON *object = json_add_object(array, NULL);
        add_changes(&relax->at[i], object);
        json_add_int(object, "step_ns", probe->step_ns);
        json_add_number(object, "tokens_per_s_per_gpu", plan_probe_tokens_per_s(probe), 4);
        json_add_u64(object, "total_bytes", probe->total_bytes);
        json_add_bool(object, "needs_retries", probe->retries);
    }
}
