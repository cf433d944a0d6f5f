/* SPDX-License-Identifier: MIT */
/* How much memory the control groups of this process let it have. */
#ifndef FDRI_BASE_SYSTEM_CGROUP_H
#define FDRI_BASE_SYSTEM_CGROUP_H
#include <stdint.h>

/* The least limit in bytes among the groups it is in and all around them, as far as they can be seen; UINT64_MAX: there
 * is none. Versions 2 and 1. A batch system's groups are below the one at the mount point where it makes no namespace
 * for them. `root`: what stands before /proc and /sys; "" but in tests. */
uint64_t fdri_system_cgroup_memory_limit(const char *root);
#endif
