/* SPDX-License-Identifier: MIT */
/* The rank of a recording. */
#ifndef FDRI_TOOLS_COMMON_FILE_RANK_H
#define FDRI_TOOLS_COMMON_FILE_RANK_H

#include <fdr/reader.h>

/* Of MPI itself, of the launcher, of the file's name; -1: not known. */
int rank_of_file(const struct fdr_file *file, const char *path);

#endif
