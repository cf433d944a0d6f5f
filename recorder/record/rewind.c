/* SPDX-License-Identifier: MIT */
/* Rewind: removes the events that this thread stored since its mark. Each partition goes back to its state at the mark,
 * and the bins behind that are given back. Removed events count as filtered; totals stay.
 *
 * Calls that were open at the mark are not removed, even if they end before the rewind: events stored inside of them
 * may name them. While such a call is open, nothing else is stored at its depth. So when it ends, the mark of its
 * partition moves to behind its record, and no other record stays with it. */

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
#include "format/codec/encode.h"
#include "recorder/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/record/record.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

struct place {
    uint32_t part, bin, seq, zero_count;
    uint64_t commit, zero_tick; /* zero_*: those of the level */
};
/* Places lie in blocks that fit the smallest bin, because a full buffer has nothing larger. Two steps of tables lead to
 * a block, so that the place of an open call is found by its depth. A mark keeps its blocks for later marks. */
enum { BLOCK_BYTES = 512 - sizeof(struct fdri_arena_slab), HEAD = sizeof(struct fdri_arena_meta_head) };
enum { EACH = (BLOCK_BYTES - HEAD) / sizeof(struct place), BLOCKS = (BLOCK_BYTES - HEAD) / 4, TABLES = 24 };
struct fdri_record_mark {
    uint32_t count, room, point_count;
    bool set;
    uint32_t number; /* of all marks that the thread set: a rewind voids later marks */
    uint64_t point_tick;
    /* Calls open at the mark. Their places stand first, outermost first; the places of `count` partitions follow. */
    uint32_t open;
    uint32_t table[TABLES]; /* offsets of tables; each has BLOCKS offsets of blocks of EACH places */
};
static_assert(HEAD + sizeof(struct fdri_record_mark) <= BLOCK_BYTES, "the mark itself fits, too");
/* Two partitions of each kind, because one may be set aside (aside.c). */
static_assert(TABLES * BLOCKS * EACH >
                  FDRI_ARENA_LEVELS_MAX + 2 * (FDRI_ARENA_LEVELS_MAX + 1) * (FDRI_ARENA_BANDS + FDRI_ARENA_CLASS_COUNT),
              "room for all there can be");

/* The place of a call has part 0 while the call is open, and FDRI_THREAD_GATE_CLOSED if it was not stored. */
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

/* Makes room for EACH more places. */
static bool add_places(struct fdri_thread *t, struct fdri_record_mark *m)
{
    uint32_t n = m->room / EACH, *table = n / BLOCKS < TABLES ? &m->table[n / BLOCKS] : NULL;
    if (table && !*table) *table = block(t, BLOCKS * sizeof *table);
    uint32_t off = table && *table ? block(t, EACH * sizeof(struct place)) : 0;
    if (!off) return false;
    ((uint32_t *)fdri_thread_at(t, *table))[n % BLOCKS] = off;
    fdri_atomic_signal_fence(); /* a longjmp before this loses the block, but no place lacks one */
    m->room += EACH;
    return true;
}

/* Returns the mark, not set, with room for all partitions and `open` calls; NULL: no room. Reductions that make room
 * may change their number, hence the loop. */
static struct fdri_record_mark *with_room(struct fdri_thread *t, struct fdri_record_mark **at, uint32_t open)
{
    uint32_t off = *at ? 0 : block(t, sizeof **at);
    if (off) *at = fdri_thread_at(t, off);
    struct fdri_record_mark *m = *at;
    if (!m) return NULL;
    m->set = false;
    fdri_atomic_signal_fence();
    for (uint32_t n; m->room < (n = count_parts(t) + open);)
        while (m->room < n)
            if (!add_places(t, m)) return NULL;
    return m;
}

static void say_no_room(const struct fdri_thread *t)
{
    static unsigned said;
    if (!fdri_text_once(&said)) return;
    fdri_text_message("thread '%s' (%u): no room for a rewind mark of %u partitions and %u open calls; its rewinds do "
                      "nothing until there is room (a larger FDR_BUFFER has room)",
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

/* open: that many calls are open, and may end before the rewind. */
static bool set_mark(struct fdri_thread *t, struct fdri_record_mark **at, uint32_t open)
{
    struct fdri_record_mark *m = with_room(t, at, open);
    if (!m) return false;
    fdri_atomic_store_relaxed(&t->loc->flags, t->loc->flags | FDRI_ARENA_LOCATION_REWINDS);
    m->number = ++t->marks_set;
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
    return true;
}

void fdr_rewind_mark(void)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    if (!t) return;
    if (!set_mark(t, &t->rewind_mark, t->loc->depth)) say_no_room(t);
    fdri_thread_end(t);
}

bool fdri_record_mark_iteration(struct fdri_thread *t) { return set_mark(t, &t->iteration_mark, 0); }

void fdri_record_rewind_ended(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth, uint64_t tick)
{
    struct fdri_record_mark *m = t->rewind_mark;
    if (!m || !m->set || depth > m->open) return;
    uint64_t duration = (fdri_bits_max(tick, v->enter_tick) >> t->shift) - (v->enter_tick >> t->shift);
    uint32_t band = (duration >= t->edge[0]) + (duration >= t->edge[1]) + (duration >= t->edge[2]), off = v->part[band];
    struct place *at = place_at(t, m, depth - 1), now = {.zero_tick = v->zero_tick, .zero_count = v->zero_count};
    if (off > FDRI_THREAD_GATE_CLOSED) now = place_of(t, fdri_thread_at(t, off));
    now.part = 0; /* last: after a longjmp before this the end counts as unknown */
    *at = now;
    fdri_atomic_signal_fence();
    at->part = off > FDRI_THREAD_GATE_CLOSED ? off : FDRI_THREAD_GATE_CLOSED;
}

/* A marked call that ended without a stored place looks open, and a rewind would remove its record. Then the mark is
 * dropped, and a rewind removes nothing. */
void fdri_record_rewind_left(struct fdri_thread *t)
{
    fdri_record_iteration_left(t);
    struct fdri_record_mark *m = t->rewind_mark;
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

/* Announces that up to `most` records go before an account has them. After a kill a reader counts the missing ones. */
static void forget(struct fdri_arena_part *p, uint64_t most)
{
    fdri_atomic_store_release(&p->rewind_records, most); /* R:forget */
    fdri_atomic_signal_fence();
}

/* Is the bin with this seq in the list with this head? Seqs may have wrapped around. */
static bool is_listed(uint64_t head, uint32_t seq)
{
    return (uint32_t)head && (int32_t)(seq - (uint32_t)(head >> 32)) >= 0;
}

/* Empties p: since the mark the partition was made, or all its marked bins were given back. Returns the number of
 * removed records, as do the next two. */
static uint64_t cut_all(struct fdri_thread *t, struct fdri_arena_part *p)
{
    uint32_t head = (uint32_t)p->list_head, seq = (uint32_t)(p->list_head >> 32);
    if (!head) return 0;
    const struct fdri_arena_bin *oldest = fdri_bins_bin(&fdri_life_recording.arena, head);
    uint64_t first = oldest->first_index, forgotten = stored(p) - first;
    forget(p, forgotten);
    fdri_strategy_rewinds(t, p, head);
    if (first) p->floor_tick = oldest->base_tick; /* the oldest bin implied this floor */
    p->open_off = 0;
    p->open_seq = seq - 1; /* before the list ends: else a reader would look for a following bin */
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
    fdri_strategy_rewinds(t, p, bin);
    p->open_off = bin;
    p->open_seq = b->seq; /* before the list ends: else a reader would look for a following bin */
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&b->next, 0);        /* R:link */
    fdri_atomic_store_release(&b->commit, commit); /* R:commit */
    p->flags |= FDRI_ARENA_PART_REWOUND;
    /* the encoder's tables are of a later state: the next record needs a new bin */
    fdri_bins_part_seal(&fdri_life_recording.arena, p);
    give_from(t, p, behind);
    return forgotten;
}

/* A claimer is inside and does not leave, so it may hold any link of the list. Takes the whole list at once, in a way
 * that makes the claimer's swap fail: seqs increase, and none comes back. Events from before the mark then count as
 * reduced. The marked bin is still this location's if the taken list begins no later; otherwise its header may be
 * another's. */
static uint64_t cut_beside_claimer(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t bin, uint32_t seq,
                                   uint64_t commit)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    uint64_t end = stored(p);
    fdri_bins_part_seal(&fdri_life_recording.arena, p); /* before a kill below: `total` then includes all records */
    forget(p, end);
    /* L:claim - fails once for each claimer that is inside */
    while (!fdri_atomic_cas_acq_rel_u64(&p->list_head, &head, (uint64_t)(p->open_seq + 1) << 32)) continue;
    uint64_t first = (uint32_t)head ? fdri_bins_bin(&fdri_life_recording.arena, (uint32_t)head)->first_index : p->total,
             mark = first;
    if (bin && is_listed(head, seq))
        mark = fdri_bins_bin(&fdri_life_recording.arena, bin)->first_index + FDRI_ARENA_COMMIT_RECORDS(commit);
    fdri_strategy_rewinds(t, p, (uint32_t)head);
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

/* Takes partition p back to its place in the mark. seq 0: then it did not exist or was empty. alone: no claimer is
 * inside. */
static void rewind_part(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t bin, uint32_t seq, uint64_t commit,
                        bool alone)
{
    uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:claim */
    bool held = bin && is_listed(head, seq);
    /* nothing was stored since */
    if (held && p->open_off == bin && fdri_bins_bin(&fdri_life_recording.arena, bin)->commit == commit) return;
    if (alone) fdri_record_rewind_account(t, p, held ? cut_to(t, p, bin, commit) : cut_all(t, p));
    else fdri_record_rewind_account(t, p, cut_beside_claimer(t, p, held ? bin : 0, seq, commit));
    fdri_atomic_signal_fence();
    forget(p, 0);
}

/* The next call in this tick is numbered after those that stay. All calls of length 0 are in the shortest band, or in
 * the band that it was joined to. */
static void renumber(struct fdri_thread *t, const struct fdri_arena_part *p, const struct place *at)
{
    bool all = t->loc->flags & FDRI_ARENA_LOCATION_JOINED_ALL;
    if (p->class_ != FDRI_ARENA_CLASS_REGION || (p->band && !(all && p->band == FDRI_ARENA_BANDS - 1))) return;
    struct fdri_arena_level *v = fdri_thread_level(t, p->depth);
    v->zero_tick = at->zero_tick;
    v->zero_count = at->zero_count;
    v->zero_gap = 1; /* the newest before the mark may have been left out */
}

/* The place where the call of p's depth that was open at the mark ended. NULL: there was none, or it is still open. */
static const struct place *ended_at(const struct fdri_thread *t, const struct fdri_record_mark *m,
                                    const struct fdri_arena_part *p)
{
    if (p->class_ != FDRI_ARENA_CLASS_REGION || !p->depth || p->depth > m->open) return NULL;
    const struct place *at = place_at(t, m, p->depth - 1);
    return at->part ? at : NULL;
}

/* Keeps claimers out; false: one stays inside. A claimer needs some tens of us, and no other one begins. Only one that
 * waits for a processor stays longer; then whole lists must go instead of their newer ends. */
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
    uint32_t fresh = m->count ? place_at(t, m, next)->part : 0; /* newer partitions stand before this one */
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
        /* empty, then and now */
        if (at->part && p->open_seq == at->seq && p->open_off == at->bin && !at->bin) continue;
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

static void drop_later(struct fdri_record_mark *other, uint32_t number)
{
    if (other && (int32_t)(other->number - number) > 0) other->set = false;
}

/* False: the mark is not set. */
static bool go_back(struct fdri_thread *t, struct fdri_record_mark *m)
{
    if (!m || !m->set) return false;
    t->loc->point_tick = m->point_tick;
    t->loc->point_count = m->point_count;
    m->set = false;
    drop_later(t->rewind_mark, m->number);
    drop_later(t->iteration_mark, m->number);
    fdri_atomic_signal_fence(); /* before the first cut: the marks' places become invalid */
    fdri_ready_forget(t);
    rewind_to(t, m);
    fdri_record_number_open(t);
    /* the next call of this tick looks for gaps among ordinals */
    t->tie_tick_end = (t->loc->last_tick >> t->shift) + 1;
    t->slow_depth = 0;
    fdri_strategy_rewound(t);
    return true;
}

void fdr_rewind(void)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    if (!t) return;
    go_back(t, t->rewind_mark);
    fdri_thread_end(t);
}

bool fdri_record_rewind_iteration(struct fdri_thread *t) { return go_back(t, t->iteration_mark); }

void fdri_record_unmark_iteration(struct fdri_thread *t)
{
    if (t->iteration_mark) t->iteration_mark->set = false;
}

/* Marks have memory of the location, which is given back with it. */
void fdri_record_rewind_release(struct fdri_thread *t)
{
    t->rewind_mark = t->iteration_mark = NULL;
    t->iterations = NULL;
    t->iteration_depth = 0;
}
