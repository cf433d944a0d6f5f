/* SPDX-License-Identifier: MIT */
/* Notes in a snapshot: each value whole, as it was at one moment. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "export/snapshot/snapshot.h"
#include "format/arena/arena.h"

enum { NOTE_TRIES = 64 };

static const void *at(uint32_t off) { return fdri_snapshot_view.base + off; }

/* Reads a note into an empty entry. False: it was set twice meanwhile, so the half being copied may have been
 * overwritten. */
FDRI_RACY static bool read_note(const struct fdri_arena_note_entry *from, struct fdri_arena_note_entry *to)
{
    uint64_t state = fdri_atomic_load_acquire(&from->state); /* A:value - pairs with R:value */
    uint32_t which = FDRI_ARENA_NOTE_WHICH(state);
    if (which < 1 || which > 2) return true;
    fdri_racy_copy(to->value[which - 1], from->value[which - 1], sizeof to->value[0]);
    fdri_atomic_fence_acquire(); /* A:value - the copy was read before this */
    to->state = state;
    return fdri_atomic_load_relaxed(&from->state) == state;
}

FDRI_RACY static void read_block(const struct fdri_arena_notes_block *from, struct fdri_arena_notes_block *to)
{
    memset(to, 0, sizeof *to);
    to->head = from->head;
    to->next = from->next;
    /* A:notes - pairs with R:notes */
    to->used = (uint32_t)fdri_bits_min(fdri_atomic_load_acquire(&from->used), FDRI_ARENA_NOTES_PER_BLOCK);
    for (uint32_t i = 0; i < to->used; i++) {
        bool whole = false;
        fdri_racy_copy(to->note[i].key, from->note[i].key, sizeof to->note[i].key);
        for (int n = 0; n < NOTE_TRIES && !whole; n++) whole = read_note(&from->note[i], &to->note[i]);
        if (!whole) fdri_arena_note_give_up(&to->note[i]);
    }
}

int fdri_snapshot_notes_put(int fd, uint32_t off)
{
    static struct fdri_arena_notes_block block; /* one snapshot at a time */
    int e = 0;
    for (; off && !e; off = block.next) {
        read_block(at(off), &block);
        e = fdri_snapshot_put(fd, &block, sizeof block, off);
    }
    return e;
}
