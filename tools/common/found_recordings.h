/* SPDX-License-Identifier: MIT */
/* Finds recordings in directories, separates live ones from left ones, copies and removes them. */
#ifndef FDRI_TOOLS_COMMON_FOUND_RECORDINGS_H
#define FDRI_TOOLS_COMMON_FOUND_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct found_recording {
    char path[4096]; /* for messages; the file is opened by its name below `dir` */
    int dir;
    struct stat stat;
    bool readable, live;  /* live: a process maps it */
    bool unneeded;        /* its process should have removed it and could not: it contains nothing worth keeping */
    bool temporary;       /* the temporary name of a file that was never completed; live: a process has it open */
    uint32_t pid, writer; /* pid: from the file; writer: the process that maps it, 0: none */
};
struct found_list {
    struct found_recording **entry;
    size_t count;
    int *dir; /* descriptors that entries refer to */
    size_t dirs;
    bool named;       /* input: the user named the directory, so it is an error if it does not exist */
    bool temporaries; /* input: include unfinished files */
};

enum { RECORDINGS_ANY_OWNER = -1 };
/* Finds the recordings of a directory and of its folders "run-*", which `fdr run` makes; the oldest first. With an
 * `owner`: only his files in his folders, and no symbolic link is followed, since another user may have put it there.
 * Returns DONE, or COULD_NOT after a message. A directory that does not exist is empty unless `named`. */
int recordings_find(const char *directory, long owner, struct found_list *list);
/* Removes the empty "run-*" folders whose `fdr run` has ended. Call before recordings_free. */
void recordings_remove_empty_folders(const struct found_list *list);
void recordings_free(struct found_list *list);
const char *recording_name(const struct found_recording *l);
/* True if the file was removed since it was found, or another one took its name. */
bool recording_vanished(const struct found_recording *l);
/* Removes the file that was found, never another one with its name. 0 or -errno. */
int recording_remove(const struct found_recording *l);
/* Copies to DIRECTORY/NAME, or the first free of NAME.2, NAME.3 ... The copy is complete and synced before it gets its
 * name. Empty pages stay holes; owner and mode are kept. Returns 0 or -errno; `to` gets the path. */
int recording_copy(const struct found_recording *l, const char *directory, char *to, size_t to_bytes);

#endif
