/* SPDX-License-Identifier: MIT */
/* The limits of a process's control groups, from /proc and /sys/fs/cgroup. */
#define _GNU_SOURCE
#include "base/system/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/system/procfs.h"

static uint64_t read_number(const char *path)
{
    char text[32], *end;
    if (!fdri_system_read_text(path, text, sizeof text)) return UINT64_MAX;
    unsigned long long v = strtoull(text, &end, 10);
    return end != text ? v : UINT64_MAX; /* "max" means no limit */
}

/* The lowest limit in `file` of the group and the groups around it, up to the mount point. Overwrites `group`. */
static uint64_t least_upwards(const char *root, const char *mount, char *group, const char *file)
{
    char path[2 * PATH_MAX];
    uint64_t least = UINT64_MAX;
    for (;;) {
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%s/%s", root, mount, group, file);
        least = fdri_bits_min(least, read_number(path));
        char *last = strrchr(group, '/');
        if (!last) return least;
        *last = 0;
    }
}

/* True if `name` is in a list with commas of `bytes` bytes. */
static bool list_contains(const char *list, size_t bytes, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; p + n <= list + bytes; p += strcspn(p, ",") + 1)
        if (strncmp(p, name, n) == 0 && (p + n == list + bytes || p[n] == ',')) return true;
    return false;
}

uint64_t fdri_system_cgroup_memory_limit(const char *root)
{
    static const char v2[] = "memory.max", v1[] = "memory.limit_in_bytes";
    char path[PATH_MAX], text[PATH_MAX], nothing[1] = "", *rest = text;
    uint64_t least = fdri_bits_min(least_upwards(root, "", nothing, v2), least_upwards(root, "/memory", nothing, v1));
    /* thread-self, because the process's file is empty after its first thread has ended */
    snprintf(path, sizeof path, "%s/proc/thread-self/cgroup", root);
    if (!fdri_system_read_text(path, text, sizeof text)) return least;
    for (char *line; (line = strsep(&rest, "\n"));) { /* a line is number:controllers:group */
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group || strstr(group, "/..")) continue; /* outside of the namespace: no path leads there */
        list++, group++;
        if (strncmp(line, "0::", 3) == 0) least = fdri_bits_min(least, least_upwards(root, "", group, v2));
        else if (list_contains(list, (size_t)(group - 1 - list), "memory"))
            least = fdri_bits_min(least, least_upwards(root, "/memory", group, v1));
    }
    return least;
}
