/*
 * JSON files of tests; see quoted.h.
 */
#include "tests/quoted.h"

#include <stdio.h>

#include "tests/tap.h"

void quoted_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file)
        tap_bail("cannot write a file of this test");
    for (; *text; text++)
        fputc(*text == '\'' ? '"' : *text, file);
    if (fclose(file) != 0)
        tap_bail("cannot write a file of this test");
}
