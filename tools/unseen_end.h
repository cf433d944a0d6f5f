/* SPDX-License-Identifier: MIT */
/* The end of a process of which no handler of fdr saw anything: one line with the known facts. And lines about deaths
 * that verbs share. */
#ifndef FDRI_TOOLS_UNSEEN_END_H
#define FDRI_TOOLS_UNSEEN_END_H

#include <stddef.h>

#include <fdr/reader.h>

/* "SIGSEGV, SIGABRT": signals whose handlers were replaced after fdr's, so a death by them leaves no bundle. "":
 * none. */
const char *replaced_handlers(const struct fdr_file_info *info, char *text, size_t bytes);
/* "no handler ran: ...", or with a wait status the signal: "SIGKILL". */
const char *unseen_end(const struct fdr_file_info *info, char *text, size_t bytes);
/* Prints the line about replaced handlers, if there are any. */
void print_replaced_handlers(const struct fdr_file_info *info);
/* Prints how many further deaths of its fingerprint the bundle counts, if there are any. */
void print_counted_deaths(const struct fdr_file_info *info);

#endif
