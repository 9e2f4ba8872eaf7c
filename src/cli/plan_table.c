/*
 * The table of compared plans: one line each, at most as wide as the report is.
 *
 * Columns are as wide as what is in them. Where that is too wide blanks are saved first, then words
 * of the titles; where it still is (long patterns, many options that differ) each plan is told in a
 * line of its own, above its numbers, and in the end only numbers that decide are shown. Cells are
 * ASCII but for names.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/plan_rank.h"
#include "src/cli/plan_report.h"
#include "src/cli/plan_scale.h"

enum { N_NUMBERS = 12, MAX_COLUMNS = OPTION_N + N_NUMBERS };
enum { FEW_COLUMNS = 60 }; /* in less only the numbers that decide are shown */
enum { REACH = 4 };        /* columns by which a top may begin before what it stands over */

struct title {
    const char *top, *bottom; /* adjacent columns with the same top share it */
};

struct column {
    struct title titles[2]; /* the second where there is little room */
    bool left, close;       /* close to the column before it, whatever the shape */
    unsigned width;
};

/* From what shows a table best to what needs the least room. */
static const struct shape {
    unsigned gap; /* blanks between columns that share no top */
    bool tight;   /* titles are short */
    bool apart;   /* plans stand in lines of their own */
} shapes[] = {{3, false, false}, {2, false, false}, {1, false, false}, {1, true, false},
              {3, false, true},  {2, false, true},  {1, false, true},  {1, true, true}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static const struct title tight_titles[OPTION_N] = {
    [OPTION_UNITS] = {"", "units"},
    [OPTION_RESHARD] = {"re-", "shard"},
    [OPTION_PREFETCH] = {"pre-", "fetch"},
    [OPTION_PREFETCH_BACKWARD] = {"back-", "ward"},
    [OPTION_RESHARD_BACKWARD] = {"reshard", "backward"},
    [OPTION_REDUCE_INPUTS] = {"reduce", "inputs"},
    [OPTION_SEPARATE_REDUCE_COMM] = {"2nd", "comm"},
    [OPTION_AC] = {"", "ac"},
    [OPTION_ALLOCATOR] = {"", "allocator"},
};

struct table {
    const struct plan_report *report;
    const struct term *term;
    struct plan_scale step, tokens, exposed, memory, moved;
    struct arena arena;
    struct column columns[MAX_COLUMNS];
    uint32_t n_plan, n_column; /* the first n_plan say which plan it is */
    const char *(*cells)[MAX_COLUMNS];
    struct shape shape;
    unsigned rank_digits;
};

static uint64_t smaller(uint64_t least, uint64_t value)
{
    return value > 0 && value < least ? value : least;
}

static uint64_t larger(uint64_t most, uint64_t value)
{
    return value > most ? value : most;
}

static void choose_scales(struct table *table)
{
    struct {
        uint64_t least, most;
    } step = {UINT64_MAX, 0}, exposed = step, memory = step, moved = step;
    double tokens_per_s = 0;
    for (uint32_t i = 0; i < table->report->n_row; i++) {
        const struct plan_row *row = &table->report->rows[i];
        if (row->refused)
            continue;
        step.least = smaller(step.least, (uint64_t)row->step_ns[SPREAD_MID]);
        step.most = larger(step.most, (uint64_t)row->step_ns[SPREAD_HIGH]);
        tokens_per_s = fmax(tokens_per_s, plan_row_tokens_per_s(row));
        exposed.least = smaller(exposed.least, (uint64_t)row->exposed_ns);
        exposed.most = larger(exposed.most, (uint64_t)row->exposed_ns);
        memory.least = smaller(memory.least, row->total_bytes);
        memory.most = larger(memory.most, row->total_bytes);
        moved.least = smaller(moved.least, row->moved_bytes);
        moved.most = larger(moved.most, row->moved_bytes);
    }
    table->step = plan_scale_ns(step.least, step.most);
    table->tokens = plan_scale_tokens(tokens_per_s);
    table->exposed = plan_scale_ns(smaller(exposed.most, exposed.least), exposed.most);
    table->memory = plan_scale_bytes(memory.least, memory.most);
    table->moved = plan_scale_bytes(smaller(moved.most, moved.least), moved.most);
}

static struct column *add_column(struct table *table, struct title title, struct title tight)
{
    struct column *column = &table->columns[table->n_column++];
    *column = (struct column){.titles = {title, tight}};
    return column;
}

static void add_plan_columns(struct table *table)
{
    const struct plan_report *report = table->report;
    for (uint32_t i = 0; i < report->lists.n_list; i++) {
        enum option_id id = report->lists.lists[i].id;
        if (id != OPTION_UNITS && !plan_report_varies(report, id))
            continue;
        for (uint32_t row = 0; row < report->n_row; row++) {
            char name[TERM_NAME_BYTES];
            term_name(id == OPTION_UNITS ? report->rows[row].label
                                         : option_text(&report->rows[row].options, id),
                      name);
            table->cells[row][table->n_column] = arena_strdup(&table->arena, name);
        }
        struct title title = {"", option_table[id].name};
        const struct title tight = tight_titles[id].bottom ? tight_titles[id] : title;
        add_column(table, title, tight)->left = true;
    }
    table->n_plan = table->n_column;
}

/* Which numbers are shown where there is little room: units, mid, exposed and total. */
static const bool decides[N_NUMBERS] = {[0] = true, [2] = true, [5] = true, [9] = true};

static void add_number_columns(struct table *table, bool few)
{
    const char *step = arena_printf(&table->arena, "step, %s", table->step.unit);
    const char *short_memory = arena_printf(&table->arena, "memory, %s", table->memory.unit);
    const char *memory =
        few ? short_memory : arena_printf(&table->arena, "memory of a GPU, %s", table->memory.unit);
    static const char exposed[] = "exposed", overlap[] = "overlap", collectives[] = "collectives";
    const char *tokens = table->tokens.unit;
    const struct title titles[N_NUMBERS][2] = {
        {{"", "n"}, {"", "n"}},
        {{step, "low"}, {step, "low"}},
        {{step, "mid"}, {step, "mid"}},
        {{step, "high"}, {step, "high"}},
        {{tokens, "a GPU"}, {tokens, "/GPU"}},
        {{exposed, table->exposed.unit}, {exposed, table->exposed.unit}},
        {{overlap, "%"}, {overlap, "%"}},
        {{memory, "alloc."}, {short_memory, "alloc"}},
        {{memory, "reserved"}, {short_memory, "resv."}},
        {{memory, "total"}, {short_memory, "total"}},
        {{collectives, "n"}, {collectives, "n"}},
        {{collectives, table->moved.unit}, {collectives, table->moved.unit}},
    };
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        if (!few || decides[i])
            add_column(table, titles[i][0], titles[i][1])->close = titles[i][0].top == overlap;
    }
}

static const char *scaled(struct table *table, const struct plan_scale *scale, double value)
{
    return arena_printf(&table->arena, "%.*f", scale->decimals, value / scale->size);
}

static void fill_numbers(struct table *table, const struct plan_row *row, bool few,
                         const char **cells)
{
    const char *all[N_NUMBERS], **cell = all;
    struct arena *arena = &table->arena;
    *cell++ = arena_printf(arena, "%u", row->n_unit);
    for (unsigned spread = 0; spread < SPREAD_N; spread++)
        *cell++ = scaled(table, &table->step, (double)row->step_ns[spread]);
    *cell++ = scaled(table, &table->tokens, plan_row_tokens_per_s(row));
    *cell++ = scaled(table, &table->exposed, (double)row->exposed_ns);
    *cell++ = isfinite(row->overlap_pct) ? arena_printf(arena, "%.1f", row->overlap_pct) : "-";
    *cell++ = scaled(table, &table->memory, (double)row->allocated_bytes);
    *cell++ = scaled(table, &table->memory, (double)row->reserved_bytes);
    *cell++ = scaled(table, &table->memory, (double)row->total_bytes);
    *cell++ = arena_printf(arena, "%u", row->n_collective);
    *cell = scaled(table, &table->moved, (double)row->moved_bytes);
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        if (!few || decides[i])
            *cells++ = all[i];
    }
}

static struct title title_of(const struct table *table, uint32_t c)
{
    return table->columns[c].titles[table->shape.tight];
}

/* The last of the columns that share the top with this one. */
static uint32_t group_end(const struct table *table, uint32_t c)
{
    uint32_t end = c;
    const char *top = title_of(table, c).top;
    while (*top && end + 1 < table->n_column && title_of(table, end + 1).top == top)
        end++;
    return end;
}

static bool is_alone(const struct table *table, uint32_t c)
{
    return group_end(table, c) == c && (c == 0 || group_end(table, c - 1) < c);
}

/* The blanks before this column. */
static unsigned gap_before(const struct table *table, uint32_t c)
{
    bool close = c == 0 || table->columns[c].close || group_end(table, c - 1) >= c;
    return close ? 1 : table->shape.gap;
}

static uint32_t first_column(const struct table *table)
{
    return table->shape.apart ? table->n_plan : 0;
}

static unsigned span_width(const struct table *table, uint32_t first, uint32_t last)
{
    unsigned width = table->columns[first].width;
    for (uint32_t c = first + 1; c <= last; c++)
        width += gap_before(table, c) + table->columns[c].width;
    return width;
}

/* How far a top may begin before its columns: what the one of the columns before leaves, but a blank. */
static unsigned reach(const struct table *table, uint32_t before, uint32_t c)
{
    const unsigned words = (unsigned)strlen(title_of(table, before).top);
    if (c == first_column(table) || words == 0)
        return REACH;
    const unsigned width = span_width(table, before, c - 1), gap = gap_before(table, c);
    const unsigned blanks = gap - 1 + (words < width && c - before > 1 ? (width - words) / 2 : 0);
    return blanks < REACH ? blanks : REACH;
}

static void fit_widths(struct table *table)
{
    for (uint32_t c = 0; c < table->n_column; c++) {
        struct column *column = &table->columns[c];
        size_t bottom = strlen(title_of(table, c).bottom);
        size_t top = is_alone(table, c) ? strlen(title_of(table, c).top) : 0;
        column->width = (unsigned)(top > bottom ? top : bottom);
        for (uint32_t row = 0; row < table->report->n_row; row++) {
            const char *cell = table->cells[row][c];
            if (cell && term_columns(cell) > column->width)
                column->width = term_columns(cell);
        }
    }
    for (uint32_t c = 0, end, before = 0; c < table->n_column; before = c, c = end + 1) {
        end = group_end(table, c);
        unsigned words = (unsigned)strlen(title_of(table, c).top),
                 room = span_width(table, c, end) + reach(table, before, c);
        if (words > room)
            table->columns[c].width += words - room;
    }
}

/* Before the first column: marks, rank and marks. */
static unsigned rank_width(const struct table *table)
{
    return table->rank_digits + 3;
}

/* False: even the last one is too wide, and was taken. */
static bool choose_shape(struct table *table)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        table->shape = shapes[i];
        fit_widths(table);
        uint32_t first = first_column(table);
        if (rank_width(table) + gap_before(table, first) +
                span_width(table, first, table->n_column - 1) <=
            table->report->columns)
            return true;
    }
    return false;
}

static void add_blanks(unsigned n, struct text *out)
{
    text_add(out, "%*s", (int)n, "");
}

/* Blanks at a line's end are not printed: they wait until something stands behind them. */
static void add_cell(const char *cell, const struct column *column, unsigned *blanks,
                     struct text *out)
{
    unsigned pad = column->width - term_columns(cell);
    if (!*cell) {
        *blanks += pad;
        return;
    }
    add_blanks(*blanks + (column->left ? 0 : pad), out);
    text_add(out, "%s", cell);
    *blanks = column->left ? pad : 0;
}

/* Centred over their columns; what is wider reaches to the left, where a top leaves blanks. */
static void add_tops(const struct table *table, struct text *out)
{
    unsigned blanks = rank_width(table);
    for (uint32_t c = first_column(table), end; c < table->n_column; c = end + 1) {
        const char *top = title_of(table, c).top;
        end = group_end(table, c);
        unsigned width = span_width(table, c, end), words = (unsigned)strlen(top);
        unsigned before = gap_before(table, c);
        blanks += before;
        if (!words) {
            blanks += width;
            continue;
        }
        unsigned pad = words > width || table->columns[c].left ? 0
                       : end == c                              ? width - words
                                                               : (width - words + 1) / 2;
        blanks -= words > width && blanks > words - width ? words - width : 0;
        add_blanks(blanks + pad, out);
        text_add(out, "%s", top);
        blanks = words > width ? 0 : width - words - pad;
    }
    text_add(out, "\n");
}

static void add_titles(const struct table *table, struct text *out)
{
    unsigned blanks = rank_width(table);
    add_tops(table, out);
    for (uint32_t c = first_column(table); c < table->n_column; c++) {
        blanks += gap_before(table, c);
        add_cell(title_of(table, c).bottom, &table->columns[c], &blanks, out);
    }
    text_add(out, "\n");
}

/* ">12*=": the one to take, on the front, tied with the first or too large. */
static void add_rank(const struct table *table, const struct plan_row *row, struct text *out)
{
    char rank[12] = "-", mark = row->tied ? '=' : ' ';
    if (!row->refused)
        snprintf(rank, sizeof rank, "%u", row->rank);
    if (!row->refused && !row->fits)
        mark = '!';
    text_add(out, "%c%*s%c%c", row == table->report->best ? '>' : ' ', (int)table->rank_digits,
             rank, row->on_front ? '*' : ' ', mark);
}

static void add_cells(const struct table *table, uint32_t row, uint32_t first, uint32_t end,
                      struct text *out)
{
    unsigned blanks = 0;
    for (uint32_t c = first; c < end; c++) {
        blanks += gap_before(table, c);
        add_cell(table->cells[row][c], &table->columns[c], &blanks, out);
    }
    text_add(out, "\n");
}

/* Behind the rank, in a line of its own. */
static void add_plan(const struct table *table, const struct plan_row *row, struct text *out)
{
    struct text words;
    text_init(&words);
    plan_report_differs(table->report, row, &words);
    text_add(out, " ");
    plan_report_wrap(table->report, words.at, rank_width(table) + 1, rank_width(table) + 3, out);
    text_release(&words);
}

/* A reason is told once. */
static void add_refusal(const struct table *table, const struct plan_row *row, struct text *out)
{
    struct text words;
    bool told =
        row > table->report->rows && row[-1].refused && !strcmp(row[-1].refused, row->refused);
    text_init(&words);
    text_add(&words, "refused%s%s", told ? " for the same reason" : ": ", told ? "" : row->refused);
    unsigned at = rank_width(table) + 1;
    add_blanks(at, out);
    plan_report_wrap(table->report, words.at, at, at + 2, out);
    text_release(&words);
}

static void add_row(const struct table *table, uint32_t index, struct text *out)
{
    const struct plan_row *row = &table->report->rows[index];
    const struct term *term = table->term;
    const char *dress = row == table->report->best ? term->strong : "";
    if (row->refused || !row->fits)
        dress = term->quiet;
    text_add(out, "%s", dress);
    add_rank(table, row, out);
    if (table->shape.apart) {
        add_plan(table, row, out);
        add_blanks(row->refused ? 0 : rank_width(table), out);
    } else if (row->refused) {
        add_cells(table, index, 0, table->n_plan, out);
    }
    if (row->refused)
        add_refusal(table, row, out);
    else
        add_cells(table, index, first_column(table), table->n_column, out);
    text_add(out, "%s", *dress ? term->plain : "");
}

static void fill_table(struct table *table, bool few)
{
    table->n_column = 0;
    add_plan_columns(table);
    add_number_columns(table, few);
    for (uint32_t row = 0; row < table->report->n_row; row++) {
        if (!table->report->rows[row].refused)
            fill_numbers(table, &table->report->rows[row], few, &table->cells[row][table->n_plan]);
    }
}

static unsigned count_digits(uint32_t n)
{
    unsigned digits = 1;
    for (; n >= 10; n /= 10)
        digits++;
    return digits;
}

void plan_report_table(const struct plan_report *report, const struct term *term, struct text *out)
{
    struct table table = {
        .report = report, .term = term, .rank_digits = count_digits(report->n_row)};
    arena_init(&table.arena);
    table.cells = arena_alloc(&table.arena, sizeof *table.cells * report->n_row);
    choose_scales(&table);
    bool few = report->columns < FEW_COLUMNS;
    fill_table(&table, few);
    if (!choose_shape(&table) && !few) {
        fill_table(&table, true);
        choose_shape(&table);
    }
    text_add(out, "%s", term->quiet);
    add_titles(&table, out);
    text_add(out, "%s", term->plain);
    for (uint32_t row = 0; row < report->n_row; row++)
        add_row(&table, row, out);
    arena_release(&table.arena);
}
