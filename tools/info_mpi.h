/* SPDX-License-Identifier: MIT */
/* The state of an MPI process: the calls of its threads, and the collectives of its communicators. */
#ifndef FDRI_TOOLS_INFO_MPI_H
#define FDRI_TOOLS_INFO_MPI_H

#include <jansson.h>
#include <fdr/reader.h>
#include <stdbool.h>

/* Nothing for a process without MPI. full: all lines. */
void print_mpi_state(const struct fdr_file *file, bool full);
json_t *mpi_state_json(const struct fdr_file *file);

#endif
