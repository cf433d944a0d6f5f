/* SPDX-License-Identifier: MIT */
/* Facts of a job from its processes, for fdr hang. */
#ifndef FDRI_TOOLS_HANG_LOAD_H
#define FDRI_TOOLS_HANG_LOAD_H

#include "tools/hang/job_facts.h"
#include "tools/hang/standing_threads.h"

bool has_mpi_state(const struct fdr_file *file);
/* Fills the facts of all processes with a rank; `earlier` are the looks at the same processes before, NULL files: there
 * was none. False: out of memory. */
bool job_load(struct job *job, const struct process *process, struct fdr_file *const *earlier, size_t count);
void job_free(struct job *job);
/* A second look at processes that run, at least a second after the first: process[i].file becomes the new one, and
 * earlier[i] the old one. */
void look_again(struct process *process, struct fdr_file **earlier, size_t count);
/* ---- process_life.c ---- */
/* Processor time of a process so far, in ns; UINT64_MAX: not known. */
uint64_t processor_time(uint32_t pid);
void ask_kernel(struct process *p); /* about its threads */
uint32_t pid_of(const struct process *p);
/* The newest event of its threads, in times of the recording; 0: none. */
uint64_t newest_event(const struct fdr_file *file);
/* Sets the end, the moments, what it does and whether it moves; earlier: NULL, or the look before. */
void look_at_life(const struct process *p, const struct fdr_file *earlier, struct job_rank *r);
/* The thread whose regions are told: one that calls MPI, else the first. NULL: none has recorded. */
const struct fdr_location_info *told_location(const struct fdr_file *file, uint32_t tid);

#endif
