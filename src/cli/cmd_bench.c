/*
 * `unshard bench`: how fast the program itself is, on one core of this machine. Each benchmark has a
 * file of its own.
 */
#include <string.h>

#include "src/cli/bench.h"

static const struct {
    const char *name;
    enum status (*run)(const struct options *options, struct output *out, struct err *err);
} benches[] = {
    {"host", bench_host},   {"search", bench_search}, {"sim", bench_sim},
    {"store", bench_store}, {"trace", bench_trace},
};

enum status cmd_bench(struct options *options, struct output *out, struct err *err)
{
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) {
        if (!strcmp(options->operands[0], benches[i].name))
            return benches[i].run(options, out, err);
    }
    return err_set(err, STATUS_USAGE, "no benchmark '%.80s'", options->operands[0]);
}
