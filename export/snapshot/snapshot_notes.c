/* SPDX-License-Identifier: MIT */
/* Notes in a snapshot: each value as it stood once, whole. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "export/snapshot/snapshot.h"
#include "format/arena/arena.h"

enum { NOTE_TRIES = 64 };

static const void *at(uint32_t off) { return fdri_view.base + off; }

/* Into an entry that is empty; false: it was set twice meanwhile, so the half that counted may have been written to. */
FDR_RACY static bool read_note(const struct fdr_note_entry *from, struct fdr_note_entry *to)
{
    uint64_t state = fdr_load_acquire(&from->state); /* A:value - pairs with R:value */
    uint32_t which = FDR_NOTE_WHICH(state);
    if (which < 1 || which > 2) return true;
    fdr_copy_racy(to->value[which - 1], from->value[which - 1], sizeof to->value[0]);
    fdr_fence_acquire(); /* A:value - the copy was read before this */
    to->state = state;
    return fdr_load_relaxed(&from->state) == state;
}

FDR_RACY static void read_block(const struct fdr_notes_block *from, struct fdr_notes_block *to)
{
    memset(to, 0, sizeof *to);
    to->head = from->head;
    to->next = from->next;
    to->used = (uint32_t)fdr_min(fdr_load_acquire(&from->used), FDR_NOTES_PER_BLOCK); /* A:notes - pairs with R:notes */
    for (uint32_t i = 0; i < to->used; i++) {
        bool whole = false;
        fdr_copy_racy(to->note[i].key, from->note[i].key, sizeof to->note[i].key);
        for (int n = 0; n < NOTE_TRIES && !whole; n++) whole = read_note(&from->note[i], &to->note[i]);
        if (!whole) fdr_note_give_up(&to->note[i]);
    }
}

int fdri_notes_put(int fd, uint32_t off)
{
    static struct fdr_notes_block block; /* one snapshot at a time */
    int e = 0;
    for (; off && !e; off = block.next) {
        read_block(at(off), &block);
        e = fdri_put(fd, &block, sizeof block, off);
    }
    return e;
}
