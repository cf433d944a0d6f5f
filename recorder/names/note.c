/* SPDX-License-Identifier: MIT */
/* Notes: texts that the application gives about itself, by key. They lie in the arena, so they are in every file,
 * however the process dies. */
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "bins/slabs.h"
#include "format/arena/arena.h"
#include "recorder/names/names.h"
#include "recorder/recording.h"
#include "recorder/thread/thread.h"

static uint32_t held; /* the lock; a plain word, so that a forked child can reset it */

void fdri_names_note_reset(void) { fdri_atomic_store_relaxed(&held, 0u); }

/* Signals must be blocked: a handler would wait for the thread that it interrupted. */
static void enter_lock(void)
{
    uint32_t none = 0;
    for (int i = 0; !fdri_atomic_cas_acq_rel_u32(&held, &none, 1u); i++, none = 0) /* L:note - pairs with R:note */
        fdri_system_wait(i);
}

static void leave_lock(void) { fdri_atomic_store_release(&held, 0u); /* R:note */ }

static struct fdri_arena_notes_block *block_at(uint32_t off)
{
    return off ? fdri_bins_at(&fdri_life_recording.arena, off) : NULL;
}

static struct fdri_arena_note_entry *find(const char *key)
{
    for (struct fdri_arena_notes_block *b = block_at(fdri_life_recording.arena.super->notes_off); b;
         b = block_at(b->next))
        for (uint32_t i = 0; i < b->used; i++)
            if (!strcmp(b->note[i].key, key)) return &b->note[i];
    return NULL;
}

/* A new entry with this key and no value; NULL: no room. Under the lock. */
static struct fdri_arena_note_entry *make(const char *key)
{
    struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    struct fdri_arena_notes_block *b = block_at(s->notes_off);
    if (!b || b->used == FDRI_ARENA_NOTES_PER_BLOCK) {
        bool room = !b || fdri_bins_meta_spares(&fdri_life_recording.arena, &fdri_life_recording.slabs,
                                                FDRI_BINS_SPARE_NOTES, sizeof *b); /* the rest is for future threads */
        uint32_t off = room ? fdri_bins_meta_take(&fdri_life_recording.arena, FDRI_ARENA_META_NOTES, sizeof *b,
                                                  UINT32_MAX)
                            : 0;
        if (!off) return NULL;
        b = block_at(off);
        b->next = s->notes_off;
        /* R:notes - pairs with A:notes: the block is complete before it is on the chain */
        fdri_atomic_store_release(&s->notes_off, off);
    }
    struct fdri_arena_note_entry *n = &b->note[b->used];
    memcpy(n->key, key, strlen(key) + 1);
    fdri_atomic_store_release(&b->used, b->used + 1); /* R:notes - the key is complete before the entry counts */
    return n;
}

/* Writes the value into the half that is not valid, then makes that half the valid one. A kill leaves the old or the
 * new value. */
static void set_value(struct fdri_arena_note_entry *n, const char *value)
{
    uint64_t state = n->state;
    uint32_t half = FDRI_ARENA_NOTE_WHICH(state) == 1;
    size_t bytes = strnlen(value, FDRI_ARENA_NOTE_VALUE_BYTES - 1);
    /* R:value - a copier that sees a byte written below also sees the state stored by the previous set_value() */
    fdri_atomic_fence_release();
    memset(n->value[half], 0, FDRI_ARENA_NOTE_VALUE_BYTES);
    memcpy(n->value[half], value, bytes);
    /* R:value - pairs with A:value: the value is complete before it is valid */
    fdri_atomic_store_release(&n->state, FDRI_ARENA_NOTE_STATE(half + 1, FDRI_ARENA_NOTE_TIMES(state) + 1));
}

/* Sets or replaces a note. False: no room. */
static bool put_note(const char *key, const char *value)
{
    enter_lock();
    struct fdri_arena_note_entry *n = find(key);
    if (!n) n = make(key);
    if (n) set_value(n, value);
    leave_lock();
    return n;
}

/* Length of text cut to at most `most` bytes, without splitting a UTF-8 character. */
static size_t cut_length(const char *text, size_t most)
{
    size_t n = strnlen(text, most);
    if (n < most) return n;
    while (n && (text[n] & 0xC0) == 0x80) n--;
    return n;
}

void fdr_note(const char *key, const char *value)
{
    /* copied first: if key or value is a bad pointer, no lock is held yet */
    char name[FDRI_ARENA_NOTE_KEY_BYTES] = "", text[FDRI_ARENA_NOTE_VALUE_BYTES] = "";
    sigset_t old;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    bool here = false, noted = false;
    if (!key || !*key || !on) return;
    memcpy(name, key, cut_length(key, sizeof name - 1));
    if (value) memcpy(text, value, cut_length(value, sizeof text - 1));
    fdri_system_signals_block(&old);
    if ((here = fdri_thread_hold_recording(on))) {
        noted = put_note(name, text);
        fdri_thread_release_recording();
    }
    fdri_system_signals_restore(&old);
    static unsigned said;
    if (here && !noted && fdri_text_once(&said))
        fdri_text_message("no room for the note '%s'; it is not recorded (a larger FDR_BUFFER has room)", name);
}
