/*
 * One row of a table of nccl-tests; see nccl_table.h. Numbers are read as such, never by their place
 * in the line: their widths change with what they say.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/text.h"
#include "traces/nccl_table.h"

static const uint64_t MAX_BYTES = UINT64_C(1) << 50;
static const double LEAST_US = 1e-3, MOST_US = 1e9;

static enum status fail_row(const struct nccl_table *table, struct err *err, const char *what,
                            const char *word)
{
    return err_set(err, STATUS_INPUT, "line %u: %s '%s'", table->line, what, word);
}

static bool to_number(const char *word, double *out)
{
    char *end;
    const double number = strtod(word, &end);

    if (end == word || *end != '\0' || !isfinite(number) || number < 0)
        return false;
    *out = number;
    return true;
}

/* Half of a word's last digit: 19.54 was printed of something up to 0.005 away. */
static double half_digit(const char *word)
{
    const char *point = strchr(word, '.');

    if (strpbrk(word, "eE"))
        return INFINITY;
    return 0.5 * pow(10, point ? -(double)strlen(point + 1) : 0);
}

/* Narrows what busbw / algbw can be; numbers that are too small to say anything do not. */
static enum status take_ratio(struct nccl_table *table, const char *algbw, const char *busbw,
                              struct err *err)
{
    struct nccl_open_test *open = &table->open;
    const double alg_half = half_digit(algbw), bus_half = half_digit(busbw);
    double alg, bus;

    if (!to_number(algbw, &alg))
        return fail_row(table, err, "algbw is no number:", algbw);
    if (!to_number(busbw, &bus))
        return fail_row(table, err, "busbw is no number:", busbw);
    if (alg <= 2 * alg_half || !isfinite(bus_half))
        return STATUS_OK;
    open->least_ratio = fmax(open->least_ratio, (bus - bus_half) / (alg + alg_half));
    open->most_ratio = fmin(open->most_ratio, (bus + bus_half) / (alg - alg_half));
    if (open->least_ratio > open->most_ratio)
        return fail_row(table, err, "busbw is of another number of ranks than above:", busbw);
    return STATUS_OK;
}

/* One of the two halves of a row. Some tests have only one; N/A stands for the other. */
static enum status take_block(struct nccl_table *table, const struct nccl_words *words, int block,
                              double *seconds, struct err *err)
{
    const struct nccl_columns *columns = &table->columns;
    const char *time = words->at[columns->time[block]];
    double us, wrong = 0;

    if (strcmp(time, "N/A") == 0)
        return STATUS_OK;
    if (!to_number(time, &us) || us < LEAST_US || us > MOST_US)
        return fail_row(table, err, "this is no time in microseconds:", time);
    if (columns->wrong[block] >= 0 && to_number(words->at[columns->wrong[block]], &wrong) &&
        wrong > 0)
        return fail_row(table, err, "the collective gave wrong values, its time says nothing:",
                        words->at[columns->wrong[block]]);
    *seconds = us * 1e-6;
    return take_ratio(table, words->at[columns->algbw[block]], words->at[columns->busbw[block]],
                      err);
}

static bool is_date(const char *word)
{
    static const char form[] = "dddd-dd-dd";

    for (size_t i = 0; i < sizeof form; i++)
        if (form[i] == 'd' ? word[i] < '0' || word[i] > '9' : word[i] != form[i])
            return false;
    return true;
}

static enum status check_row(const struct nccl_table *table, const struct nccl_words *words,
                             struct err *err)
{
    if (table->columns.n == 0)
        return fail_row(table, err, "a row before the line '# size count type ...':", words->at[0]);
    if (words->n < table->columns.n)
        return err_set(err, STATUS_INPUT, "line %u: %d columns in place of %d: a row is cut off",
                       table->line, words->n, table->columns.n);
    if (table->n_row == NCCL_MAX_ROWS)
        return err_set(err, STATUS_INPUT, "line %u: more than %d rows", table->line, NCCL_MAX_ROWS);
    return STATUS_OK;
}

enum status nccl_table_row(struct nccl_table *table, const struct nccl_words *words,
                           struct err *err)
{
    const struct nccl_columns *columns = &table->columns;
    struct nccl_row row = {.line = table->line};
    enum status status = check_row(table, words, err);

    if (status != STATUS_OK)
        return status;
    if (!text_to_u64(words->at[columns->size], &row.bytes) || row.bytes > MAX_BYTES)
        return fail_row(table, err, "this is no size of a message:", words->at[columns->size]);
    if (row.bytes == 0) /* a message that is too small to be cut over the ranks */
        return STATUS_OK;
    for (int block = 0; block < NCCL_BLOCK_N && status == STATUS_OK; block++)
        status = take_block(table, words, block, &row.seconds[block], err);
    if (status != STATUS_OK)
        return status;
    table->open.reduces = strcmp(words->at[columns->redop], "none") != 0;
    if (columns->date >= 0 && !table->open.date[0] && is_date(words->at[columns->date]))
        memcpy(table->open.date, words->at[columns->date], NCCL_DATE_BYTES);
    table->rows[table->n_row++] = row;
    return STATUS_OK;
}
