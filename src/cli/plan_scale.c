/*
 * Choosing units; see plan_scale.h. What is 0 does not count as the least.
 */
#include "src/cli/plan_scale.h"

#include <stddef.h>

struct unit {
    const char *name;
    double size;
};

static const struct unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
static const struct unit sizes[] = {
    {"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};

static struct plan_scale choose(const struct unit *units, size_t n, uint64_t least, uint64_t most)
{
    enum { TOO_LONG = 100000 };
    size_t i = 0;
    while (i + 1 < n &&
           ((double)least >= units[i + 1].size || (double)most >= (double)TOO_LONG * units[i].size))
        i++;
    return (struct plan_scale){units[i].name, units[i].size, i > 0};
}

/* Times of one model lie near to one another, so that more digits count. */
struct plan_scale plan_scale_ns(uint64_t least, uint64_t most)
{
    struct plan_scale scale = choose(times, sizeof times / sizeof *times, least, most);
    if (scale.decimals > 0 && (double)most < 100 * scale.size)
        scale.decimals = (double)most < 10 * scale.size ? 3 : 2;
    return scale;
}

struct plan_scale plan_scale_bytes(uint64_t least, uint64_t most)
{
    struct plan_scale scale = choose(sizes, sizeof sizes / sizeof *sizes, least, most);
    if (scale.decimals > 0 && (double)most < 10 * scale.size)
        scale.decimals = 2;
    return scale;
}

struct plan_scale plan_scale_tokens(double most_per_s)
{
    return most_per_s < 1e6 ? (struct plan_scale){"tokens/s", 1, 0}
                            : (struct plan_scale){"Mtok/s", 1e6, 1};
}
