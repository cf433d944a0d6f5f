/* SPDX-License-Identifier: MIT */
/* Recordings that lie about: found in directories, told apart, copied. */
#ifndef FDR_TOOLS_LEFT_H
#define FDR_TOOLS_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct left {
    char path[4096];
    struct stat stat;
    bool readable, live; /* live: some process maps it */
    bool bare;           /* no snapshot: what a process left, or is writing */
    uint32_t pid;
};
struct left_list {
    struct left **entry;
    size_t count;
};

/* The recordings of a directory, and of its folders "run-*", which `fdr run` makes. DONE or COULD_NOT with a message;
 * one that is not there holds none. Oldest first. */
int left_find(const char *directory, struct left_list *list);
void left_free(struct left_list *list);
const char *left_name(const struct left *l);
/* Copies to DIRECTORY/NAME, or the next free of NAME.2, NAME.3 ...: complete and synced before it has its name; empty
 * pages stay holes; owner and mode as they were. 0 or -errno; `to` gets the path. */
int left_copy(const struct left *l, const char *directory, char *to, size_t to_bytes);

#endif
