/* SPDX-License-Identifier: MIT */
/* Which regions wait, by the words of their names. A guess: those who show it say so. */
#ifndef FDRI_TOOLS_COMMON_REGION_WAITS_H
#define FDRI_TOOLS_COMMON_REGION_WAITS_H

#include <stdbool.h>

/* Does a region of this name wait: for a barrier, a lock, a message, a time? */
bool name_waits(const char *name);

#endif
