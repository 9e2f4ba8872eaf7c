/*
 * Questions and their probes as text and JSON; see plan_find.h.
 */
#include <math.h>

#include "src/cli/plan_find.h"
#include "src/cli/plan_rank.h"
#include "src/json.h"

/* What is asked, with the limit in between; the option that the answer is of; what there is none of. */
static const struct {
    const char *name, *before, *behind, *option, *none;
} words[FIND_N] = {
    [FIND_BATCH] = {"batch", "the largest microbatch that fits into", "", "batch",
                    "not even one sequence fits into"},
    [FIND_SEQ] = {"seq", "the longest sequence, in steps of 128 tokens, that fits into", "", "seq",
                  "not even 128 tokens fit into"},
    [FIND_GPUS] = {"gpus",
                   "the fewest GPUs, whole nodes where more than one, that it fits on within",
                   " of each", "gpus", "more GPUs than are looked at are needed for"},
    [FIND_HSDP] = {"hsdp", "from how many GPUs on replicas are faster than full sharding, within",
                   " of each", "gpus", "replicas are nowhere faster than full sharding within"},
};

void plan_find_none(const struct plan_find *find, struct text *out)
{
    const struct find_probe *last = &find->probes[find->n - 1];
    char limit[32], total[32];

    text_add(out, "%s %s; at --%s %llu", words[find->question].none,
             text_bytes(find->limit_bytes, limit), words[find->question].option,
             (unsigned long long)last->value);
    if (last->probe.refused)
        text_add(out, " %s", last->probe.refused);
    else if (find->question == FIND_HSDP && last->probe.fits)
        text_add(out, " the best with replicas is no more than %g %% faster",
                 100 * PAIRED_LEAST_SHARE);
    else
        text_add(out, " the smallest plan needs %s without retries of the allocator",
                 text_bytes(last->probe.total_bytes, total));
}

static void add_fits(const struct find_probe *probe, struct text *out)
{
    const struct plan_probe *plan = &probe->probe;
    char step[32], total[32];

    text_add(out, "%10llu  %-4s", (unsigned long long)probe->value, probe->yes ? "yes" : "no");
    if (plan->refused) {
        text_add(out, "  refused: ");
        term_text(plan->refused, 60, out);
    } else {
        text_add(out, "  %12s  %12.1f  %10s", text_ns(plan->step_ns, step),
                 plan_probe_tokens_per_s(plan), text_bytes(plan->total_bytes, total));
    }
    text_add(out, "%s%s\n", plan->retries ? "  retries" : "",
             probe->in_full ? "  searched in full" : "");
}

static void add_time(const struct plan_probe *plan, struct text *out)
{
    char step[32];
    text_add(out, "  %12s",
             plan->refused ? "refused"
             : plan->fits  ? text_ns(plan->step_ns, step)
                           : "too large");
}

static void add_replicas(const struct find_probe *probe, struct text *out)
{
    text_add(out, "%10llu  %-4s", (unsigned long long)probe->value, probe->yes ? "yes" : "no");
    add_time(&probe->probe, out);
    add_time(&probe->replicas, out);
    text_add(out, "  %llu of %llu\n", (unsigned long long)probe->n_replica,
             (unsigned long long)(probe->value / probe->n_replica));
}

void plan_find_text(const struct plan_find *find, const struct term *term, struct text *out)
{
    const bool replicas = find->question == FIND_HSDP;
    char limit[32];

    if (!find->on)
        return;
    text_add(out, "%s %s%s?\n", words[find->question].before, text_bytes(find->limit_bytes, limit),
             words[find->question].behind);
    text_add(out, "%s%10s  %-4s  %12s  %12s  %s%s\n", term->quiet, words[find->question].option,
             replicas ? "" : "fits", replicas ? "all sharded" : "step",
             replicas ? "replicas" : "tokens/s/GPU", replicas ? "which" : "     total",
             term->plain);
    for (uint32_t i = 0; i < find->n; i++)
        (replicas ? add_replicas : add_fits)(&find->probes[i], out);
    if (find->found)
        text_add(out, "%sfound:%s --%s %llu\n\n", term->good, term->plain,
                 words[find->question].option, (unsigned long long)find->value);
    else
        text_add(out, "%sfound:%s none\n\n", term->bad, term->plain);
}

static void add_plan(const struct plan_probe *plan, struct cJSON *object)
{
    if (plan->refused) {
        json_add_string(object, "refused", plan->refused);
        return;
    }
    json_add_bool(object, "fits", plan->fits);
    json_add_int(object, "step_ns", plan->step_ns);
    json_add_number(object, "tokens_per_s_per_gpu", plan_probe_tokens_per_s(plan), 4);
    json_add_u64(object, "total_bytes", plan->total_bytes);
    json_add_bool(object, "needs_retries", plan->retries);
}

void plan_find_json(const struct plan_find *find, struct cJSON *root)
{
    if (!find->on)
        return;
    struct cJSON *object = json_add_object(root, "find");
    json_add_string(object, "question", words[find->question].name);
    json_add_string(object, "option", words[find->question].option);
    if (find->found)
        json_add_u64(object, "answer", find->value);
    else
        json_add_number(object, "answer", NAN, 1); /* null */
    json_add_u64(object, "memory_limit_bytes", find->limit_bytes);
    struct cJSON *probes = json_add_array(object, "probes");
    for (uint32_t i = 0; i < find->n; i++) {
        const struct find_probe *probe = &find->probes[i];
        struct cJSON *row = json_add_object(probes, NULL);
        json_add_u64(row, "value", probe->value);
        json_add_bool(row, "yes", probe->yes);
        json_add_bool(row, "in_full", probe->in_full);
        add_plan(&probe->probe, row);
        if (probe->n_replica == 0)
            continue;
        json_add_u64(row, "replicas", probe->n_replica);
        add_plan(&probe->replicas, json_add_object(row, "with_replicas"));
    }
}
