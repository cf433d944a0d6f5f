/* SPDX-License-Identifier: MIT */
/* File descriptors that fdr keeps open in somebody else's process: all of them together at most a quarter of
 * RLIMIT_NOFILE. Whoever holds descriptors per thread asks here first and does without where the answer is no.
 *
 * They are numbers in a table that is the program's: one that closes all from 3 up, as many do when they start, closes
 * fdr's, too, and its next file has their numbers. So what is held for long is marked when it is opened. What has not
 * its mark any more is the program's, and is neither read nor closed. */
#ifndef FDRI_BASE_FD_DESCRIPTOR_H
#define FDRI_BASE_FD_DESCRIPTOR_H
#include <stdbool.h>
#include <stdint.h>
/* Any thread, also signal handlers. False: the quarter is used up; nothing was taken. */
bool fdri_fd_budget_take(uint32_t count);
void fdri_fd_budget_give(uint32_t count);
/* What a descriptor is of. Device and file tell files apart; perf events are all the same file, they have numbers. */
struct fdri_fd_identity {
    uint64_t device, file, event; /* event: 0 where it is no perf event */
};
/* All zero: there is no such descriptor. Async-signal-safe, as the next two. */
struct fdri_fd_identity fdri_fd_identify(int fd);
bool fdri_fd_is(int fd, const struct fdri_fd_identity *mark);
/* The number of a perf event, of its own in the machine since it runs; 0: that is none. */
uint64_t fdri_fd_perf_id(int fd);
/* How many are held now. */
uint32_t fdri_fd_budget_used(void);
#endif
