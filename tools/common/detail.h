/* SPDX-License-Identifier: MIT */
/* How far back every call is kept, and what is kept of the time before. */
#ifndef FDRI_TOOLS_COMMON_DETAIL_H
#define FDRI_TOOLS_COMMON_DETAIL_H

#include "tools/common/verbs.h"

/* From here on every call of all threads is kept; 0: all are, or nothing is known. */
uint64_t complete_from(struct fdr_file *file);
/* "Every call of the last 2.1 s is kept; ..." */
void detail_sentence(struct fdr_file *file, char *text, size_t bytes);

#endif
