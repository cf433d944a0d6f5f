/* SPDX-License-Identifier: MIT */
/* A change under way in the accounts of threads that ended: a reader undoes it after a kill. */
#ifndef FDRI_FORMAT_ARENA_FOLD_BLOCK_H
#define FDRI_FORMAT_ARENA_FOLD_BLOCK_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* ---- location: one thread's stream ---- */
/* Folding moves numbers from one location's accounts to another's, some words at a time. The words that are about to
 * change are here with what they were before; count is set before the first and cleared after the last of them changes.
 * While it is not 0 a reader takes the words to be what they were. */
#define FDRI_ARENA_FOLD_WORDS 120
struct fdri_arena_fold {
    struct fdri_arena_meta_head head;
    uint32_t count; /* atomic */
    uint32_t reserved[11];
    struct {
        uint64_t off, was;
    } word[FDRI_ARENA_FOLD_WORDS]; /* aligned words of 8 bytes */
};
static_assert(sizeof(struct fdri_arena_fold) == 64 + 16 * FDRI_ARENA_FOLD_WORDS, "fold");

#endif
