/* SPDX-License-Identifier: MIT */
#ifndef FDRI_TOOLS_COMMON_LIVE_FILES_H
#define FDRI_TOOLS_COMMON_LIVE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <fdr/reader.h>

/* Where live recordings are: FDR_LIVE_DIR, else /dev/shm/fdr-<uid>. Static storage. */
const char *live_directory(void);
/* The process other than this one that maps the file, 0: none. `pid` is asked first, it nearly always is the one. */
uint32_t mapped_by(const struct stat *file, uint32_t pid);
/* The process that has it open, of those we may look into; 0: none. */
uint32_t opened_by(const struct stat *file);
/* It is no snapshot, and has not ended. */
bool may_be_live(const struct fdr_file_info *info);
/* The process that wrote it and is still there, where we may not look into it, as it is not dumpable, or /proc does not
 * show it (hidepid=2); else 0. */
uint32_t hidden_writer(const struct fdr_file_info *info);
/* The process that maps a recording that was opened: only one that is no snapshot and has not ended may be live. */
uint32_t written_by(const char *path, const struct fdr_file_info *info);

/* Nobody has looked at what is in it: the mode is 0600, as it was written. Reading verbs make it 0400 (`fdr gc` spares
 * unread files). Only files named *.fdr, and only where we may. */
bool is_unread(const struct stat *file);
void mark_read(const char *path);
bool ends_in(const char *name, const char *end);

#endif
