/*
 * Rows of numbers in recorded cases: layout, division factors, bounds on memory. Internal to
 * tests/oracle_read.c.
 */
#ifndef TESTS_ORACLE_ROWS_H
#define TESTS_ORACLE_ROWS_H

#include "tests/oracle_read.h"

enum status oracle_take_params(const struct json_at *at, struct oracle_file *file,
                               struct oracle_case *out, struct err *err);
/* Of a whole row, or of what a test states of one. */
enum status oracle_take_divide(const struct json_at *at, struct oracle_file *file,
                               struct oracle_case *out, struct err *err);
/* Of a whole case: bounds, if it has any, come with the sizes that their coefficients stand for. */
enum status oracle_read_peaks(const struct json_at *at, struct oracle_file *file,
                              struct oracle_case *out, struct err *err);

#endif
