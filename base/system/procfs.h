/* SPDX-License-Identifier: MIT */
/* Small texts of the kernel's, as /proc has them. Not for signal handlers: open and read are the C library's. */
#ifndef FDRI_BASE_SYSTEM_PROCFS_H
#define FDRI_BASE_SYSTEM_PROCFS_H
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
/* What a file holds, cut at bytes - 1, as text. Its length; 0 and "": it holds nothing or cannot be read (errno). */
size_t fdri_system_read_text(const char *path, char *text, size_t bytes);
/* The same of /proc/self/task/TID/FILE. */
size_t fdri_system_read_task(uint32_t tid, const char *file, char *text, size_t bytes);
/* NULL and errno. */
DIR *fdri_system_open_folder(const char *path);
/* When a process or thread began, in ticks since boot, of its `stat`; 0: that is none. */
uint64_t fdri_system_stat_start_time(const char *stat);
#endif
