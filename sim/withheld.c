/*
 * How much can be withheld; see withheld.h. All of it in most cases; else by bisection, as if a
 * step that gets through without some memory did so with any of it.
 */
#include "sim/withheld.h"

enum { PARTS = 16 };

struct attempt {
    const struct program *program;
    const struct prices *prices;
    const struct alloc_config *config;
    struct placement *placement;
    struct step_time time;
    struct engine *engine;
    bool through;
};

static enum status attempt_without(struct attempt *attempt, uint64_t bytes, struct arena *arena,
                                   struct err *err)
{
    struct alloc_config config = *attempt->config;
    struct err why = {0};

    config.capacity_bytes -= bytes < config.capacity_bytes ? bytes : config.capacity_bytes;
    attempt->placement = arena_array(arena, struct placement, 1);
    const enum status status =
        simulate_timed(attempt->program, attempt->prices, &config, arena, &attempt->time,
                       attempt->placement, NULL, &attempt->engine, &why);
    attempt->through = status == STATUS_OK;
    if (attempt->through || attempt->placement->out_of_memory)
        return STATUS_OK;
    return err_set(err, status, "%s", why.text);
}

/* The most parts of most_bytes that it gets through without; not all of them. */
static enum status find_parts(struct attempt *attempt, uint64_t most_bytes, uint64_t *out,
                              struct err *err)
{
    enum status status = STATUS_OK;
    uint64_t through = 0, stuck = PARTS;
    struct arena scratch;

    arena_init(&scratch);
    while (stuck - through > 1 && status == STATUS_OK) {
        const uint64_t middle = (through + stuck) / 2;
        status = attempt_without(attempt, most_bytes / PARTS * middle, &scratch, err);
        if (attempt->through)
            through = middle;
        else
            stuck = middle;
        arena_reset(&scratch);
    }
    arena_release(&scratch);
    *out = through;
    return status;
}

static enum status find_bytes(struct attempt *attempt, uint64_t most_bytes, struct arena *arena,
                              uint64_t *out, struct err *err)
{
    uint64_t parts;
    enum status status = attempt_without(attempt, most_bytes, arena, err);

    *out = most_bytes;
    if (status != STATUS_OK || attempt->through)
        return status;
    if ((status = find_parts(attempt, most_bytes, &parts, err)))
        return status;
    *out = most_bytes / PARTS * parts;
    return *out == 0 ? STATUS_OK : attempt_without(attempt, *out, arena, err);
}

enum status simulate_withheld(const struct program *program, const struct prices *prices,
                              const struct alloc_config *config, uint64_t most_bytes,
                              struct arena *arena, struct step_time *time, struct engine **engine,
                              struct withheld *out, struct err *err)
{
    struct attempt attempt = {.program = program, .prices = prices, .config = config};
    uint64_t bytes;
    const enum status status = find_bytes(&attempt, most_bytes, arena, &bytes, err);

    *out = (struct withheld){0};
    if (status != STATUS_OK || bytes == 0 || attempt.time.step_ns <= time->step_ns)
        return status;
    *time = attempt.time;
    if (engine)
        *engine = attempt.engine;
    *out = (struct withheld){.bytes = bytes,
                             .retries = step_time_retries(&attempt.time, attempt.placement)};
    return STATUS_OK;
}
