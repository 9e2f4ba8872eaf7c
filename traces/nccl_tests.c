/*
 * Reading the text of nccl-tests; see nccl_tests.h. Lines are told apart here, what they say of one
 * test is put together in nccl_table.c.
 *
 * A comment begins with '#', a row with a whole number; any other line is of somebody else and is
 * passed over. No line and no file is held as a whole.
 */
#include "traces/nccl_tests.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "traces/nccl_table.h"

enum { LINE_BYTES = 1024 };

/* What goes before a line: "[1,0]<stdout>:" of mpirun --tag-output, "0:" of srun --label. */
static char *without_label(char *line)
{
    int mpirun = 0, srun = 0;

    sscanf(line, " [%*[0-9],%*[0-9]]<%*[a-z]>:%n", &mpirun);
    sscanf(line, " %*[0-9]:%n", &srun);
    line += mpirun > 0 ? mpirun : srun;
    return line + strspn(line, " \t");
}

static bool is_row(const char *line)
{
    const size_t digits = strspn(line, "0123456789");
    return digits > 0 && (line[digits] == '\0' || isspace((unsigned char)line[digits]));
}

static struct nccl_words split(char *line)
{
    struct nccl_words words = {0};
    char *rest = line, *word;

    while (words.n < NCCL_MAX_WORDS && (word = strtok_r(rest, " \t\r\n", &rest)))
        words.at[words.n++] = word;
    return words;
}

static enum status take_line(struct nccl_table *table, char *line, struct err *err)
{
    line = without_label(line);
    if (*line == '#') {
        const struct nccl_words words = split(line + 1);
        return nccl_table_comment(table, &words, err);
    }
    if (!is_row(line))
        return STATUS_OK;
    const struct nccl_words words = split(line);
    return nccl_table_row(table, &words, err);
}

/* What did not fit is passed over; rows are far shorter. A line may have NUL in it. */
static bool next_line(FILE *file, char line[LINE_BYTES])
{
    char *last = &line[LINE_BYTES - 2];
    int c = 0;

    *last = '\n';
    if (!fgets(line, LINE_BYTES, file))
        return false;
    if (*last != '\n' && *last != '\0')
        while (c != EOF && c != '\n')
            c = fgetc(file);
    return true;
}

static enum status read_lines(FILE *file, struct nccl_table *table, struct err *err)
{
    char line[LINE_BYTES];
    enum status status = STATUS_OK;

    while (status == STATUS_OK && next_line(file, line)) {
        table->line++;
        status = take_line(table, line, err);
    }
    if (status == STATUS_OK && ferror(file))
        return err_set(err, STATUS_INPUT, "cannot be read: %s", strerror(errno));
    return status == STATUS_OK ? nccl_table_end(table, err) : status;
}

enum status nccl_tests_read(const char *path, struct arena *arena, struct nccl_tests *out,
                            struct err *err)
{
    struct nccl_table *table = nccl_table_new(arena);
    FILE *file = fopen(path, "r");

    if (!file)
        return err_set(err, STATUS_INPUT, "cannot read '%s': %s", path, strerror(errno));
    const enum status status = read_lines(file, table, err);
    fclose(file);
    if (status != STATUS_OK)
        return err_prefix(err, "%s", path);
    *out = (struct nccl_tests){.tests = table->tests, .n_test = table->n_test};
    return STATUS_OK;
}
