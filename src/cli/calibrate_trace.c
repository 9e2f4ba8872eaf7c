/*
 * `unshard calibrate --from trace`: what profiles of PyTorch say of a cluster's rates.
 *
 * Durations alone tell the cost of a launch and of an all-gather's host part, sizes beside them the
 * speed of products, of attention and of collectives. All else stays the preset's, and so do ranges
 * of validity: what is taken over is the level of a formula, not its shape. A profile slows the host
 * down, and kernels share the GPU with collectives, so that these are rates of a run, not of a
 * kernel alone.
 */
#include "src/cli/calibrate_trace.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/cost_formula.h"

enum { LAUNCHES_MIN = 16 }; /* fewer have no tenths */
/* Of the forward pass of attention (spec COST section 2). */
static const double ATTENTION_BACKWARD_FACTOR = 2.94;

static void set_rate(struct calibrate_traces *of, struct rate *rate, struct rate made,
                     const char *name)
{
    made.valid = rate->valid;
    made.n_valid = rate->n_valid;
    *rate = made;
    text_add(&of->set, "%s%s", of->set.length > 0 ? ", " : "", name);
}

/* ---- the host --------------------------------------------------------------------------------------- */

/* The mean of what it is in each trace, by how often. */
struct mean {
    double sum;
    uint64_t n;
};

static void weigh(struct mean *mean, int64_t ns, uint64_t n)
{
    mean->sum += (double)ns * (double)n;
    mean->n += n;
}

static double mean_s(const struct mean *mean)
{
    return mean->n > 0 ? mean->sum / (double)mean->n * 1e-9 : 0;
}

/*
 * The call alone is less than what a launch costs, since PyTorch works between two of them. What lies
 * between two is more where the host waits or Python runs: the least tenth has neither. Slow calls
 * are the spread.
 */
static void set_launch(struct calibrate_traces *of, struct cluster *out)
{
    struct mean call = {0}, slow_call = {0}, interval = {0};

    for (uint32_t i = 0; i < of->n; i++) {
        const struct kineto *trace = &of->traces[i];
        weigh(&call, trace->launch.mid_ns, trace->launch.n);
        weigh(&slow_call, trace->launch.high_ns, trace->launch.n);
        weigh(&interval, trace->interval.low_ns, trace->interval.n);
    }
    if (interval.n < LAUNCHES_MIN)
        return;
    const double low_s = mean_s(&call), mid_s = fmax(low_s, mean_s(&interval));
    const char *source = arena_printf(
        of->arena,
        "%s: %" PRIu64 " launches, with what the profiler costs; low: 50 %% of the "
        "calls alone; mid: 10 %% of the times from one to the next; high: with 90 %% of "
        "the calls",
        of->origin, call.n);
    set_rate(of, &out->host_launch_s,
             calibrate_rate(low_s, mid_s, mid_s + mean_s(&slow_call) - low_s, source),
             "host.launch_us");
}

/* A range of FSDP by its hook: alone or with " (UNIT)" behind it. */
static bool is_hook(const char *name, const char *hook)
{
    const size_t length = strlen(hook);
    return !strncmp(name, hook, length) && (name[length] == '\0' || name[length] == ' ');
}

struct host_spread {
    struct mean low, mid, high;
};

static struct host_spread host_spread_of(const struct calibrate_traces *of, const char *hook)
{
    struct host_spread spread = {0};

    for (uint32_t i = 0; i < of->n; i++) {
        for (uint32_t j = 0; j < of->traces[i].n_range; j++) {
            const struct kineto_range *range = &of->traces[i].ranges[j];
            if (!is_hook(range->name, hook))
                continue;
            weigh(&spread.low, range->host.low_ns, range->host.n);
            weigh(&spread.mid, range->host.mid_ns, range->host.n);
            weigh(&spread.high, range->host.high_ns, range->host.n);
        }
    }
    return spread;
}

/* Unshard is the first of both ranges, waiting for it the second. */
static void set_all_gather(struct calibrate_traces *of, struct cluster *out)
{
    const struct host_spread gather = host_spread_of(of, "FSDP::all_gather");
    const struct host_spread copy_out = host_spread_of(of, "FSDP::all_gather_copy_out");

    if (gather.mid.n == 0 || copy_out.mid.n == 0)
        return;
    const char *source =
        arena_printf(of->arena,
                     "%s: 10, 50 and 90 %% of %" PRIu64 " ranges FSDP::all_gather and %" PRIu64
                     " FSDP::all_gather_copy_out on the host",
                     of->origin, gather.mid.n, copy_out.mid.n);
    set_rate(of, &out->host_all_gather_s,
             calibrate_rate(mean_s(&gather.low) + mean_s(&copy_out.low),
                            mean_s(&gather.mid) + mean_s(&copy_out.mid),
                            mean_s(&gather.high) + mean_s(&copy_out.high), source),
             "host.all_gather_us");
}

/* ---- products and attention ------------------------------------------------------------------------- */

static bool is_16_bit(const struct kineto_product *product)
{
    return !strcmp(product->dtype, "c10::BFloat16") || !strcmp(product->dtype, "c10::Half");
}

/* In the range that the preset gives for its own number, where it gives one. */
static bool is_valid(const struct rate *rate, enum quantity quantity, int64_t value)
{
    for (uint32_t i = 0; i < rate->n_valid; i++) {
        const struct valid_range *range = &rate->valid[i];
        if (range->quantity == quantity &&
            ((uint64_t)value < range->min || (uint64_t)value > range->max))
            return false;
    }
    return true;
}

/* Seconds of the formula that the derate divides, and what is spent beside it. 0: not such a one. */
struct formula_time {
    double divided_s, beside_s;
};

/* A product that the memory binds says nothing of the derate. */
static struct formula_time product_time(const struct cluster *preset,
                                        const struct kineto_product *product)
{
    static const struct formula_time none = {0};
    const struct rate *rate = &preset->gemm_efficiency;
    struct cost_rates rates = cost_rates_at(preset, SPREAD_MID);

    if (product->op != KINETO_MATMUL || product->batch != 1 || !is_16_bit(product) ||
        !is_valid(rate, QUANTITY_GEMM_DIM, product->m) ||
        !is_valid(rate, QUANTITY_GEMM_DIM, product->n) ||
        !is_valid(rate, QUANTITY_GEMM_DIM, product->k))
        return none;
    const double m = (double)product->m, n = (double)product->n, k = (double)product->k;
    rates.gemm_derate = 1;
    const double bound_s = cost_gemm_s(&rates, m, n, k);
    rates.memory_bytes_per_s = INFINITY;
    const double unbound_s = cost_gemm_s(&rates, m, n, k);
    if (bound_s > unbound_s)
        return none;
    return (struct formula_time){unbound_s - rates.gemm_start_s, rates.gemm_start_s};
}

static struct formula_time attention_time(const struct cluster *preset,
                                          const struct kineto_product *product)
{
    static const struct formula_time none = {0};
    struct cost_rates rates = cost_rates_at(preset, SPREAD_MID);

    if (product->op == KINETO_MATMUL || !product->causal || product->m != product->k ||
        !is_16_bit(product) || !is_valid(&preset->attention_s0, QUANTITY_SEQ, product->m))
        return none;
    rates.attention_derate = 1;
    const double forward_s =
        cost_attention_s(&rates, (double)product->batch, (double)product->m, (double)product->n);
    return (struct formula_time){
        product->op == KINETO_SDPA ? forward_s : ATTENTION_BACKWARD_FACTOR * forward_s, 0};
}

typedef struct formula_time formula_of(const struct cluster *preset,
                                       const struct kineto_product *product);

/* Of all calls that a formula fits: its seconds, and those that were seen. */
struct seen {
    double formula_s, seen_s[SPREAD_N];
    uint64_t n;
};

static void see(struct seen *seen, const struct kineto_product *product,
                struct formula_time formula)
{
    const struct kineto_spread *spread = &product->spread;
    const int64_t ns[SPREAD_N] = {spread->low_ns, spread->mid_ns, spread->high_ns};

    if (spread->n == 0 || formula.divided_s <= 0 ||
        (double)spread->low_ns * 1e-9 <= formula.beside_s)
        return;
    seen->n += spread->n;
    seen->formula_s += formula.divided_s * (double)spread->n;
    for (int at = 0; at < SPREAD_N; at++)
        seen->seen_s[at] += ((double)ns[at] * 1e-9 - formula.beside_s) * (double)spread->n;
}

/*
 * One by the other, all calls together, so that the derate gives their time: with a tenth, half and
 * nine tenths of the calls of each shape.
 */
static void set_derate(struct calibrate_traces *of, const struct cluster *preset,
                       formula_of *formula, struct rate *out, const char *name)
{
    struct seen seen = {0};

    for (uint32_t i = 0; i < of->n; i++) {
        for (uint32_t j = 0; j < of->traces[i].n_product; j++) {
            const struct kineto_product *product = &of->traces[i].products[j];
            see(&seen, product, formula(preset, product));
        }
    }
    if (seen.n == 0)
        return;
    const char *source = arena_printf(of->arena,
                                      "%s: 10, 50 and 90 %% of %" PRIu64 " calls, shape by shape, "
                                      "against the peak and efficiency of %s",
                                      of->origin, seen.n, preset->name);
    set_rate(of, out,
             calibrate_rate(seen.formula_s / seen.seen_s[SPREAD_LOW],
                            seen.formula_s / seen.seen_s[SPREAD_MID],
                            seen.formula_s / seen.seen_s[SPREAD_HIGH], source),
             name);
}

/* ---- the command ------------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *origin_of(const struct calibrate_traces *of, const struct options *options)
{
    const char *first = base_name(options->operands[0]), *date = of->traces[0].date;
    const char *day = of->traces[0].has_date ? arena_printf(of->arena, " of %s", date) : "";

    return of->n == 1
               ? arena_printf(of->arena, "trace %s%s", first, day)
               : arena_printf(of->arena, "traces %s and %" PRIu32 " more%s", first, of->n - 1, day);
}

static enum status read_traces(struct calibrate_traces *of, const struct options *options,
                               struct err *err)
{
    struct kineto *traces = arena_array(of->arena, struct kineto, OPTIONS_MAX_OPERANDS);
    enum status status = STATUS_OK;

    for (; of->n < OPTIONS_MAX_OPERANDS && options->operands[of->n]; of->n++) {
        const char *path = options->operands[of->n];
        status = kineto_read(path, of->arena, &traces[of->n], err);
        if (status == STATUS_OK && traces[of->n].n_kernel == 0)
            status =
                err_set(err, STATUS_INPUT,
                        "cannot calibrate from '%s': no kernel of a GPU is in it; profile with "
                        "ProfilerActivity.CUDA",
                        path);
        if (status != STATUS_OK)
            return status;
    }
    of->traces = traces;
    of->origin = origin_of(of, options);
    return STATUS_OK;
}

/* One that was calibrated before is called so already. */
static void rename_cluster(const struct calibrate_traces *of, struct cluster *out)
{
    static const char suffix[] = "+trace";
    const char *device = of->traces[0].device_name;

    if (!strstr(out->name, suffix))
        out->name = arena_printf(of->arena, "%s%s", out->name, suffix);
    out->description = arena_printf(of->arena, "%s; %s%s%s", out->description, of->origin,
                                    *device ? " on " : "", device);
}

static enum status set_all(struct calibrate_traces *of, struct cluster *out, struct err *err)
{
    const struct cluster preset = *out;

    set_launch(of, out);
    set_all_gather(of, out);
    set_derate(of, &preset, product_time, &out->gemm_derate, "gemm.derate");
    set_derate(of, &preset, attention_time, &out->attention_derate, "attention.derate");
    calibrate_trace_comm(of, out);
    if (of->set.length == 0)
        return err_set(err, STATUS_INPUT,
                       "nothing of a cluster is in %s: neither launches, nor products of 16 bits "
                       "with their shapes, nor collectives with their sizes",
                       of->origin);
    if (out->n_collective > CLUSTER_MAX_ROWS)
        return err_set(err, STATUS_INPUT, "%u rows of collectives, a cluster has at most %d",
                       out->n_collective, CLUSTER_MAX_ROWS);
    rename_cluster(of, out);
    return STATUS_OK;
}

static enum status take_traces(struct calibrate_traces *of, struct cluster *cluster,
                               const struct options *options, struct output *out, struct err *err)
{
    const char *preset = cluster->name;
    enum status status = read_traces(of, options, err);

    if (status == STATUS_OK)
        status = set_all(of, cluster, err);
    if (status != STATUS_OK)
        return status;
    if (of->n_between > 0)
        text_add(&out->warnings,
                 "of collectives between nodes (%" PRIu64
                 ") no rate is taken: a trace does not say "
                 "how ranks are spread over nodes\n",
                 of->n_between);
    return calibrate_put(cluster,
                         arena_printf(of->arena, "%s set from %s; the rest is that of %s",
                                      of->set.at, of->origin, preset),
                         options, out, err);
}

enum status calibrate_trace(const struct options *options, struct arena *arena, struct output *out,
                            struct err *err)
{
    const char *name = option_text(options, OPTION_CLUSTER);
    struct calibrate_traces of = {.arena = arena};
    struct cluster cluster;
    enum status status = cluster_open(name, arena, &cluster, err);

    if (status == STATUS_OK && cluster.has_prices)
        status = err_set(err, STATUS_USAGE,
                         "cluster '%s' has prices, which traces do not change; --cluster needs one "
                         "with rates",
                         name);
    if (status == STATUS_OK)
        status = take_traces(&of, &cluster, options, out, err);
    text_release(&of.set);
    return status;
}
