/*
 * What becomes of times that were measured; see measured_row.h.
 */
#include "src/cli/measured_row.h"

#include <math.h>

#include "sim/cost_formula.h"

/* In eight of ten rows of public outputs both halves, in place and not, differ by less. */
static const double REPEATS_DIFFER_BY = 0.03;

double measured_row_s(const struct collective_row *row, double bytes)
{
    static const struct cost_rates no_floor = {.spread = SPREAD_MID};
    const double nodes = collective_row_nodes(row);
    return cost_collective_s(&no_floor, row, bytes, nodes, row->ranks / nodes);
}

/* ---- hiccups ------------------------------------------------------------------------------------ */

bool measured_row_is_hiccup(const struct measured_row *row, uint32_t i)
{
    for (uint32_t larger = i + 1; larger < row->n_point; larger++)
        if (row->points[i].seconds > row->points[larger].seconds * (1 + REPEATS_DIFFER_BY))
            return true;
    return false;
}

uint32_t measured_row_kept(const struct measured_row *row, struct collective_point *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < row->n_point; i++)
        if (!measured_row_is_hiccup(row, i))
            out[n++] = row->points[i];
    return n;
}

/* ---- what lies between --------------------------------------------------------------------------- */

const struct collective_row *measured_row_steps(const struct measured_row *row,
                                                const struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->n_collective; i++) {
        const struct collective_row *other = &cluster->collectives[i];
        if (other->kind == row->kind && other->ranks == row->ranks &&
            collective_row_nodes(other) == (row->nodes > 1 ? row->nodes : 1) && other->n_shape > 0)
            return other;
    }
    return NULL;
}

/* What another machine of the kind takes, where launches cost what they cost here. */
struct steps {
    struct collective_row curve;
    double least_s;
};

static struct steps steps_of(const struct measured_row *row, const struct collective_point *kept,
                             uint32_t n)
{
    struct steps steps = {.curve = *row->steps, .least_s = kept->seconds};

    steps.curve.points = row->steps->shape;
    steps.curve.n_point = row->steps->n_shape;
    for (uint32_t i = 1; i < n; i++)
        steps.least_s = fmin(steps.least_s, kept[i].seconds);
    return steps;
}

static double curve_s(const struct steps *steps, double bytes)
{
    return fmax(measured_row_s(&steps->curve, bytes), steps->least_s);
}

/*
 * What this machine takes longer than the other is a start and a rate, and goes straight from one size
 * to the next; the steps are the other's. No size is quicker than the least, or slower than a larger
 * one.
 */
static double between_s(const struct steps *steps, const struct collective_point *less,
                        const struct collective_point *more, double bytes)
{
    const double share = (bytes - less->bytes) / (more->bytes - less->bytes);
    const double less_s = less->seconds - curve_s(steps, less->bytes);
    const double more_s = more->seconds - curve_s(steps, more->bytes);
    const double seconds = curve_s(steps, bytes) + less_s + share * (more_s - less_s);

    return fmin(fmax(seconds, steps->least_s), more->seconds);
}

/* The power of two that comes after. */
static double next_power(double bytes)
{
    int exponent;
    frexp(bytes, &exponent);
    return ldexp(1, exponent);
}

uint32_t measured_row_fill(const struct measured_row *row, const struct collective_point *kept,
                           uint32_t n, struct collective_point *out)
{
    const struct steps steps = row->steps ? steps_of(row, kept, n) : (struct steps){0};
    uint32_t filled = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct collective_point *less = &kept[i], *more = less + 1;
        out[filled++] = *less;
        if (!row->steps || i + 1 == n || more->bytes <= 2 * less->bytes)
            continue;
        for (double bytes = next_power(less->bytes); bytes < more->bytes; bytes *= 2)
            out[filled++] = (struct collective_point){bytes, between_s(&steps, less, more, bytes)};
    }
    return filled;
}
