/* SPDX-License-Identifier: MIT */
/* Crash bundles in a directory: found, collapsed by their fingerprint, removed by age and space, and promised room.
 *
 *   found_bundles.c  the bundles of a directory    collapse.c  removes those that policies/ lets go
 *   promised_room.c  bytes that running processes were promised for a bundle
 *
 * Neighbours: policies/bundle_fates.h decides; export/crash/ calls at the start of a process, reader/ for fdr gc. For
 * healthy processes: these functions allocate and wait for a disk. Several processes may run them at once. */
#ifndef FDRI_RETENTION_RETENTION_H
#define FDRI_RETENTION_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "policies/bundle_fates.h"

struct fdri_retention_bundle {
    char name[256];
    uint64_t device, inode;
    uint64_t identity, alike, alike_newest; /* as in the superblock; docs/FORMAT.md */
};
/* Sorted by time of death; fate[i] belongs to bundle[i]. */
struct fdri_retention_list {
    struct fdri_retention_bundle *bundle;
    struct fdri_policies_bundle *fate;
    uint32_t count;
    bool cut; /* the directory has more entries than were looked at */
};

/* ---- found_bundles.c ---- */
uint64_t fdri_retention_identity(const struct fdri_arena_superblock *s);
/* Reads the superblock of a file of this user. NULL descriptor: the file is closed again. False: it is no recording. */
bool fdri_retention_read(int dir, const char *name, struct fdri_arena_superblock *s, struct fdri_retention_bundle *b,
                         int *fd);
/* The bundles of this user that still have the name their process gave them. dir: not opened with O_PATH. Looks at
 * `most` entries. False: out of memory. The caller frees both arrays. */
bool fdri_retention_find(int dir, uint32_t most, struct fdri_retention_list *list);
void fdri_retention_free(struct fdri_retention_list *list);

/* ---- collapse.c ---- */
enum { FDRI_RETENTION_KNOWN = 64 };
struct fdri_retention_order {
    const struct fdri_policies_retention *rule;
    uint64_t now_ns;         /* since 1970 */
    uint32_t looks, removes; /* most entries to look at, and files to remove */
    bool dry_run;
    void (*gone)(void *argument, const char *name, const struct fdri_policies_bundle *b); /* may be NULL */
    void *argument;
};
struct fdri_retention_result {
    uint64_t bytes;                       /* of the bundles that stay */
    uint32_t stay, gone, refused;         /* refused: another process works on it, or it cannot be removed */
    uint64_t known[FDRI_RETENTION_KNOWN]; /* fingerprints of those that stay */
    uint32_t known_count;
    struct fdri_policies_disk disk;
};
/* Removes bundles by the rule; a removed one is counted in its heir first. Whenever the process is killed, the next
 * call goes on, and no death counts twice or never. */
void fdri_retention_tidy(int dir, const struct fdri_retention_order *order, struct fdri_retention_result *r);

/* ---- promised_room.c ---- */
/* The name of an empty file in the live directory: a bundle was written beyond the limits. One process may do that. */
#define FDRI_RETENTION_BEYOND "beyond-limits.crash.0.part"
/* One process at a time; false: another one has it for more than some 40 ms, or the file system has no locks. */
bool fdri_retention_lock(int dir);
void fdri_retention_unlock(int dir);
/* Bytes promised to other running processes on file system `device`, by their live files in this directory. */
uint64_t fdri_retention_promised(int live_dir, uint64_t device);

#endif
