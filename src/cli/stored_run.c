/*
 * A stored run as something to simulate; see stored_run.h.
 */
#include "src/cli/stored_run.h"

#include <inttypes.h>
#include <string.h>

#include "src/cli/history.h"
#include "src/cluster_json.h"

enum status stored_run_prepare(struct options *options, struct arena *arena,
                               struct stored_run *stored, struct prepared *out, struct err *err)
{
    enum status status =
        history_read(options, options->operands[0], arena, &stored->id, &stored->run, err);
    return status == STATUS_OK ? stored_run_open(stored, options, arena, out, err) : status;
}

enum status stored_run_open(const struct stored_run *stored, struct options *options,
                            struct arena *arena, struct prepared *out, struct err *err)
{
    options->operands[0] = stored->run.model;
    enum status status = prepared_asked_read(stored->run.plan_json, arena, options, err);
    if (status != STATUS_OK)
        return status;
    status = prepare_open(options, stored->run.model_json, out, err);
    return status == STATUS_OK ? prepare_plan(options, out, err) : status;
}

bool stored_run_same_program(const struct stored_run *stored, const struct prepared *prepared)
{
    return stored->run.program_hash == program_hash(&prepared->program);
}

bool stored_run_same_cluster(const struct stored_run *stored, const struct prepared *prepared)
{
    struct cJSON *cluster = cluster_to_json(&prepared->cluster);
    struct text text;
    text_init(&text);
    json_print_line(cluster, &text);
    const bool same = !strcmp(text.at, stored->run.cluster_json);
    text_release(&text);
    json_free(cluster);
    return same;
}

void stored_run_warn(const struct stored_run *stored, const struct prepared *prepared,
                     struct text *warnings)
{
    if (!stored_run_same_program(stored, prepared))
        text_add(warnings,
                 "run %" PRId64 " was of program %016llx, what is explained is program %016llx\n",
                 stored->id, (unsigned long long)stored->run.program_hash,
                 (unsigned long long)program_hash(&prepared->program));
    if (!stored_run_same_cluster(stored, prepared))
        text_add(warnings, "cluster '%s' is not what it was in run %" PRId64 "\n",
                 prepared->cluster.name, stored->id);
}
