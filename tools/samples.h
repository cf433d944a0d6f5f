/* SPDX-License-Identifier: MIT */
/* fdr samples, for fdr stats of a recording that has nothing else. */
#ifndef FDRI_TOOLS_SAMPLES_H
#define FDRI_TOOLS_SAMPLES_H

#include "tools/common/verbs.h"

/* Prints the table of functions that `fdr samples` prints by default. Returns DONE or COULD_NOT. */
int print_samples(struct fdr_file *file, const char *path);

#endif
