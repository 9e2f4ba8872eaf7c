/*
 * `unshard query`: SQL of a person over the run history, as table, CSV or JSON.
 *
 * What a statement may do is decided by db/query.h, how rows look by grid.h.
 */
#include "src/cli/command.h"
#include "src/cli/grid.h"
#include "src/cli/history.h"

struct asking {
    struct arena arena;
    struct grid grid;
};

static enum status take_row(void *self, int n, const char *const *names,
                            const struct query_value *values, struct err *err)
{
    struct asking *asking = self;
    (void)err;
    if (values)
        grid_add(&asking->grid, values);
    else
        grid_begin(&asking->grid, &asking->arena, (uint32_t)n, names);
    return STATUS_OK;
}

static enum status print_rows(const struct options *options, const struct grid *grid,
                              struct output *out, struct err *err)
{
    if (option_given(options, OPTION_JSON))
        return grid_json(grid, &out->result, err);
    if (option_given(options, OPTION_CSV))
        grid_csv(grid, &out->result);
    else
        grid_text(grid, &out->term, &out->result);
    return STATUS_OK;
}

enum status cmd_query(struct options *options, struct output *out, struct err *err)
{
    struct asking asking = {.grid = {0}};
    const char *path;
    if (option_given(options, OPTION_JSON) && option_given(options, OPTION_CSV))
        return err_set(err, STATUS_USAGE, "--json and --csv exclude each other; give one");

    arena_init(&asking.arena);
    struct query query = {
        .sql = options->operands[0],
        .params = &options->operands[1],
        .timeout_ms = (int64_t)option_number(options, OPTION_TIMEOUT) * 1000,
    };
    while (query.n_param < OPTIONS_MAX_OPERANDS - 1 && query.params[query.n_param])
        query.n_param++;
    enum status status = history_path(options, &asking.arena, &path, err);
    if (status == STATUS_OK)
        status = query_run(path, &query, take_row, &asking, err);
    if (status == STATUS_OK)
        status = print_rows(options, &asking.grid, out, err);
    arena_release(&asking.arena);
    return status;
}
