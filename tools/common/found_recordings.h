/* SPDX-License-Identifier: MIT */
/* Recordings that lie about: found in directories, told apart, copied. */
#ifndef FDRI_TOOLS_COMMON_FOUND_RECORDINGS_H
#define FDRI_TOOLS_COMMON_FOUND_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct left {
    char path[4096]; /* as it is told; the file is reached by its name below `dir` */
    int dir;
    struct stat stat;
    bool readable, live;  /* live: some process maps it */
    bool over;            /* its process was to remove it and could not: nothing in it is to be kept */
    bool part;            /* the temporary name of a file that was never complete; live: some process has it open */
    uint32_t pid, writer; /* as the file says; the process that maps it, 0: none does */
};
struct left_list {
    struct left **entry;
    size_t count;
    int *dir; /* descriptors that entries refer to */
    size_t dirs;
    bool named; /* set before: somebody named the directory: it is an error where it is not there */
    bool parts; /* set before: what died in the middle of being written is wanted, too */
};

enum { LEFT_ANY_OWNER = -1 };
/* The recordings of a directory, and of its folders "run-*", which `fdr run` makes. With an `owner` only what is his,
 * in folders that are his, and no symbolic link is followed: what another user put there. DONE or COULD_NOT with a
 * message; one that is not there, and not `named`, holds none. Oldest first. */
int left_find(const char *directory, long owner, struct left_list *list);
/* Removes the empty folders of those "run-*" whose `fdr run` is gone. Before left_free. */
void left_tidy(const struct left_list *list);
void left_free(struct left_list *list);
const char *left_name(const struct left *l);
/* Somebody else has removed it, or made another one of that name, since it was found. */
bool left_gone(const struct left *l);
/* Removes what was found, and nothing that has taken its name since. 0 or -errno. */
int left_remove(const struct left *l);
/* Copies to DIRECTORY/NAME, or the next free of NAME.2, NAME.3 ...: complete and synced before it has its name; empty
 * pages stay holes; owner and mode as they were. 0 or -errno; `to` gets the path. */
int left_copy(const struct left *l, const char *directory, char *to, size_t to_bytes);

#endif
