/*
 * Who moves a stand-in's bytes in tests/stand_in.c: the host, unless a file that is linked beside it has
 * taken over.
 */
#ifndef TESTS_STAND_IN_TRIAL_H
#define TESTS_STAND_IN_TRIAL_H

#include "gpu/stand_in.h"

extern void (*stand_in_trial)(const struct stand_in *in); /* NULL: the host */

#endif
