/* SPDX-License-Identifier: MIT */
#ifndef FDRI_TOOLS_INFO_H
#define FDRI_TOOLS_INFO_H

#include "tools/common/verbs.h"

int print_info_json(struct fdr_file *file);
/* info_ages.c: detail by age; nothing where there are no epochs. */
void print_ages(struct fdr_file *file);
json_t *epochs_json(struct fdr_file *file);
/* "SIGSEGV" or "signal 70", into text[HUMAN_BYTES]. */
const char *signal_name(int number, char *text);
/* Name of the thread with that tid, or "". */
const char *thread_of(const struct fdr_file *file, uint32_t tid);

#endif
