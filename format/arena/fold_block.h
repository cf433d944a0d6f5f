/* SPDX-License-Identifier: MIT */
/* The undo list of a change of accounts: a reader uses it after a kill. */
#ifndef FDRI_FORMAT_ARENA_FOLD_BLOCK_H
#define FDRI_FORMAT_ARENA_FOLD_BLOCK_H

#include <assert.h>
#include <stdint.h>

#include "format/arena/meta_block.h"

/* Folding adds the accounts of an ended location to those of [ended], some words at a time. The words that are about to
 * change are listed here with their old values. `count` is set before the first of them changes and cleared after the
 * last. While it is not 0, a reader takes the old values. */
#define FDRI_ARENA_FOLD_WORDS 120
struct fdri_arena_fold {
    struct fdri_arena_meta_head head;
    uint32_t count; /* atomic */
    uint32_t reserved[11];
    struct {
        uint64_t off, old_value;
    } word[FDRI_ARENA_FOLD_WORDS]; /* aligned words of 8 bytes */
};
static_assert(sizeof(struct fdri_arena_fold) == 64 + 16 * FDRI_ARENA_FOLD_WORDS, "fold");

#endif
