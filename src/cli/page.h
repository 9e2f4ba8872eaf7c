/*
 * What pages about a step have in common: who and what it is about, and paragraphs.
 */
#ifndef SRC_CLI_PAGE_H
#define SRC_CLI_PAGE_H

#include "src/cli/prepare.h"
#include "src/cli/term.h"

/*
 * The model, the GPUs, the options in force and what is never another in this version. units: what
 * is said behind the number of parameters, as in " in 33 units".
 */
void page_head(const struct prepared *prepared, const struct options *options, const char *units,
               const struct term *term, struct text *out);

/* A paragraph that goes on in a line at this column; later lines begin at hanging. */
void page_wrap(const char *paragraph, unsigned at, unsigned hanging, struct text *out);

#endif
