/* SPDX-License-Identifier: MIT */
/* Finds the cut of a moving location, one that recorded during the snapshot. The cut is the location's newest event
 * at the copy of its open calls.
 *
 * The bins were copied later. So a call that was open at the cut may have a record by now. Others are missing: the
 * stack changed during the copy, and their records came too late for it. */
#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "reader/account/account.h"
#include "reader/events/cursor.h"
#include "reader/events/events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Finds the newest kept record that began at the cut or earlier. */
static bool newest_before_cut(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                              struct fdri_events_cursor *c, struct fdri_codec_record *r)
{
    bool any = false;
    for (uint32_t i = p->bin_count; i-- > 0 && !any;) {
        if (p->bin[i].base_tick > l->cut) continue;
        fdri_events_cursor_init(c, f, l, p, p->min_leave, p->class_ == FDRI_ARENA_CLASS_REGION ? FDRI_EVENTS_CHUNK : 1);
        c->next_bin = i;
        while (fdri_events_cursor_fill(c)) {
            *r = c->end[-1];
            c->at = c->end;
            any = true;
        }
        fdri_events_cursor_done(c);
    }
    return any;
}

/* If a frame's record is stored, the record counts, not the frame. The frames inside of it were open at the cut all
 * the same. */
static void believe_frame(struct fdri_file_location *l, const struct fdri_file_part *p,
                          const struct fdri_codec_record *r)
{
    if (p->class_ != FDRI_ARENA_CLASS_REGION || p->depth > l->frame_count) return;
    struct fdri_file_frame *frame = &l->frame[p->depth - 1];
    if (frame->flags & FDRI_ARENA_LEVEL_UNTIMED) return;
    if (p->floor > frame->enter) l->frame_count = p->depth - 1u; /* it may have been given back since */
    else if (r && r->leave > frame->enter) frame->flags |= FDRI_ARENA_LEVEL_SETTLED;
}

/* Did other calls of the frame's depth end when it began, or may it have been given back? Then times do not tell
 * whether it was. *its: its own record, of a zero-length call, is kept or came before the newest one; the ordinals
 * show that. */
static bool is_unclear(struct fdr_file *f, struct fdri_file_location *l, struct fdri_events_cursor *c, uint32_t depth,
                       const struct fdri_file_frame *frame, bool *its)
{
    struct fdri_codec_record r;
    bool unclear = *its = false;
    for (size_t i = 0; i < l->part_count; i++) {
        struct fdri_file_part *p = &l->part[i];
        if (p->class_ != FDRI_ARENA_CLASS_REGION || p->depth != depth) continue;
        unclear |= p->floor >= frame->enter || p->min_leave > frame->enter;
        if (!p->any || !newest_before_cut(f, l, p, c, &r) || r.leave != frame->enter) continue;
        unclear = true;
        *its |= r.enter == r.leave && r.ordinal >= frame->ordinal;
    }
    return unclear;
}

/* If times do not tell whether a frame's call was given back, the accounts of its level do. They were copied with
 * the frame, and it is the newest call that they count as presented. */
static void believe_accounts(struct fdr_file *f, struct fdri_file_location *l, struct fdri_events_cursor *c)
{
    bool its;
    for (uint32_t d = 1; d <= l->frame_count; d++) {
        struct fdri_file_frame *frame = &l->frame[d - 1];
        if (!fdri_events_frame_kept(frame) || !is_unclear(f, l, c, d, frame, &its)) continue;
        uint64_t accounted = its ? UINT64_MAX : fdri_account_stored_ever(f, l, d);
        if (its) frame->flags |= FDRI_ARENA_LEVEL_SETTLED;
        else if (accounted != UINT64_MAX && accounted >= fdri_file_level(f, l, d)->presented) l->frame_count = d - 1;
    }
}

static void note(struct fdri_file_location *l, uint32_t depth, uint64_t tick)
{
    if (tick > l->lost_open_until[depth]) l->lost_open_until[depth] = tick;
}

/* A stored call shows that other calls of its depth were over when it began, and deeper ones when it ended. */
static void note_record(struct fdri_file_location *l, const struct fdri_file_part *p, const struct fdri_codec_record *r)
{
    if (p->class_ == FDRI_ARENA_CLASS_REGION) note(l, p->depth, r->leave <= l->cut ? r->leave : r->enter);
    else if (p->class_ != FDRI_ARENA_CLASS_SAMPLE) note(l, p->depth + 1u, r->enter);
}

void fdri_events_snapshot_cut(struct fdr_file *f, struct fdri_file_location *l)
{
    struct fdri_events_cursor *c = fdri_file_malloc(sizeof *c);
    struct fdri_codec_record r;
    l->lost_open_until = fdri_file_calloc(FDRI_FILE_DEPTH_MAX + 2, sizeof *l->lost_open_until);
    for (size_t i = 0; c && l->lost_open_until && i < l->part_count; i++) {
        struct fdri_file_part *p = &l->part[i];
        bool any = p->any && newest_before_cut(f, l, p, c, &r);
        believe_frame(l, p, any ? &r : NULL);
        if (any) note_record(l, p, &r);
    }
    if (c && l->lost_open_until) believe_accounts(f, l, c);
    free(c);
    for (uint32_t d = 1; l->lost_open_until && d <= l->frame_count; d++)
        if (fdri_events_frame_kept(&l->frame[d - 1])) note(l, d, fdri_bits_min(l->frame[d - 1].enter, l->cut));
    for (uint32_t d = 1; l->lost_open_until && d <= FDRI_FILE_DEPTH_MAX + 1; d++) note(l, d, l->lost_open_until[d - 1]);
}

/* Are all calls of this depth, of band `band` and longer, stored? */
static bool gates_open(const struct fdri_file_location *l, uint32_t depth, uint32_t band)
{
    for (uint32_t b = band; b < FDRI_ARENA_BANDS; b++)
        if (l->raw.gate_depth[b] && depth >= l->raw.gate_depth[b]) return false;
    return !(l->raw.class_closed & 1u << FDRI_ARENA_CLASS_REGION);
}

/* Looks for gaps as a cursor would, to the end. It decodes every bin anew, so that earlier reads make no difference. */
static bool gap_between(const struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_file_part *p)
{
    uint64_t gone, read, newest = 0;
    for (uint32_t b = 0; b < p->bin_count; b++) {
        if (p->bin[b].gap || p->bin[b].base_tick < newest) return true;
        if (!fdri_file_bin_read(f, l, &p->bin[b], 0, &gone, &read)) return true;
        newest = fdri_bits_max(newest, read);
    }
    return false;
}

bool fdri_events_gaps(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth)
{
    if (fdri_file_zeros_from(l, depth) == UINT64_MAX) return true;
    for (uint32_t i = 0; i < FDRI_ARENA_BANDS * 2; i++) {
        const struct fdri_file_part *p = fdri_file_part(l, FDRI_ARENA_CLASS_REGION, depth, i / 2, i & 1);
        if (p && (p->tail_gap || p->unaccounted || gap_between(f, l, p))) return true;
    }
    return false;
}

bool fdri_events_not_over(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth,
                          const struct fdri_file_part *p, const struct fdri_codec_record *r)
{
    if (!l->moving || !l->lost_open_until || l->stopped || l->block_damaged || l->levels_lost || l->parts_missing)
        return false;
    if (l->lost_open_until[depth] > r->enter || (l->lost_open_until[depth] == r->enter && r->leave == r->enter))
        return false;
    if (p && p->pinned) return false; /* the calls around it may have been given back */
    const struct fdri_arena_level *v = fdri_file_level(f, l, depth);
    if (!v || v->filtered || v->lost) return false;
    /* an open call may end in any band; the calls around it are longer */
    return gates_open(l, depth, p ? p->band : FDRI_ARENA_BANDS - 1);
}
