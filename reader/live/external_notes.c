/* SPDX-License-Identifier: MIT */
/* Notes, copied from outside: each value whole, as it was at one moment. Like export/snapshot/snapshot_notes.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/live/external_copy.h"

enum { NOTE_TRIES = 64 };

/* True if two readings agree on the valid half. Comparing the value, too, serves libraries that do not count how often
 * a note was set. */
static bool same(const struct fdri_arena_note_entry *a, const struct fdri_arena_note_entry *b)
{
    uint32_t which = FDRI_ARENA_NOTE_WHICH(a->state);
    if (a->state != b->state) return false;
    return which < 1 || which > 2 || !memcmp(a->value[which - 1], b->value[which - 1], sizeof a->value[0]);
}

static void read_note(struct copy *c, uint64_t off, struct fdri_arena_note_entry *to)
{
    struct fdri_arena_note_entry again;
    bool whole = false;
    for (int n = 0; n < NOTE_TRIES && !whole; n++) {
        if (!fdri_live_external_get(c, off, to, sizeof *to) || !fdri_live_external_get(c, off, &again, sizeof again))
            return;
        whole = same(to, &again);
    }
    if (!whole) fdri_arena_note_give_up(to);
}

void fdri_live_external_copy_notes(struct copy *c)
{
    struct fdri_arena_notes_block b;
    /* more blocks than that: the chain is broken */
    uint64_t off = c->super.notes_off, most = c->super.arena_bytes / sizeof b;
    for (uint64_t n = 0; n < most && off >= FDRI_ARENA_SUPERBLOCK_BYTES; n++, off = b.next) {
        if (!fdri_live_external_get(c, off, &b, sizeof b) || b.head.magic != FDRI_ARENA_META_MAGIC ||
            b.head.kind != FDRI_ARENA_META_NOTES)
            return;
        uint32_t used = (uint32_t)fdri_bits_min(b.used, FDRI_ARENA_NOTES_PER_BLOCK);
        for (uint32_t i = 0; i < used; i++)
            read_note(c, off + offsetof(struct fdri_arena_notes_block, note) + i * sizeof b.note[0], &b.note[i]);
        fdri_live_external_put(c, off, &b, sizeof b);
    }
}
