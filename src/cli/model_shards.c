/*
 * How parameters are cut over ranks; see model_shards.h. Needs shapes alone, so that it works for a
 * model of which nothing but a safetensors header is known.
 */
#include "src/cli/model_shards.h"

#include "src/layout.h"

struct cut {
    struct param_layout layout;
    uint64_t last_rows;   /* of the last rank that has any */
    uint64_t empty_ranks; /* hold nothing but padding */
    uint64_t padding_elements;
};

static struct cut cut_of(const struct param *param, uint64_t ranks)
{
    struct cut cut = {.layout = param_layout_of(param, 0, ranks)};
    const uint64_t holders = (cut.layout.rows + cut.layout.chunk_rows - 1) / cut.layout.chunk_rows;

    cut.last_rows = param_layout_rows(&cut.layout, holders - 1);
    cut.empty_ranks = ranks - holders;
    cut.padding_elements =
        (cut.layout.chunk_rows * ranks - cut.layout.rows) * cut.layout.row_elements;
    return cut;
}

enum status model_shards_check(const struct model *model, struct err *err)
{
    for (uint32_t i = 0; i < model->n_param; i++)
        if (model->params[i].n_dim == 0 || model->params[i].numel == 0)
            return err_set(err, STATUS_INPUT,
                           "'%s' has no rows to cut; FSDP takes no such parameter",
                           model->params[i].name);
    return STATUS_OK;
}

static uint64_t all_padding(const struct model *model, uint64_t ranks)
{
    uint64_t padding_elements = 0;
    for (uint32_t i = 0; i < model->n_param; i++)
        padding_elements += cut_of(&model->params[i], ranks).padding_elements;
    return padding_elements;
}

void model_shards_text(const struct model *model, uint64_t ranks, const bool *shown,
                       const struct term *term, struct text *out)
{
    const uint64_t padding_elements = all_padding(model, ranks);
    char count[32];

    text_add(out, "\n%scut over %llu ranks along dim 0, each shard padded to the first's%s\n",
             term->strong, (unsigned long long)ranks, term->plain);
    text_add(out, "  %-52s%12s%12s%12s\n", "", "rows a rank", "last rank", "empty ranks");
    for (uint32_t i = 0; i < model->n_param; i++) {
        if (!shown[i])
            continue;
        const struct cut cut = cut_of(&model->params[i], ranks);
        text_add(out, "  %s", model->params[i].name);
        text_pad(out, 54);
        text_add(out, "%12llu%12llu%12llu\n", (unsigned long long)cut.layout.chunk_rows,
                 (unsigned long long)cut.last_rows, (unsigned long long)cut.empty_ranks);
    }
    text_add(out, "  padding in all  %s elements", text_count(padding_elements, count));
    text_add(out, ", %.3g %% of the model\n",
             100 * (double)padding_elements / (double)model->n_element);
}

void model_shards_json(const struct model *model, uint64_t ranks, struct cJSON *parent)
{
    struct cJSON *shards = json_add_object(parent, "shards");
    json_add_u64(shards, "ranks", ranks);
    json_add_u64(shards, "padding_elements", all_padding(model, ranks));
    struct cJSON *array = json_add_array(shards, "parameters");
    for (uint32_t i = 0; i < model->n_param; i++) {
        const struct cut cut = cut_of(&model->params[i], ranks);
        struct cJSON *object = json_add_object(array, NULL);
        json_add_string(object, "name", model->params[i].name);
        json_add_u64(object, "rows", cut.layout.rows);
        json_add_u64(object, "rows_per_rank", cut.layout.chunk_rows);
        json_add_u64(object, "last_rank_rows", cut.last_rows);
        json_add_u64(object, "empty_ranks", cut.empty_ranks);
        json_add_u64(object, "padding_elements", cut.padding_elements);
    }
}
