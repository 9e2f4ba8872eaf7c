#ifndef TESTS_LINE_DIFF_H
#define TESTS_LINE_DIFF_H
/*
 * Two texts line by line: the fewest lines that have to go ('-') and to come ('+'), each with two
 * lines of what is the same around it (' '); "..." stands for what is left out.
 */
#include "src/text.h"

void line_diff(const char *before, const char *after, struct text *out);

#endif
