/* SPDX-License-Identifier: MIT */
/* Budget and identity of file descriptors: fdr keeps at most a quarter of RLIMIT_NOFILE open. Code that needs a
 * descriptor for each thread takes it from the budget first, and does without it if the budget is used up.
 *
 * The descriptor table belongs to the program. Many programs close all descriptors from 3 up at their start, fdr's
 * among them, and their next files get these numbers. So code that keeps a descriptor stores its identity when it opens
 * it. A descriptor with another identity is the program's: fdr neither reads nor closes it. */
#ifndef FDRI_BASE_FD_DESCRIPTOR_H
#define FDRI_BASE_FD_DESCRIPTOR_H
#include <stdbool.h>
#include <stdint.h>
/* Any thread, also in signal handlers. False: the budget is used up, and nothing was taken. */
bool fdri_fd_budget_take(uint32_t count);
void fdri_fd_budget_give(uint32_t count);
/* The identity of an open file. Device and inode tell files apart; perf events share one inode, so they have
 * numbers. */
struct fdri_fd_identity {
    uint64_t device, file, event; /* event: 0 for files that are no perf events */
};
/* All zero if the descriptor is closed. Async-signal-safe, like the next two. */
struct fdri_fd_identity fdri_fd_identify(int fd);
bool fdri_fd_is(int fd, const struct fdri_fd_identity *mark);
/* The number of a perf event, unique on the machine until it reboots; 0: fd is no perf event. */
uint64_t fdri_fd_perf_id(int fd);
/* The number of descriptors taken from the budget. */
uint32_t fdri_fd_budget_used(void);
#endif
