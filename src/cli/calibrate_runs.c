/*
 * A table of measured runs as cluster files; see calibrate_runs.h. All machines are fitted before the
 * first file is written.
 */
#include "src/cli/calibrate_runs.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "src/cli/calibrate.h"

enum { FOLDER_MODE = 0777 };

const char *calibration_reason(const struct validated_row *row)
{
    if (row->reason)
        return row->reason;
    if (!row->counts)
        return "low trust";
    const bool is_name = *row->run->platform != '\0' && !strchr(row->run->platform, '/') &&
                         !strchr(row->run->gpu, '/');
    return is_name ? NULL : "a platform and a GPU are needed that can be the name of a file";
}

static bool is_of(const struct machine_fit *fit, const struct measured_run *run)
{
    return !strcmp(fit->platform, run->platform) && !strcmp(fit->gpu, run->gpu);
}

static struct machine_fit *fit_of(struct calibration *c, const struct measured_run *run)
{
    for (uint32_t i = 0; i < c->n_fit; i++)
        if (is_of(&c->fits[i], run))
            return &c->fits[i];
    struct machine_fit *fit = &c->fits[c->n_fit++];
    fit->platform = run->platform;
    fit->gpu = run->gpu;
    fit->rows = arena_array(c->arena, struct validated_row *, c->presets.n);
    return fit;
}

static enum status solve(struct calibration *c, struct err *err)
{
    enum status status = STATUS_OK;

    c->fits = arena_array(c->arena, struct machine_fit, c->presets.n);
    for (uint32_t i = 0; i < c->presets.n; i++) {
        struct validated_row *row = &c->presets.rows[i];
        if (calibration_reason(row))
            continue;
        struct machine_fit *fit = fit_of(c, row->run);
        fit->rows[fit->n++] = row;
    }
    if (c->n_fit == 0)
        return err_set(err, STATUS_INPUT, "%s: no row that can be fitted", c->file);
    for (uint32_t i = 0; i < c->n_fit && status == STATUS_OK; i++)
        status = machine_fit_solve(&c->fits[i], c->arena, err);
    return status;
}

/* ---- files ---------------------------------------------------------------------------------------- */

static const char *path_of(const struct calibration *c, const struct machine_fit *fit)
{
    for (uint32_t i = 0; i < c->n_fit; i++)
        if (&c->fits[i] != fit && !strcmp(c->fits[i].platform, fit->platform))
            return arena_printf(c->arena, "%s/%s.%s.json", c->folder, fit->platform, fit->gpu);
    return arena_printf(c->arena, "%s/%s.json", c->folder, fit->platform);
}

static enum status write_all(const struct calibration *c, struct err *err)
{
    enum status status = STATUS_OK;

    if (mkdir(c->folder, FOLDER_MODE) != 0 && errno != EEXIST)
        return err_set(err, STATUS_INPUT, "cannot make '%s': %s", c->folder, strerror(errno));
    for (uint32_t i = 0; i < c->n_fit && status == STATUS_OK; i++) {
        struct machine_fit *fit = &c->fits[i];
        fit->path = path_of(c, fit);
        status = machine_fit_clusters(fit, c->file, c->arena, err);
        if (status == STATUS_OK)
            status = calibrate_write(&fit->fitted, fit->path, err);
    }
    return status;
}

/* ---- what came of it ------------------------------------------------------------------------------ */

static struct platform_stats count(const struct machine_fit *fit, bool fitted, struct arena *arena)
{
    struct validation own = {.tolerance_pct = NAN,
                             .rows = arena_array(arena, struct validated_row, fit->n),
                             .n = fit->n};

    for (uint32_t r = 0; r < fit->n; r++) {
        struct validated_row *row = &own.rows[r];
        *row = *fit->rows[r];
        if (fitted)
            row->error_pct = 100 * (fit->seconds[r] / row->run->step_s - 1);
    }
    validate_count(&own, arena);
    return own.platforms[own.n_platform - 1];
}

enum status calibration_run(struct calibration *c, struct err *err)
{
    enum status status;

    if ((status = solve(c, err)) || (status = write_all(c, err)))
        return status;
    for (uint32_t i = 0; i < c->n_fit; i++) {
        c->fits[i].before = count(&c->fits[i], false, c->arena);
        c->fits[i].after = count(&c->fits[i], true, c->arena);
    }
    return STATUS_OK;
}
