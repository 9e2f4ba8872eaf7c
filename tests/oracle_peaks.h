/*
 * Bounds on memory of recorded cases against our program's requested bytes.
 */
#ifndef TESTS_ORACLE_PEAKS_H
#define TESTS_ORACLE_PEAKS_H

#include "tests/oracle_compare.h"

bool oracle_within_peaks(const struct oracle_subject *subject, struct text *why);

#endif
