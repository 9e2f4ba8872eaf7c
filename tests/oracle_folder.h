/*
 * All files of what fully_shard was recorded to do, in the order of their names.
 */
#ifndef TESTS_ORACLE_FOLDER_H
#define TESTS_ORACLE_FOLDER_H

#include "tests/oracle_read.h"

typedef void oracle_visit(const struct oracle_file *file, void *context);

/* A check for each that it is well-formed; ends the test where there is none or one is not. */
void oracle_folder_walk(oracle_visit *visit, void *context);

#endif
