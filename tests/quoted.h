#ifndef TESTS_QUOTED_H
#define TESTS_QUOTED_H
/*
 * JSON files of tests, written in C strings that stay readable.
 */

/* Writes the file with " for each '; ends the test where that fails. */
void quoted_write(const char *path, const char *text);

#endif
