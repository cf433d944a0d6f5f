/* SPDX-License-Identifier: MIT */
/* Rewind: forget what this thread stored since its mark. Partitions are cut back to where they stood; the bins behind
 * that go back. What is forgotten counts as filtered; totals stay.
 *
 * Calls that were open at the mark are no part of what came after it, and stay also where they end before the rewind:
 * what was stored inside of them may name them. As long as one is open nothing else is stored at its depth, so when it
 * ends the mark of its partition moves to behind its record, and nothing stays with it. */

#include <assert.h>
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "recorder/life/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/strategy/strategy.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

struct place {
    uint32_t part, bin, seq, zero_count;
    uint64_t commit, zero_tick; /* zero_*: of its depth */
};
/* Places lie in blocks that find room in the smallest bin, as where the buffer is full nothing larger is to be had. Two
 * tables lead to each: the place of an open call is looked for by depth. What a mark has it keeps for the next ones. */
enum { BLOCK_BYTES = 512 - sizeof(struct fdri_arena_slab), HEAD = sizeof(struct fdri_arena_meta_head) };
enum { EACH = (BLOCK_BYTES - HEAD) / sizeof(struct place), BLOCKS = (BLOCK_BYTES - HEAD) / 4, TABLES = 24 };
struct fdri_record_mark {
    uint32_t count, room, point_count;
    bool set;
    uint64_t point_tick;
    uint32_t open; /* calls that were: their places stand first, outermost first, then those of `count` partitions */
    uint32_t table[TABLES]; /* offs of tables of BLOCKS offs of EACH places */
};
static_assert(HEAD + sizeof(struct fdri_record_mark) <= BLOCK_BYTES, "the mark itself fits, too");
/* Two partitions of each kind: one may be set aside (aside.c). */
static_assert(TABLES * BLOCKS * EACH >
                  FDRI_ARENA_LEVELS_MAX + 2 * (FDRI_ARENA_LEVELS_MAX + 1) * (FDRI_ARENA_BANDS + FDRI_ARENA_CLASS_COUNT),
              "room for all there can be");

/* Of a call: part 0: it is still open; FDRI_THREAD_GATE_CLOSED: it is not stored. */
static struct place *place_at(const struct fdri_thread *t, const struct fdri_record_mark *m, uint32_t i)
{
    const uint32_t *table = fdri_thread_at(t, m->table[i / EACH / BLOCKS]);
    struct place *block = fdri_thread_at(t, table[i / EACH % BLOCKS]);
    return &block[i % EACH];
}

static uint32_t count_parts(const struct fdri_thread *t)
{
    uint32_t n = 0;
    for (uint32_t off = t->loc->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next) n++;
    return n;
}

static uint32_t block(struct fdri_thread *t, uint32_t bytes)
{
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_FREE, HEAD + bytes);
    return off ? off + HEAD : 0;
}

/* EACH places more. */
static bool grow(struct fdri_thread *t, struct fdri_record_mark *m)
{
    uint32_t n = m->room / EACH, *table = n / BLOCKS < TABLES ? &m->table[n / BLOCKS] : NULL;
    if (table && !*table) *table = block(t, BLOCKS * sizeof *table);
    uint32_t off = table && *table ? block(t, EACH * sizeof(struct place)) : 0;
    if (!off) return false;
    ((uint32_t *)fdri_thread_at(t, *table))[n % BLOCKS] = off;
    fdri_atomic_signal_fence(); /* left here by longjmp the block is lost, and no place is in none */
    m->room += EACH;
    return true;
}

/* Not set, with room for all there is now; NULL: there is none. What is given back for it may change what there is. */
static struct fdri_record_mark *with_room(struct fdri_thread *t)
{
    uint32_t off = t->mark ? 0 : block(t, sizeof *t->mark);
    if (off) t->mark = fdri_thread_at(t, off);
    struct fdri_record_mark *m = t->mark;
    if (!m) return NULL;
    m->set = false;
    fdri_atomic_signal_fence();
    for (uint32_t n; m->room < (n = count_parts(t) + t->loc->depth);)
        while (m->room < n)
            if (!grow(t, m)) return NULL;
    return m;
}

static void say_no_room(const struct fdri_thread *t)
{
    static unsigned said;
    if (!fdri_text_once(&said)) return;
    fdri_text_message(
        "thread '%s' (%u): no room for a rewind mark of %u partitions and %u open calls; until there is, its "
        "rewinds do nothing (FDR_BUFFER makes it)",
        t->loc->name, t->loc->tid, count_parts(t), t->loc->depth);
}

static struct place place_of(const struct fdri_thread *t, const struct fdri_arena_part *p)
{
    const struct fdri_arena_level *v = fdri_thread_level(t, p->depth);
    return (struct place){.part = fdri_thread_offset_of(t, p),
                          .bin = p->open_off,
                          .seq = p->open_seq,
                          .commit = p->open_off ? fdri_bins_bin(&fdri_life_recording.arena, p->open_off)->commit : 0,
                          .zero_tick = v->zero_tick,
                          .zero_count = v->zero_count};
}

void fdr_rewind_mark(void)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    if (!t) return;
    struct fdri_record_mark *m = with_room(t);
    if (!m) {
        say_no_room(t);
        fdri_thread_end(t);
        return;
    }
    uint32_t open = t->loc->depth;
    fdri_atomic_store_relaxed(&t->loc->flags, t->loc->flags | FDRI_ARENA_LOCATION_REWINDS);
    m->count = 0;
    m->open = open;
    m->point_tick = t->loc->point_tick;
    m->point_count = t->loc->point_count;
    for (uint32_t d = 1; d <= open; d++) {
        struct fdri_arena_level *v = fdri_thread_level(t, d);
        place_at(t, m, d - 1)->part = 0;
        if (!(v->flags & FDRI_ARENA_LEVEL_MARKED)) v->flags |= FDRI_ARENA_LEVEL_MARKED;
    }
    for (uint32_t off = t->loc->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next)
        *place_at(t, m, open + m->count++) = place_of(t, fdri_thread_at(t, off));
    fdri_atomic_signal_fence();
    m->set = true;
    fdri_thread_end(t);
}

void fdri_record_rewind_ended(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth, uint64_t tick)
{
    struct fdri_record_mark *m = t->mark;
    if (!m || !m->set || depth > m->open) return;
    uint64_t duration = (fdri_bits_max(tick, v->enter_tick) >> t->shift) - (v->enter_tick >> t->shift);
    uint32_t band = (duration >= t->edge[0]) + (duration >= t->edge[1]) + (duration >= t->edge[2]), off = v->part[band];
    struct place *at = place_at(t, m, depth - 1), now = {.zero_tick = v->zero_tick, .zero_count = v->zero_count};
    if (off > FDRI_THREAD_GATE_CLOSED) now = place_of(t, fdri_thread_at(t, off));
    now.part = 0; /* last: left here by longjmp nobody knows where it ended */
    *at = now;
    fdri_atomic_signal_fence();
    at->part = off > FDRI_THREAD_GATE_CLOSED ? off : FDRI_THREAD_GATE_CLOSED;
}

/* A call that ended without a word of where stands as an open one: its record would go. Then nothing does. */
void fdri_record_rewind_left(struct fdri_thread *t)
{
    struct fdri_record_mark *m = t->mark;
    for (uint32_t d = t->loc->depth + 1; m && m->set && d <= m->open; d++)
        if (!place_at(t, m, d - 1)->part) m->set = false;
}

/* Gives back the bins from `off` on. */
static void give_from(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t off)
{
    while (off) {
        struct fdri_arena_bin *b = fdri_bins_bin(&fdri_life_recording.arena, off);
        uint32_t next = b->next;
        fdri_atomic_sub_relaxed(&p->bins, 1u);
        fdri_atomic_sub_relaxed(&p->bytes, 1u << (b->size_log2 - 9));
        fdri_atomic_store_release(&b->generation, (b->generation | 1u) + 1); /* G:give */
        fdri_bins_piece_give(&fdri_life_recording.arena, t->loc, off, b->size_log2);
        off = next;
    }
}

/* How many records the partition has stored, also in its open bin. */
static uint64_t stored(const struct fdri_arena_part *p)
{
    const struct fdri_arena_bin *b = p->open_off ? fdri_bins_bin(&fdri_life_recording.arena, p->open_off) : NULL;
    return b ? b->first_index + FDRI_ARENA_COMMIT_RECORDS(b->commit) : p->total;
}

/* Records are about to go that no account has yet. Killed before they are counted, a reader counts what is missing. */
static void forget(struct fdri_arena_part *p, uint64_t most)
{
    fdri_atomic_store_release(&p->forgets, most); /* R:forget */
    fdri_atomic_signal_fence();
}

/* Is the bin that had this number in the list that begins like this? Numbers may have turned over. */
static bool is_listed(uint64_t head, uint32_t seq)
{
    return (uint32_t)head && (int32_t)(seq - (uint32_t)(head >> 32)) >= 0;
}

/* Back to nothing: the partition was made, or all its marked bins were given back, since the mark. */
static uint64_t cut_all(struct fdri_thread *t, struct fdri_arena_part *p)
{
    uint32_t head = (uint32_t)p->list_head, seq = (uint32_t)(p->list_head >> 32);
    if (!head) return 0;
    const struct fdri_arena_bin *oldest = fdri_bins_bin(&fdri_life_recording.arena, head);
    uint64_t first = oldest->first_index, forgotten = stored(p) - first;
    forget(p, forgotten);
    fdri_strategy_telescope_uncount(t, p, head);
    if (first) p->floor_tick = oldest->base_tick; /* the list said so while it had a bin */
    p->open_off = 0;
    p->open_seq = seq - 1; /* before the list ends: else a bin that ought to follow would be looked for */
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&p->list_head, (uint64_t)seq << 32); /* R:link */
    p->total = first;
    fdri_codec_encode_close(p);
    give_from(t, p, head);
    return forgotten;
}

static uint64_t cut_to(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t bin, uint64_t commit)
{
    struct fdri_arena_bin *b = fdri_bins_bin(&fdri_life_recording.arena, bin);
    uint32_t behind = b->next;
    uint64_t forgotten = stored(p) - b->first_index - FDRI_ARENA_COMMIT_RECORDS(commit);
    forget(p, forgotten);
    fdri_strategy_telescope_uncount(t, p, bin);
    p->open_off = bin;
    p->open_seq = b->seq; /* before the list ends: else a bin that ought to follow would be looked for */
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&b->next, 0);        /* R:link */
    fdri_atomic_store_release(&b->commit, commit); /* R:commit */
    p->flags |= FDRI_ARENA_PART_REWOUND;
    /* the encoder's tables have moved on: the next record needs a new bin */
    fdri_bins_part_seal(&fdri_life_recording.arena, p);
    give_from(t, p, behind);
    return forgotten;
}

/* A claimer is inside and does not leave: it may have read any link of the list. So all of the list goes at once, in a
 * way that makes its swap fail: the seqs go on, none comes back. What was stored before the mark counts as reduced. The
 * marked bin is still ours if the list that was taken begins no later: till then its header may be another's. */
static uint64_t cut_beside_claimer(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t bin, uint32_t seq,
                                   uint64_t commit)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    uint64_t end = stored(p);
    fdri_bins_part_seal(&fdri_life_recording.arena, p); /* killed below: all of it is in `total` */
    forget(p, end);
    /* L:claim - fails once for each claimer that is inside */
    while (!fdri_atomic_cas_acq_rel_u64(&p->list_head, &head, (uint64_t)(p->open_seq + 1) << 32)) continue;
    uint64_t first = (uint32_t)head ? fdri_bins_bin(&fdri_life_recording.arena, (uint32_t)head)->first_index : p->total,
             mark = first;
    if (bin && is_listed(head, seq))
        mark = fdri_bins_bin(&fdri_life_recording.arena, bin)->first_index + FDRI_ARENA_COMMIT_RECORDS(commit);
    fdri_strategy_telescope_uncount(t, p, (uint32_t)head);
    p->floor_tick = p->last_tick;
    p->open_off = 0;
    p->total = mark;
    fdri_codec_encode_close(p);
    give_from(t, p, (uint32_t)head);
    return end - mark;
}

void fdri_record_rewind_account(struct fdri_thread *t, const struct fdri_arena_part *p, uint64_t forgotten)
{
    struct fdri_arena_level *v = fdri_thread_level(t, p->depth);
    if (p->class_ == FDRI_ARENA_CLASS_REGION) {
        fdri_atomic_bump_relaxed(&v->filtered, forgotten);
    } else {
        struct fdri_arena_level_points *points = fdri_thread_at(t, v->points_off);
        fdri_atomic_bump_relaxed(&points->by_class[p->class_].filtered, forgotten);
    }
}

/* Partition p back to where the mark saw it; `seq` 0: it was not there or held nothing. */
static void rewind_part(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t bin, uint32_t seq, uint64_t commit,
                        bool alone)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    bool held = bin && is_listed(head, seq);
    /* untouched */
    if (held && p->open_off == bin && fdri_bins_bin(&fdri_life_recording.arena, bin)->commit == commit) return;
    if (alone) fdri_record_rewind_account(t, p, held ? cut_to(t, p, bin, commit) : cut_all(t, p));
    else fdri_record_rewind_account(t, p, cut_beside_claimer(t, p, held ? bin : 0, seq, commit));
    fdri_atomic_signal_fence();
    forget(p, 0);
}

/* Who comes next in this tick is numbered after those that stay. Calls of length 0 are all in the shortest band, or
 * where that was joined to. */
static void renumber(struct fdri_thread *t, const struct fdri_arena_part *p, const struct place *at)
{
    bool all = t->loc->flags & FDRI_ARENA_LOCATION_JOINED_ALL;
    if (p->class_ != FDRI_ARENA_CLASS_REGION || (p->band && !(all && p->band == FDRI_ARENA_BANDS - 1))) return;
    struct fdri_arena_level *v = fdri_thread_level(t, p->depth);
    v->zero_tick = at->zero_tick;
    v->zero_count = at->zero_count;
    v->zero_gap = 1; /* one left out before the mark may have been the newest */
}

/* Where the call of p's depth that was open at the mark ended; NULL: there was none, or it is still open. */
static const struct place *ended_at(const struct fdri_thread *t, const struct fdri_record_mark *m,
                                    const struct fdri_arena_part *p)
{
    if (p->class_ != FDRI_ARENA_CLASS_REGION || !p->depth || p->depth > m->open) return NULL;
    const struct place *at = place_at(t, m, p->depth - 1);
    return at->part ? at : NULL;
}

/* Who takes bins of this location is done in some tens of us, and nobody else begins: but for one that waits for a
 * processor meanwhile all lists can be cut where the mark was. Else their whole history goes. */
static bool pin(struct fdri_thread *t)
{
    enum { ROUNDS = 128 };
    for (int i = 0; i < ROUNDS; i++)
        if (fdri_bins_claim_pin(&fdri_life_recording.arena, t->loc)) return true;
    return false;
}

static void rewind_to(struct fdri_thread *t, const struct fdri_record_mark *m)
{
    static const struct place nothing;
    uint32_t next = m->open, end = next + m->count;
    uint32_t fresh = m->count ? place_at(t, m, next)->part : 0; /* newer partitions stand in front of this one */
    bool after = !fresh, alone = pin(t);
    for (uint32_t off = t->loc->parts_first; off; off = ((struct fdri_arena_part *)fdri_thread_at(t, off))->next) {
        struct fdri_arena_part *p = fdri_thread_at(t, off);
        if (off == fresh) after = true;
        const struct place *at = after && next < end ? place_at(t, m, next) : &nothing;
        if (at->part == off) next++;
        else at = &nothing;
        const struct place *ended = ended_at(t, m, p);
        renumber(t, p, ended ? ended : at);
        if (ended && ended->part == off) at = ended;
        if (at->part && p->open_seq == at->seq && p->open_off == at->bin && !at->bin) continue; /* untouched, empty */
        rewind_part(t, p, at->bin, at->seq, at->commit, alone);
    }
    fdri_bins_claim_unpin(t->loc);
}

void fdri_record_number_open(struct fdri_thread *t)
{
    uint64_t tick = t->loc->last_tick >> t->shift;
    for (uint32_t d = t->loc->depth; d; d--) {
        struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (v->enter_tick >> t->shift != tick) return;
        if (v->zero_tick == tick && !(v->flags & FDRI_ARENA_LEVEL_UNTIMED)) v->flags |= FDRI_ARENA_LEVEL_ORDINAL;
    }
}

void fdr_rewind(void)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    if (!t) return;
    struct fdri_record_mark *m = t->mark && t->mark->set ? t->mark : NULL;
    if (!m) {
        fdri_thread_end(t);
        return;
    }
    t->loc->point_tick = m->point_tick;
    t->loc->point_count = m->point_count;
    m->set = false;
    fdri_atomic_signal_fence(); /* what it says is gone from now on */
    fdri_ready_forget(t);
    rewind_to(t, m);
    fdri_record_number_open(t);
    t->tied_to = (t->loc->last_tick >> t->shift) + 1; /* who comes in this tick looks for gaps among the ordinals */
    t->soft = 0;
    fdri_strategy_telescope_cut(t);
    fdri_thread_end(t);
}

/* The mark's memory belongs to the location and goes with it. */
void fdri_record_rewind_release(struct fdri_thread *t) { t->mark = NULL; }
