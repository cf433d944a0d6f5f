/* SPDX-License-Identifier: MIT */
/* Notes: the application's facts about itself, as keys and values. The newest value of a key counts. */
#ifndef FDRI_FORMAT_ARENA_NOTE_BLOCK_H
#define FDRI_FORMAT_ARENA_NOTE_BLOCK_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/meta_block.h"

/* A note. The writer fills the value that does not count, then changes `state`. So a kill leaves the old or the new
 * value. A copier compares `state` before and after its copy, and repeats if it differs. */
#define FDRI_ARENA_NOTE_KEY_BYTES   40
#define FDRI_ARENA_NOTE_VALUE_BYTES 104
#define FDRI_ARENA_NOTES_PER_BLOCK  15
struct fdri_arena_note_entry {
    uint64_t state; /* FDRI_ARENA_NOTE_STATE */
    char key[FDRI_ARENA_NOTE_KEY_BYTES];
    char value[2][FDRI_ARENA_NOTE_VALUE_BYTES];
};
static_assert(sizeof(struct fdri_arena_note_entry) == 256, "note");
/* which: 0 no note, else value[which - 1] counts. times: how often a value was set. */
#define FDRI_ARENA_NOTE_STATE(which, times) ((uint64_t)(times) << 32 | (uint32_t)(which))
#define FDRI_ARENA_NOTE_WHICH(state)        ((uint32_t)(state))
#define FDRI_ARENA_NOTE_TIMES(state)        ((uint32_t)((state) >> 32))
#define FDRI_ARENA_NOTE_CHANGING            "[changing]" /* the value in a copy that found no consistent one */
static inline void fdri_arena_note_give_up(struct fdri_arena_note_entry *n)
{
    n->state = FDRI_ARENA_NOTE_STATE(1, 0);
    memset(n->value, 0, sizeof n->value);
    memcpy(n->value[0], FDRI_ARENA_NOTE_CHANGING, sizeof FDRI_ARENA_NOTE_CHANGING);
}
struct fdri_arena_notes_block {
    struct fdri_arena_meta_head head;
    uint32_t next; /* off of the block made before this one */
    uint32_t used; /* number of notes in it */
    uint8_t pad[40];
    struct fdri_arena_note_entry note[FDRI_ARENA_NOTES_PER_BLOCK];
};
static_assert(sizeof(struct fdri_arena_notes_block) == 64 + 256 * FDRI_ARENA_NOTES_PER_BLOCK, "notes");

#endif
