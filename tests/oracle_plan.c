/*
 * A case as the command line would have it; see oracle_project.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/command.h"
#include "tests/oracle_project.h"
#include "tests/tap.h"

enum { MAX_ARGS = 64 };

static const struct command sim = {"sim", COMMAND_SIM, .operand = "model"};

/* Writes the document into a new file, whose name replaces the template. */
static void write_document(const struct json_at *at, char *name)
{
    struct text text;
    text_init(&text);
    json_print(at->node, &text);
    const int file = mkstemp(name);
    if (file < 0 || write(file, text.at, text.length) != (ssize_t)text.length)
        tap_bail("cannot write a file of this test");
    close(file);
    text_release(&text);
}

/* The words of the case, then more; units from a file have that file's name. */
static int fill_args(const struct oracle_case *of, const char *const *more,
                     struct oracle_plan *plan, char *args[MAX_ARGS], char units[40])
{
    int n = 0;

    args[n++] = (char *)sim.name;
    args[n++] = plan->model_file;
    for (uint32_t i = 0; i < of->n_arg && n < MAX_ARGS - 1; i++)
        args[n++] = strcmp(of->args[i], "@units_file") == 0 ? units : (char *)of->args[i];
    for (; *more && n < MAX_ARGS - 1; more++)
        args[n++] = (char *)*more;
    args[n] = NULL;
    return n;
}

enum status oracle_plan_init(const struct oracle_case *of, struct oracle_plan *out, struct err *err)
{
    static const char *const nothing[] = {NULL};
    return oracle_plan_init_with(of, nothing, out, err);
}

enum status oracle_plan_init_with(const struct oracle_case *of, const char *const *more,
                                  struct oracle_plan *out, struct err *err)
{
    char *args[MAX_ARGS], units[40] = "";

    *out = (struct oracle_plan){.model_file = "oracle-model-XXXXXX"};
    write_document(&of->model, out->model_file);
    if (of->has_units_file) {
        strcpy(out->units_file, "oracle-units-XXXXXX");
        write_document(&of->units_file, out->units_file);
        snprintf(units, sizeof units, "@%s", out->units_file);
    }
    const int n = fill_args(of, more, out, args, units);
    enum status status = options_parse(&sim, n, args, &out->options, err);
    return status ? status : prepare(&out->options, &out->prepared, err);
}

void oracle_plan_release(struct oracle_plan *plan)
{
    unlink(plan->model_file);
    if (*plan->units_file)
        unlink(plan->units_file);
    prepared_release(&plan->prepared);
}
