/* SPDX-License-Identifier: MIT */
/* One time line for recordings of several hosts. */
#ifndef FDRI_CONVERT_TIME_LINE_H
#define FDRI_CONVERT_TIME_LINE_H

#include <fdr/reader.h>

/* Computes what is to be added to the times of each recording. The line that began first gets 0, so no time becomes
 * negative. */
void fdri_convert_time_line(struct fdr_file *const *files, size_t count, uint64_t *shift_ns);

#endif
