/* SPDX-License-Identifier: MIT */
/* Taking the arena out while the program runs: one snapshot at a time, without stopping a thread.
 *
 *   take_snapshot.c       one at a time, quotas, reasons     arena_copy.c          the order in which it is copied
 *   snapshot_locations.c  accounts and open calls            snapshot_notes.c      notes, each whole
 *   snapshot_files.c      names, FDR_KEEP, FDR_DISK          snapshot_checks.c     checks of the finished file
 *
 * Neighbours: trigger/ decides when; crash/ copies the arena of a process that dies; recorder/ is seen through
 * export/view.h alone. The reader of what lands here is reader/. */
#ifndef FDRI_EXPORT_SNAPSHOT_SNAPSHOT_H
#define FDRI_EXPORT_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "export/view.h"
#include "format/arena/arena.h"

extern struct fdri_export_view fdri_snapshot_view;
/* What a reading of the clock means in the recording, whose clock may have stepped back. Async-signal-safe. */
static inline uint64_t fdri_snapshot_tick_of(uint64_t reading)
{
    return reading +
           fdri_atomic_load_relaxed(&((struct fdri_arena_superblock *)(void *)fdri_snapshot_view.base)->clock_offset);
}
enum { FDRI_SNAPSHOT_PATH_MAX = 1024 };

/* Why a snapshot is taken; goes into its superblock. */
struct fdri_snapshot_why {
    char reason[256];
    enum fdri_arena_reason_kind kind;
    uint64_t tick, value; /* triggers: what was seen; tick 0: none */
    uint32_t value_type, location;
    char name[64]; /* of the trigger */
    /* what else goes into the file: a section as a bundle's, 0 bytes none. At most fdri_snapshot_section_room() */
    const uint8_t *section;
    uint32_t section_bytes;
};
/* Bytes that a snapshot may have for it: beside its tail and checks. */
uint32_t fdri_snapshot_section_room(void);
/* Copies the arena into the open, empty file fd. 0 or -errno. `number` goes into the superblock. */
int fdri_snapshot_copy_arena(int fd, const struct fdri_snapshot_why *why, uint64_t number);
void fdri_snapshot_copy_abandon(void); /* nobody goes on with the copy under way, of this thread */

/* How many events a location was given by now. */
uint64_t fdri_snapshot_presented_of(const struct fdri_arena_location *l);

/* Those of the block at `off` and of older ones once more into the file, each whole. 0 or -errno. */
int fdri_snapshot_notes_put(int fd, uint32_t off);

/* How many may stay: of the whole process (owner 0), or of one trigger beside that. Modulo FDRI_EXPORT_TRIGGERS + 1 an
 * owner is the trigger's place, from 1; no other trigger of the process has the same. */
struct fdri_snapshot_quota {
    uint64_t owner;
    uint32_t keep;
    bool keep_newest;
    const char *name; /* the owner's */
};
/* Takes one; `quota` NULL: without limits. join: the result of one under way will do. 0 or -errno. */
int fdri_snapshot_take(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota, bool join);
struct fdri_snapshot_why fdri_snapshot_because(enum fdri_arena_reason_kind kind, const char *reason);
struct fdri_snapshot_quota fdri_snapshot_whole_quota(void);
void fdri_snapshot_take_begin(const struct fdri_export_view *view);
void fdri_snapshot_take_end(void); /* waits for a snapshot under way */
void fdri_snapshot_take_fork(int phase);

struct fdri_arena_spare;
/* Works out the checks of a file that is complete but for its superblock: of its tail, and of every chunk that holds
 * meta blocks, which go behind the tail. `virgin` as the superblock will have it. 0 or -errno. */
int fdri_snapshot_put_checks(int fd, uint64_t virgin, uint32_t tail_bytes, struct fdri_arena_spare *spare);
int fdri_snapshot_put(int fd, const void *bytes, uint64_t count, uint64_t off);
/* Bytes of the piece of a bin that begins here with a meta block; 0: there is none in these `room` bytes. */
uint32_t fdri_snapshot_meta_piece(const uint8_t *from, uint32_t room);
/* Of the pieces of bins in [off, end) the first that is a meta block, and its bytes; end: there is none. */
uint64_t fdri_snapshot_next_meta_piece(uint64_t off, uint64_t end, uint32_t *bytes);

struct fdri_snapshot_new_file {
    int fd, pid; /* of the process that writes it */
    char temporary[FDRI_SNAPSHOT_PATH_MAX], path[FDRI_SNAPSHOT_PATH_MAX];
};
/* The one that is being written now, for a process that dies meanwhile, or forks: `there` (atomic) says that `path` is.
 * fd: -1 none yet. */
struct fdri_snapshot_unfinished {
    uint32_t there;
    int fd;
    char path[FDRI_SNAPSHOT_PATH_MAX];
};
extern struct fdri_snapshot_unfinished fdri_snapshot_unfinished;
/* A temporary file in the snapshot directory. 0 or -errno, with one line said about the first of each. */
int fdri_snapshot_file_begin(struct fdri_snapshot_new_file *f);
/* Gives it its final name, never an existing one, and remembers it as `owner`'s. 0 or -errno. */
int fdri_snapshot_file_commit(struct fdri_snapshot_new_file *f, uint64_t owner);
void fdri_snapshot_file_abandon(struct fdri_snapshot_new_file *f);
/* of this process: a child must leave it alone */
bool fdri_snapshot_file_is_ours(const struct fdri_snapshot_new_file *f);
void fdri_snapshot_files_drop(void); /* the one under way, which nobody goes on with */
/* May another one be written (the quota, FDR_KEEP, FDR_DISK)? Removes older ones where the newest are kept and the
 * bytes do not suffice. */
int fdri_snapshot_files_admit(const struct fdri_snapshot_quota *quota);
/* It could not be written (e, -errno). Is it worth another try? Then for want of room, and the oldest, which was to go
 * when the new one is there, is gone. */
bool fdri_snapshot_files_make_room(const struct fdri_snapshot_quota *quota, int e);
/* It was: older ones beyond the number to be kept go. */
void fdri_snapshot_files_trim(const struct fdri_snapshot_quota *quota);
/* None was written. True: for the first time for this reason (-errno), so it is to be said. */
bool fdri_snapshot_files_failed(int e);
uint64_t fdri_snapshot_files_unsaid(void); /* how many others there were; they count once */
void fdri_snapshot_files_reset(void);
void fdri_snapshot_files_fork(bool goes_back); /* in a child; goes_back: into the writing of a snapshot */
const char *fdri_snapshot_files_last(void);

#endif
