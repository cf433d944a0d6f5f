/* SPDX-License-Identifier: MIT */
/* The memory limit of the control groups that contain this process. */
#ifndef FDRI_BASE_SYSTEM_CGROUP_H
#define FDRI_BASE_SYSTEM_CGROUP_H
#include <stdint.h>

/* The lowest limit in bytes of the process's groups and all groups around them, as far as they are visible; UINT64_MAX:
 * no limit. Reads cgroup versions 2 and 1. Without a cgroup namespace the groups of a batch system lie below the mount
 * point's group. `root` is a prefix of /proc and /sys; "" except in tests. */
uint64_t fdri_system_cgroup_memory_limit(const char *root);
#endif
