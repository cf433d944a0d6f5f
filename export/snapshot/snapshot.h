/* SPDX-License-Identifier: MIT */
/* Taking the arena out while the program runs: one snapshot at a time, without stopping a thread.
 *
 *   take_snapshot.c       one at a time, limits, reasons    arena_copy.c          the order of copying
 *   snapshot_locations.c  accounts and open calls           snapshot_notes.c      notes, each whole
 *   snapshot_files.c      names, FDR_KEEP, FDR_DISK         snapshot_checks.c     checks of the finished file
 *
 * Neighbours: trigger/ decides when; crash/ copies the arena of a process that dies. export/view.h is the only way to
 * recorder/. reader/ reads the files. */
#ifndef FDRI_EXPORT_SNAPSHOT_SNAPSHOT_H
#define FDRI_EXPORT_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "export/view.h"
#include "format/arena/arena.h"

extern struct fdri_export_view fdri_snapshot_view;
/* Converts a reading of the clock into the recording's ticks; the recording adds an offset if its clock stepped back.
 * Async-signal-safe. */
static inline uint64_t fdri_snapshot_tick_of(uint64_t reading)
{
    return reading +
           fdri_atomic_load_relaxed(&((struct fdri_arena_superblock *)(void *)fdri_snapshot_view.base)->clock_offset);
}
enum { FDRI_SNAPSHOT_PATH_MAX = 1024 };

/* The reason of a snapshot, stored in its superblock. */
struct fdri_snapshot_why {
    char reason[256];
    enum fdri_arena_reason_kind kind;
    uint64_t tick, value; /* of a trigger's match; tick 0: none */
    uint32_t value_type, location;
    char name[64]; /* of the trigger */
    /* An extra section for the file, laid out as a bundle's; 0 bytes: none. At most fdri_snapshot_section_room()
     * bytes. */
    const uint8_t *section;
    uint32_t section_bytes;
};
/* Bytes that a snapshot has for that section beside its tail and its checks. */
uint32_t fdri_snapshot_section_room(void);
/* Copies the arena into the open, empty file fd. `number` goes into the superblock. Returns 0 or -errno. */
int fdri_snapshot_copy_arena(int fd, const struct fdri_snapshot_why *why, uint64_t number);
/* Releases the held accounts of a copy that this thread began and will not finish. */
void fdri_snapshot_copy_abandon(void);

/* The number of events presented to a location so far. */
uint64_t fdri_snapshot_presented_of(const struct fdri_arena_location *l);

/* Copies the notes of the block at `off` and of older blocks into the file again, each note whole. 0 or -errno. */
int fdri_snapshot_notes_put(int fd, uint32_t off);

/* The number of snapshots that may stay: of the whole process (owner 0), or of one trigger in addition. owner %
 * (FDRI_EXPORT_TRIGGERS + 1) is the trigger's slot plus 1. No two triggers of a process share an owner. */
struct fdri_snapshot_quota {
    uint64_t owner;
    uint32_t keep;
    bool keep_newest;
    const char *name; /* the trigger's */
};
/* Takes a snapshot. quota NULL: without limits. join: if one is under way, waits for it and returns its result. Returns
 * 0 or -errno. */
int fdri_snapshot_take(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota, bool join);
struct fdri_snapshot_why fdri_snapshot_because(enum fdri_arena_reason_kind kind, const char *reason);
struct fdri_snapshot_quota fdri_snapshot_whole_quota(void);
void fdri_snapshot_take_begin(const struct fdri_export_view *view);
void fdri_snapshot_take_end(void); /* waits for a snapshot under way */
void fdri_snapshot_take_fork(int phase);

struct fdri_arena_spare;
/* Computes the checks of a file that is complete except for its superblock. It covers the tail and every chunk with
 * meta blocks, and writes the checks behind the tail. `virgin`: as the superblock will have it. 0 or -errno. */
int fdri_snapshot_put_checks(int fd, uint64_t virgin, uint32_t tail_bytes, struct fdri_arena_spare *spare);
int fdri_snapshot_put(int fd, const void *bytes, uint64_t count, uint64_t off);
/* Bytes of the piece of a bin that begins here with a meta block; 0: these `room` bytes begin with none. */
uint32_t fdri_snapshot_meta_piece(const uint8_t *from, uint32_t room);
/* Offset of the first piece of a bin in [off, end) that is a meta block, with its size in *bytes; end: there is
 * none. */
uint64_t fdri_snapshot_next_meta_piece(uint64_t off, uint64_t end, uint32_t *bytes);

struct fdri_snapshot_new_file {
    int fd, pid; /* pid: of the process that writes it */
    char temporary[FDRI_SNAPSHOT_PATH_MAX], path[FDRI_SNAPSHOT_PATH_MAX];
};
/* The file that is being written now. A crash handler or a forked child uses it. there (atomic): `path` is set. fd: -1
 * until the file is open. */
struct fdri_snapshot_unfinished {
    uint32_t path_set;
    int fd;
    char path[FDRI_SNAPSHOT_PATH_MAX];
};
extern struct fdri_snapshot_unfinished fdri_snapshot_unfinished;
/* Creates a temporary file in the snapshot directory. Returns 0 or -errno; each errno is reported once. */
int fdri_snapshot_file_begin(struct fdri_snapshot_new_file *f);
/* Gives the file its final name, never an existing one, and remembers it as `owner`'s. 0 or -errno. */
int fdri_snapshot_file_commit(struct fdri_snapshot_new_file *f, uint64_t owner);
void fdri_snapshot_file_abandon(struct fdri_snapshot_new_file *f);
/* False in a child, which must leave its parent's file alone. */
bool fdri_snapshot_file_is_ours(const struct fdri_snapshot_new_file *f);
/* Removes an unfinished file that no thread will finish. */
void fdri_snapshot_files_drop(void);
/* Checks the quota, FDR_KEEP and FDR_DISK before a new snapshot. Where the newest are kept, removes older ones if
 * FDR_DISK requires it. 0, or -EDQUOT. */
int fdri_snapshot_files_admit(const struct fdri_snapshot_quota *quota);
/* After a write failed with `e` (-errno). True: the disk was full, the oldest snapshot that was due to go is removed,
 * and a second try is worthwhile. */
bool fdri_snapshot_files_make_room(const struct fdri_snapshot_quota *quota, int e);
/* After a write succeeded: removes the oldest snapshots beyond the number to keep. */
void fdri_snapshot_files_trim(const struct fdri_snapshot_quota *quota);
/* Notes that a snapshot failed with `e` (-errno). True: the first failure with this errno, so the caller reports it. */
bool fdri_snapshot_files_failed(int e);
uint64_t fdri_snapshot_files_unsaid(void); /* number of failures not reported; resets the count */
void fdri_snapshot_files_reset(void);
/* For a child after fork. goes_back: the child returns into the writing of a snapshot. */
void fdri_snapshot_files_fork(bool goes_back);
const char *fdri_snapshot_files_last(void);

#endif
