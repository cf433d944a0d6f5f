/* SPDX-License-Identifier: MIT */
/* File descriptors that fdr keeps open in somebody else's process: all of them together at most a quarter of
 * RLIMIT_NOFILE. Whoever holds descriptors per thread asks here first and does without where the answer is no. */
#ifndef FDR_BASE_DESCRIPTORS_H
#define FDR_BASE_DESCRIPTORS_H
#include <stdbool.h>
#include <stdint.h>
/* Any thread, also signal handlers. False: the quarter is used up; nothing was taken. */
bool fdri_descriptors_take(uint32_t count);
void fdri_descriptors_give(uint32_t count);
/* How many are held now. */
uint32_t fdri_descriptors_held(void);
#endif
