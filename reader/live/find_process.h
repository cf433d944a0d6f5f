/* SPDX-License-Identifier: MIT */
/* A process that records, seen from outside: where its arena is, and reading pieces of it. Nothing is ever written to
 * the process, its memory or its file. */
#ifndef FDRI_READER_LIVE_FIND_PROCESS_H
#define FDRI_READER_LIVE_FIND_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct fdri_live_process {
    uint32_t pid;
    uint32_t task;    /* a thread of it that has memory: the first one may have ended before the others */
    int fd;           /* of the live file, read-only; -1: anonymous memory */
    uint64_t address; /* of the arena in the process */
    struct fdri_arena_superblock super; /* as it stood when the arena was found */
};

/* true: *p is ready, end with fdri_live_process_close. Else one clear line in `message`. */
bool fdri_live_process_find(uint32_t pid, struct fdri_live_process *p, char *message, size_t message_bytes);
void fdri_live_process_close(struct fdri_live_process *p);
/* All of [off, off + count) of the arena, in the order in which the calls are made. 0 or -errno. */
int fdri_live_process_read(const struct fdri_live_process *p, uint64_t off, void *to, size_t count);

/* ---- external_copy.c ---- */
enum fdri_live_external_mode {
    FDRI_LIVE_EXTERNAL_FILE,   /* a file to be kept, with checks */
    FDRI_LIVE_EXTERNAL_LOOK,   /* the same without */
    FDRI_LIVE_EXTERNAL_HEADERS /* of bins only their headers */
};
/* A snapshot of the process's arena into the open, empty file fd, as the process would take one itself: docs/FORMAT.md,
 * section 14. 0 or -errno. */
int fdri_live_external_copy(const struct fdri_live_process *p, int fd, const char *reason,
                            enum fdri_live_external_mode mode);

#endif
