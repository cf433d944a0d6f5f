/* SPDX-License-Identifier: MIT */
/* `fdr run` of a whole MPI job: one folder for the files of all ranks, and the verdict. */
#ifndef FDRI_TOOLS_RUN_JOB_H
#define FDRI_TOOLS_RUN_JOB_H

#include <stdbool.h>
#include <stddef.h>

/* True for the launchers of MPI and of batch systems, by the command's name. */
bool is_job_launcher(const char *command);
/* The folder of the job's files, absolute: `out` if it is not NULL, else a new one in the working directory. The ranks
 * get it as FDR_DIR. False: it cannot be made; errno is set. */
bool job_folder(const char *out, char *path, size_t bytes);
/* Says on standard error how the job ended, with the words of fdr crash and fdr hang. It reads the recordings in the
 * folder that are younger than `began` (seconds since 1970). A new folder without any is removed. */
void job_verdict(const char *folder, bool is_new, long long began);

#endif
