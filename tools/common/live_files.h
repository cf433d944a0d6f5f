/* SPDX-License-Identifier: MIT */
/* Finds live recordings and the processes that write them. */
#ifndef FDRI_TOOLS_COMMON_LIVE_FILES_H
#define FDRI_TOOLS_COMMON_LIVE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <fdr/reader.h>

/* The directory of live recordings: FDR_LIVE_DIR, else /dev/shm/fdr-<uid>. Static storage. */
const char *live_directory(void);
/* The process other than this one that maps the file, 0: none. Checks `pid` first; it nearly always is the one. */
uint32_t mapped_by(const struct stat *file, uint32_t pid);
/* The process that has the file open; 0: none among those that this user may inspect. */
uint32_t opened_by(const struct stat *file);
/* True if it is no snapshot and has not ended. */
bool may_be_live(const struct fdr_file_info *info);
/* The process that wrote it and still runs, but may not be inspected: it is not dumpable, or /proc hides it
 * (hidepid=2). Else 0. */
uint32_t hidden_writer(const struct fdr_file_info *info);
/* The process that maps an opened recording; 0 if it is a snapshot or has ended. */
uint32_t written_by(const char *path, const struct fdr_file_info *info);

/* True if nobody has read the file: its mode is 0600, as written. Reading verbs set 0400; `fdr gc` spares unread files.
 * Only files named *.fdr, and only if permitted. */
bool is_unread(const struct stat *file);
void mark_read(const char *path);
bool ends_in(const char *name, const char *end);

#endif
