/* SPDX-License-Identifier: MIT */
/* Finds the arena of a recording process from outside and reads pieces of it. The process, its memory and its file are
 * never written to. */
#ifndef FDRI_READER_LIVE_FIND_PROCESS_H
#define FDRI_READER_LIVE_FIND_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_live_process {
    uint32_t pid;
    uint32_t task;                      /* a living thread of it: the first one may have ended before the others */
    int fd;                             /* of the live file, read-only; -1: anonymous memory */
    uint64_t address;                   /* of the arena in the process */
    struct fdri_arena_superblock super; /* as read when the arena was found */
};

/* True: *p is ready; release it with fdri_live_process_close. Else `message` has one line. */
bool fdri_live_process_find(uint32_t pid, struct fdri_live_process *p, char *message, size_t message_bytes);
void fdri_live_process_close(struct fdri_live_process *p);
/* Reads all of [off, off + count) of the arena; calls read in the order in which they are made. 0 or -errno. */
int fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count);

/* ---- external_copy.c ---- */
enum fdri_live_external_mode {
    FDRI_LIVE_EXTERNAL_FILE,   /* a file to keep, with checks */
    FDRI_LIVE_EXTERNAL_LOOK,   /* the same without checks */
    FDRI_LIVE_EXTERNAL_HEADERS /* only the headers of bins */
};
/* Copies the process's arena into the open, empty file fd, as a snapshot that the process would take itself:
 * docs/FORMAT.md, section 14. 0 or -errno. */
int fdri_live_external_copy(const struct fdri_live_process *p, int fd, const char *reason,
                            enum fdri_live_external_mode mode);

#endif
