/* SPDX-License-Identifier: MIT */
/* What the files of export/ share: snapshot.c copies, files.c names and counts, trigger.c decides when. */
#ifndef FDR_EXPORT_EXPORT_H
#define FDR_EXPORT_EXPORT_H

#include <stddef.h>

#include "export/view.h"

extern struct fdri_export_view fdri_view;

enum { FDRI_PATH_MAX = 1024 };

/* ---- snapshot.c ---- */
/* Copies the arena into the open, empty file fd. 0 or -errno. `number` goes into the superblock. */
int fdri_copy_arena(int fd, const char *reason, uint64_t number);

/* ---- files.c ---- */
struct fdri_new_file { int fd; char temporary[FDRI_PATH_MAX], path[FDRI_PATH_MAX]; };
/* A temporary file in the snapshot directory. 0 or -errno, with one line said about it. */
int fdri_file_begin(struct fdri_new_file *f);
/* Gives it its final name, never an existing one, and remembers it. 0 or -errno. */
int fdri_file_commit(struct fdri_new_file *f);
void fdri_file_abandon(struct fdri_new_file *f);
/* May another one be written (FDR_KEEP, FDR_DISK)? Removes older ones where the newest are kept. */
int fdri_files_admit(void);
void fdri_files_reset(void);
const char *fdri_files_last(void);
#endif
