/* SPDX-License-Identifier: MIT */
#include "tools/live.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

const char *live_directory(void)
{
    static char path[64];
    const char *given = getenv("FDR_LIVE_DIR");
    if (given && given[0]) return given;
    snprintf(path, sizeof path, "/dev/shm/fdr-%u", (unsigned)getuid());
    return path;
}

/* A line of maps is "start-end perms offset major:minor inode path". */
static bool maps_hold(const char *pid, const struct stat *file)
{
    char path[64], *line = NULL;
    size_t room = 0;
    unsigned device_major, device_minor;
    unsigned long inode;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/maps", pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && getline(&line, &room, maps) > 0)
        found = sscanf(line, "%*s %*s %*s %x:%x %lu", &device_major, &device_minor, &inode) == 3 &&
                inode == file->st_ino && device_major == major(file->st_dev) &&
                device_minor == minor(file->st_dev);
    free(line);
    if (maps) fclose(maps);
    return found;
}

bool mapped_by_someone(const struct stat *file, uint32_t pid)
{
    char name[16];
    struct dirent *entry;
    bool found;
    snprintf(name, sizeof name, "%u", pid);
    if (maps_hold(name, file)) return true;
    /* A pid of another container, or a recording that a forked child still maps. */
    DIR *proc = opendir("/proc");
    for (found = false; proc && !found && (entry = readdir(proc));)
        found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && maps_hold(entry->d_name, file);
    if (proc) closedir(proc);
    return found;
}
