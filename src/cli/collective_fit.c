/*
 * Fits of collectives; see collective_fit.h.
 */
#include "src/cli/collective_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cost_formula.h"
#include "src/cli/nonnegative_fit.h"

static const double MB = 1e6, US = 1e-6;
static const double MOST_BYTES_PER_S = 1e14; /* that a cluster file can say */
static const double TAIL = 0.1;              /* of all errors that are beyond the spread, a side */

/* ---- errors ------------------------------------------------------------------------------------- */

struct error_of {
    double error; /* measured over predicted, less 1 */
    double bytes;
};

static int by_error(const void *a, const void *b)
{
    const struct error_of *x = a, *y = b;
    return (x->error > y->error) - (x->error < y->error);
}

static int by_size_of_error(const void *a, const void *b)
{
    const double x = fabs(((const struct error_of *)a)->error);
    const double y = fabs(((const struct error_of *)b)->error);
    return (x > y) - (x < y);
}

/* Sorts them. */
static struct fit_errors errors_of(struct error_of *all, uint32_t n)
{
    struct fit_errors out;
    const uint32_t tail = (uint32_t)floor(TAIL * (n - 1));
    qsort(all, n, sizeof *all, by_error);
    out.faster = fmax(0, -all[tail].error);
    out.slower = fmax(0, all[n - 1 - tail].error);
    qsort(all, n, sizeof *all, by_size_of_error);
    out.median = fabs(all[n / 2].error);
    out.worst = fabs(all[n - 1].error);
    out.worst_bytes = all[n - 1].bytes;
    return out;
}

/* ---- rows --------------------------------------------------------------------------------------- */

/* a, b and B. */
static void fit_formula(struct collective_row *row, const struct collective_point *points,
                        uint32_t n)
{
    double x[FIT_UNKNOWNS];
    struct fit fit = {0};

    for (uint32_t i = 0; i < n; i++) {
        const double us = points[i].seconds / US;
        const double sent_mb = points[i].bytes / MB * (row->ranks - 1) / row->ranks;
        const double factors[FIT_UNKNOWNS] = {1 / us, sqrt(sent_mb) / us, sent_mb / us};
        fit_add(&fit, factors, 1);
    }
    fit_solve(&fit, x);
    row->a_s = x[0] * US;
    row->b_s_per_sqrt_mb = x[1] * US;
    row->bytes_per_s = fmin(MB / (x[2] * US), MOST_BYTES_PER_S);
}

void collective_fit_row(const struct measured_row *measured, struct collective_point *points,
                        struct collective_row *out)
{
    struct collective_point kept[MEASURED_MOST_SIZES];
    const uint32_t n = measured_row_kept(measured, kept);

    *out = (struct collective_row){
        .kind = measured->kind, .ranks = measured->ranks, .nodes = measured->nodes};
    fit_formula(out, kept, n);
    out->n_point = measured_row_fill(measured, kept, n, points);
    out->points = points;
    if (measured->steps) {
        out->shape = measured->steps->shape;
        out->n_shape = measured->steps->n_shape;
    }
}

double collective_fit_error(const struct measured_row *measured, uint32_t left_out)
{
    struct collective_point others[MEASURED_MOST_SIZES], points[CLUSTER_MAX_POINTS];
    const struct collective_point *point = &measured->points[left_out];
    struct measured_row without = *measured;
    struct collective_row row;

    without.points = others;
    without.n_point = measured->n_point - 1;
    memcpy(others, measured->points, left_out * sizeof *others);
    memcpy(others + left_out, point + 1, (without.n_point - left_out) * sizeof *others);
    collective_fit_row(&without, points, &row);
    return point->seconds / measured_row_s(&row, point->bytes) - 1;
}

struct fit_errors collective_fit_errors(const struct measured_row *measured)
{
    struct error_of errors[MEASURED_MOST_SIZES];

    for (uint32_t i = 0; i < measured->n_point; i++)
        errors[i] = (struct error_of){.error = collective_fit_error(measured, i),
                                      .bytes = measured->points[i].bytes};
    return errors_of(errors, measured->n_point);
}

/* ---- the network -------------------------------------------------------------------------------- */

static double sample_s(const struct cluster *cluster, const struct cost_rates *rates,
                       const struct node_sample *sample)
{
    const uint32_t per_node = sample->ranks / sample->nodes;
    const struct collective_row *row =
        cost_collective_row(cluster, (enum task_kind)sample->kind, per_node, 1);
    return cost_collective_s(rates, row, sample->bytes, sample->nodes, per_node);
}

/* What is left of its time without the start of the row is said to be its ranks' and its bytes'. */
static void add_sample(struct fit *fit, const struct cluster *cluster,
                       const struct cost_rates *rates, const struct node_sample *sample)
{
    const uint32_t per_node = sample->ranks / sample->nodes;
    const struct collective_row *row =
        cost_collective_row(cluster, (enum task_kind)sample->kind, per_node, 1);
    const double sent = sample->bytes * (sample->ranks - 1.0) / sample->ranks;
    const double wire_s =
        sent * (1 + sample->nodes / rates->node_decay) / (rates->nic_bytes_per_s * per_node);
    const double start_s =
        fmax(row->a_s, rates->collective_floor_s) + row->b_s_per_sqrt_mb * sqrt(sent / MB);
    const double factors[FIT_UNKNOWNS] = {US * sample->ranks / sample->seconds,
                                          wire_s / sample->seconds};
    fit_add(fit, factors, 1 - start_s / sample->seconds);
}

static struct fit_errors network_errors(const struct cluster *cluster,
                                        const struct node_sample *samples, uint32_t n)
{
    const struct cost_rates rates = cost_rates_at(cluster, SPREAD_MID);
    struct error_of *errors = calloc(n, sizeof *errors);

    if (!errors)
        err_out_of_memory(n * sizeof *errors);
    for (uint32_t i = 0; i < n; i++) {
        errors[i].bytes = samples[i].bytes;
        errors[i].error = samples[i].seconds / sample_s(cluster, &rates, &samples[i]) - 1;
    }
    const struct fit_errors out = errors_of(errors, n);
    free(errors);
    return out;
}

static void set_spread(struct rate *rate, double mid, double low, double high)
{
    *rate = (struct rate){.at = {low, mid, high}};
}

struct fit_errors collective_fit_network(struct cluster *cluster, const struct node_sample *samples,
                                         uint32_t n)
{
    const struct cost_rates rates = cost_rates_at(cluster, SPREAD_MID);
    struct fit fit = {0};
    double x[FIT_UNKNOWNS];

    for (uint32_t i = 0; i < n; i++)
        add_sample(&fit, cluster, &rates, &samples[i]);
    fit_solve(&fit, x);
    const double efficiency = fmin(1, 1 / x[1]), latency_s = x[0] * US;
    set_spread(&cluster->nic_efficiency, efficiency, efficiency, efficiency);
    set_spread(&cluster->rank_latency_s, latency_s, latency_s, latency_s);
    const struct fit_errors errors = network_errors(cluster, samples, n);
    const double fast = 1 - errors.faster, slow = 1 + errors.slower;
    set_spread(&cluster->nic_efficiency, efficiency, fmin(1, efficiency / fast), efficiency / slow);
    set_spread(&cluster->rank_latency_s, latency_s, latency_s * fast, latency_s * slow);
    return errors;
}
