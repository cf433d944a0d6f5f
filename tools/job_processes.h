/* SPDX-License-Identifier: MIT */
/* The running ranks of a job on this machine. */
#ifndef FDRI_TOOLS_JOB_PROCESSES_H
#define FDRI_TOOLS_JOB_PROCESSES_H

#include <stddef.h>
#include <stdint.h>

/* Those of the job with this name (the note mpi.job), or that the process of this number started, such as mpirun. The
 * list is to be freed; NULL: out of memory. DONE, or COULD_NOT after a message. */
int processes_of_job(const char *job, uint32_t **pid, size_t *count);

#endif
