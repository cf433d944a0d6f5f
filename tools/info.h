/* SPDX-License-Identifier: MIT */
/* The parts of fdr info: info.c for people, info_ages.c for detail by age, info_json.c for programs, info_job.c for
 * several files. */
#ifndef FDRI_TOOLS_INFO_H
#define FDRI_TOOLS_INFO_H

#include "tools/common/job_files.h"
#include "tools/common/verbs.h"

json_t *info_json(struct fdr_file *file);
void print_losses(const struct fdr_file_info *info);
void print_ledger(struct fdr_file *file, bool full, bool depths);
/* info_job.c: the ranks of a job; each as JSON. */
int print_info_ranks(const struct job_files *job, bool full);
int print_info_array(const struct job_files *job);
/* info_ages.c: prints detail by age; prints nothing without epochs. */
void print_ages(struct fdr_file *file);
json_t *epochs_json(struct fdr_file *file);
/* "SIGSEGV" or "signal 70", into text[HUMAN_BYTES]. */
const char *signal_name(int number, char *text);
/* Name of the thread with that tid, or "". */
const char *thread_of(const struct fdr_file *file, uint32_t tid);

/* The governor's account (FDR_OVERHEAD), in text: its cost; its changes. Nothing, if it was off. */
void print_overhead(const struct fdr_file *file);
void print_mutes(const struct fdr_file *file, bool full);
json_t *overhead_json(const struct fdr_file *file); /* null: it was off */

/* info_reductions.c: one line that there were some; all: each of them. */
void print_reductions(struct fdr_file *file, bool all);

/* info_tallies.c: counters of the process; sections that a newer fdr wrote. */
void print_tallies(const struct fdr_file *file, bool full);
json_t *tallies_json(const struct fdr_file *file);
json_t *process_json(const struct fdr_file *file);
void print_unknown_sections(const struct fdr_file *file);
void each_unknown_section(const struct fdr_file *file, void (*found)(const char *text, void *argument), void *argument);
json_t *sections_json(const struct fdr_file *file);

#endif
