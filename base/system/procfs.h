/* SPDX-License-Identifier: MIT */
/* Reading small texts of the kernel from /proc and /sys. Not for signal handlers: open and read are the C library's. */
#ifndef FDRI_BASE_SYSTEM_PROCFS_H
#define FDRI_BASE_SYSTEM_PROCFS_H
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* Reads a file as text, at most bytes - 1 of it. Returns the length; 0 and "" if the file is empty or cannot be read
 * (errno). */
size_t fdri_system_read_text(const char *path, char *text, size_t bytes);
/* The same for /proc/self/task/TID/FILE. */
size_t fdri_system_read_task(uint32_t tid, const char *file, char *text, size_t bytes);
/* Reads memory of process `pid` (0: this one), all of these bytes, without stopping it. False also for bytes that are
 * not mapped. */
bool fdri_system_read_memory(uint32_t pid, uint64_t address, void *to, size_t bytes);
/* As opendir: NULL and errno on failure. */
DIR *fdri_system_open_folder(const char *path);
/* The start of a process or thread in ticks since boot, from the text of its `stat`; 0: the text is no such file. */
uint64_t fdri_system_stat_start_time(const char *stat);
#endif
