/* SPDX-License-Identifier: MIT */
/* Stores samples: the place in the code where a thread was, seen from outside its stream of events.
 *
 * Each sampled thread has a location of its own for samples, and only its sampler writes it. So a signal handler that
 * interrupts a record changes nothing of that record.
 *
 * Levels (Wagner 2015, 4.7): a sample's level is the highest bit in which its number differs from the number before. So
 * the levels from k on contain exactly one sample for each 2^k periods, even if one sample stands for several periods.
 * A kept sample stands for the distance to the kept sample before it, so nothing needs an update when others go. */
#include "base/atomic.h"
#include "bins/bins.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "format/codec/record_codec.h"
#include "format/codec/sample_codec.h"
#include "policies/policies.h"
#include "recorder/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/record/record.h"
#include "recorder/record/sample_stream.h"
#include "recorder/shares/shares.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy/strategy.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"

#include <assert.h>
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { REGIONS_MAX = FDRI_CODEC_SAMPLE_STEPS_MAX / 2, SPARES = FDRI_RECORD_SAMPLED_SPARES };
static_assert(FDRI_POLICIES_SAMPLE_LEVELS == FDRI_ARENA_SAMPLE_LEVELS, "levels");
enum { LOOK_FLAGS = FDR_LOOK_MOVED | FDR_LOOK_CUT | FDR_LOOK_OUTSIDE };
static_assert((int)FDRI_CODEC_SAMPLE_INSIDE == FDR_LOOK_MOVED && (int)FDRI_CODEC_SAMPLE_CUT == FDR_LOOK_CUT &&
                  (int)FDRI_CODEC_SAMPLE_OUTSIDE == FDR_LOOK_OUTSIDE,
              "flags of a look are stored as they are");

static enum fdri_strategy_samples thinned(void) { return fdri_strategy_now()->samples; }
static bool levelled(void) { return thinned() >= FDRI_STRATEGY_SAMPLES_BY_LEVEL; }
static bool closes_levels(void) { return thinned() == FDRI_STRATEGY_SAMPLES_CLOSE_LEVELS; }

/* ---- memory: bins of the samples' share, and free bins while more than half of all bins are free ---- */

uint32_t fdri_record_sample_bins_due(void)
{
    uint32_t held = fdri_atomic_load_relaxed(&fdri_life_recording.sample_bins),
             share = fdri_atomic_load_relaxed(&fdri_life_recording.sample_share);
    return share > held ? share - held : 0;
}

static bool may_take(const struct fdri_arena_location *l)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    return fdri_atomic_load_relaxed(&l->bins_held) < 4 || fdri_record_sample_bins_due() ||
           fdri_bins_free_count(a) > a->super->bins_total / 2;
}

static void count_bins(const struct fdri_arena_location *l, uint32_t before)
{
    if (fdri_atomic_load_relaxed(&l->bins_held) != before) /* the difference wraps if there are fewer */
        fdri_atomic_add_relaxed(&fdri_life_recording.sample_bins, fdri_atomic_load_relaxed(&l->bins_held) - before);
}

static void give_bin(struct fdr_sampled *d, uint32_t off, uint32_t size_log2)
{
    uint32_t before = fdri_atomic_load_relaxed(&d->t.loc->bins_held);
    fdri_bins_piece_give(&fdri_life_recording.arena, d->t.loc, off, size_log2);
    count_bins(d->t.loc, before);
}

static uint32_t take_bin(struct fdr_sampled *d, uint32_t want, uint32_t *got)
{
    struct fdri_arena_location *l = d->t.loc;
    uint32_t before = fdri_atomic_load_relaxed(&l->bins_held),
             off = may_take(l) ? fdri_bins_piece_take(&fdri_life_recording.arena, l, want) : 0;
    *got = want;
    if (!off) off = fdri_bins_piece_any(&fdri_life_recording.arena, l, want, 9, got);
    if (!off && fdri_record_sample_bins_due() && (off = fdri_shares_claim_piece(&d->t, want))) *got = want;
    count_bins(l, before);
    return off;
}

static struct fdri_arena_part *part_of(const struct fdr_sampled *d, uint32_t level)
{
    uint32_t off = d->s->level[level].part;
    return off > FDRI_THREAD_GATE_CLOSED ? fdri_thread_at(&d->t, off) : NULL;
}

/* ---- giving back ---- */

static void keep_table(struct fdr_sampled *d, struct fdri_arena_part *p)
{
    const struct fdri_arena_meta_head *h = fdri_thread_at(&d->t, p->table_off - (uint32_t)sizeof *h);
    for (uint32_t i = SPARES; p->table_off && i-- > 0;)
        if (!d->spare[i] && sizeof *h + fdri_codec_sample_table_bytes(512u << i) <= h->bytes) {
            d->spare[i] = p->table_off;
            break;
        }
    p->table_off = 0;
}

/* Strategy `whole`: gives a whole level back. That is half of the remaining samples, evenly spread. */
static void drop_level(struct fdr_sampled *d, uint32_t level)
{
    struct fdri_arena_part *p = part_of(d, level);
    struct fdri_bins_given given = FDRI_STRATEGY_NOTHING_GIVEN;
    uint32_t size, off;
    fdri_bins_part_seal(&fdri_life_recording.arena, p);
    fdri_atomic_store_relaxed(&d->s->lowest_level, level + 1);
    while ((off = fdri_bins_part_pop(&fdri_life_recording.arena, p, &size, &given))) give_bin(d, off, size);
    p->flags |= FDRI_ARENA_PART_CLOSED;
    d->s->level[level].part = FDRI_THREAD_GATE_CLOSED;
    keep_table(d, p);
    fdri_strategy_reduction_note(&d->t, FDRI_ARENA_STEP_THIN, FDRI_POLICIES_REASON_OLDEST, p, &given, true);
}

static uint32_t drop_oldest(struct fdr_sampled *d, uint32_t level, uint32_t want, uint32_t *got)
{
    struct fdri_arena_part *p = part_of(d, level);
    struct fdri_bins_given given = FDRI_STRATEGY_NOTHING_GIVEN;
    uint32_t size = 0, off = fdri_bins_part_pop(&fdri_life_recording.arena, p, &size, &given);
    if (!off) return 0;
    fdri_strategy_reduction_note(&d->t, FDRI_ARENA_STEP_THIN, FDRI_POLICIES_REASON_OLDEST, p, &given, false);
    if (size > want) fdri_bins_piece_split(&fdri_life_recording.arena, d->t.loc, off, size, want);
    *got = size < want ? size : want;
    return off;
}

static uint32_t victim(const struct fdr_sampled *d)
{
    struct fdri_policies_sample_view view[FDRI_POLICIES_SAMPLE_LEVELS] = {{0, false}};
    for (uint32_t i = 0; i < FDRI_POLICIES_SAMPLE_LEVELS; i++) {
        const struct fdri_arena_part *p = part_of(d, i);
        if (p) view[i] = (struct fdri_policies_sample_view){p->bytes << 9, fdri_bins_part_has_sealed(p)};
    }
    return fdri_policies_sample_victim(view, !closes_levels());
}

/* Gives back samples of this location and returns a piece for `level`; 0: it has no bin to give, or `level` itself was
 * closed. */
static uint32_t reduce(struct fdr_sampled *d, uint32_t level, uint32_t want, uint32_t *got)
{
    for (;;) { /* the loop ends: each round gives a bin or closes a level for ever */
        uint32_t v = thinned() == FDRI_STRATEGY_SAMPLES_STAY ? FDRI_POLICIES_SAMPLE_LEVELS : victim(d);
        if (v == FDRI_POLICIES_SAMPLE_LEVELS) return 0;
        if (!closes_levels()) return drop_oldest(d, v, want, got);
        drop_level(d, v);
        if (v >= level) return 0;
        uint32_t off = take_bin(d, want, got);
        if (off) return off;
    }
}

/* ---- a bin for the next sample ---- */

static uint32_t payload_bits(uint32_t size_log2) { return ((1u << size_log2) - FDRI_ARENA_BIN_HEADER) * 8 - 64; }

/* Makes the encoder's table of p fit bins of 1 << size_log2 bytes. A new table takes the sample number over from the
 * old one. */
static bool have_table(struct fdr_sampled *d, struct fdri_arena_part *p, uint32_t size_log2)
{
    const uint32_t head = sizeof(struct fdri_arena_meta_head),
                   need = head + fdri_codec_sample_table_bytes(1u << size_log2);
    struct fdri_codec_sample_table *old = p->table_off ? fdri_thread_at(&d->t, p->table_off) : NULL, *table = NULL;
    if (old && ((const struct fdri_arena_meta_head *)fdri_thread_at(&d->t, p->table_off - head))->bytes >= need)
        return true;
    uint32_t off = 0;
    for (uint32_t i = size_log2 - 9; i < SPARES && !off; i++) {
        off = d->spare[i];
        d->spare[i] = 0;
    }
    if (!off && (off = fdri_memory_meta(&d->t, FDRI_ARENA_META_TABLE, need))) off += head;
    if (!off) return false;
    table = fdri_thread_at(&d->t, off);
    memset(&table->s, 0, sizeof table->s);
    if (old) {
        table->s.number = old->s.number;
        keep_table(d, p);
    }
    p->table_off = off;
    return true;
}

/* Shortens the record's path to `most` steps. Regions stay first; the outermost addresses go. */
static void cut_path(struct fdr_sampled *d, struct fdri_codec_sample_record *r, uint32_t most)
{
    uint32_t regions = 0;
    if (r->steps <= most) return;
    while (regions < r->steps && d->step[regions] & FDRI_CODEC_SAMPLE_REGION) regions++;
    if (regions > most) regions = most;
    memmove(d->step + regions, d->step + r->steps - (most - regions), (most - regions) * sizeof d->step[0]);
    r->steps = most;
    r->flags |= FDRI_CODEC_SAMPLE_CUT;
}

static uint32_t next_size(struct fdr_sampled *d, struct fdri_arena_part *p, uint32_t bits)
{
    uint32_t full = fdri_life_recording.arena.bin_log2;
    uint32_t want = p->size_log2 ? p->size_log2 + 1u : 9u;
    if (want > full) want = full;
    while (want < full && payload_bits(want) < bits) want++;
    while (!have_table(d, p, want))
        if (--want < 9) return 0;
    return want;
}

/* The partition of the level, with room for the record, which may have been shortened. NULL: no room. */
static struct fdri_arena_part *partition_with_room(struct fdr_sampled *d, uint32_t level,
                                                   struct fdri_codec_sample_record *r,
                                                   struct fdri_codec_sample_match *m)
{
    uint32_t *slot = &d->s->level[level].part, got = 0;
    if (!*slot) {
        struct fdri_arena_part *made = fdri_memory_make_part(&d->t, level, FDRI_ARENA_CLASS_SAMPLE, 0);
        if (!made) return NULL;
        *slot = fdri_thread_offset_of(&d->t, made);
    }
    struct fdri_arena_part *p = part_of(d, level);
    if (!fdri_codec_encode_full(p)) {
        *m = fdri_codec_sample_find(fdri_thread_at(&d->t, p->table_off), r);
        if (FDRI_ARENA_COMMIT_BITS(p->progress) + fdri_codec_sample_bits(r->steps - m->steps) <= p->limit) return p;
    }
    fdri_bins_part_seal(&fdri_life_recording.arena, p);
    uint32_t want = next_size(d, p, fdri_codec_sample_bits(r->steps)), off = want ? take_bin(d, want, &got) : 0;
    if (!off && want) off = reduce(d, level, want, &got);
    if (!off) return NULL;
    struct fdri_codec_sample_table *table = fdri_thread_at(&d->t, p->table_off);
    uint64_t before = table->s.number;
    if (fdri_atomic_load_relaxed(&d->t.loc->bins_held) >= 8) fdri_strategy_reserve_ledger(&d->t);
    fdri_bins_part_open(&fdri_life_recording.arena, d->t.loc, p, off, got, 0, 0);
    fdri_codec_sample_begin(table, 1u << got, before);
    cut_path(d, r, (payload_bits(got) - fdri_codec_sample_bits(0)) / 58);
    *m = (struct fdri_codec_sample_match){0, 0};
    return p;
}

static void store(struct fdr_sampled *d, uint32_t level, struct fdri_codec_sample_record *r, uint64_t tick)
{
    struct fdri_codec_sample_match m;
    struct fdri_arena_part *p = partition_with_room(d, level, r, &m);
    if (!p) {
        bool closed = level < d->s->lowest_level || d->s->level[level].part == FDRI_THREAD_GATE_CLOSED;
        fdri_atomic_bump_relaxed(closed ? &d->s->level[level].reduced_gate : &d->s->level[level].lost, 1);
        return;
    }
    struct fdri_arena_bin *bin = fdri_thread_at(&d->t, p->open_off);
    uint64_t gap = tick - p->last_tick;
    fdri_codec_sample_encode(p, fdri_thread_at(&d->t, p->table_off), (uint8_t *)(bin + 1), gap, r, m);
    p->last_tick = tick;
    fdri_atomic_signal_fence();
    fdri_atomic_store_release(&bin->commit, fdri_codec_commit_word(p)); /* R:commit */
}

/* ---- the path of a sample ---- */

/* Adds the open calls of the sampled thread. Its shadow stack does not change, because this runs in a handler of that
 * thread. */
static uint32_t open_regions(struct fdr_sampled *d, struct fdri_codec_sample_record *r)
{
    const struct fdri_thread *self = &fdri_record_self;
    if (self->recording != d->recording || self->loc->tid != d->tid) return 0;
    const struct fdri_arena_location *l = self->loc;
    uint32_t depth = fdri_atomic_load_relaxed(&l->depth), n = depth < REGIONS_MAX ? depth : REGIONS_MAX;
    if (d->t.loc->parent == UINT32_MAX && !d->several) d->t.loc->parent = l->id;
    if (l->busy) r->flags |= FDRI_CODEC_SAMPLE_INSIDE;
    if (n < depth) r->flags |= FDRI_CODEC_SAMPLE_CUT;
    for (uint32_t i = 0; i < n; i++) d->step[i] = FDRI_CODEC_SAMPLE_REGION | fdri_thread_level(self, i + 1)->region;
    return n;
}

static uint32_t given_regions(struct fdr_sampled *d, const struct fdr_look *look, struct fdri_codec_sample_record *r)
{
    uint32_t n = look->path_count < REGIONS_MAX ? look->path_count : REGIONS_MAX;
    if (n < look->path_count) r->flags |= FDRI_CODEC_SAMPLE_CUT;
    for (uint32_t i = 0; i < n; i++)
        d->step[i] = FDRI_CODEC_SAMPLE_REGION | (look->path[i] <= FDRI_CODEC_ID_MAX ? look->path[i] : 0);
    return n;
}

static void fill_path(struct fdr_sampled *d, const struct fdr_look *look, struct fdri_codec_sample_record *r)
{
    uint32_t n = look->path ? given_regions(d, look, r) : open_regions(d, r);
    uint32_t room = FDRI_CODEC_SAMPLE_STEPS_MAX - n, frames = look->stack_count < room ? look->stack_count : room;
    if (frames < look->stack_count) r->flags |= FDRI_CODEC_SAMPLE_CUT;
    for (uint32_t i = 0; i < frames; i++) d->step[n + i] = look->stack[frames - 1 - i] & FDRI_CODEC_SAMPLE_ADDRESS;
    r->step = d->step;
    r->steps = n + frames;
}

/* ---- one sample ---- */

static bool is_outside(const struct fdr_look *look) { return look->flags & FDR_LOOK_OUTSIDE; }

static bool paused(struct fdr_sampled *d, const struct fdr_look *look)
{
    if (is_outside(look)) return fdri_record_watch(d);
    return fdri_record_self.recording == d->recording && fdri_record_self.loc->tid == d->tid &&
           fdri_record_self.loc->pause;
}

/* Looks were due each 2^lowest_level periods; fdr's thread took only this one. */
static void count_left_out(struct fdri_arena_samples *s, uint64_t weight)
{
    uint64_t due = s->lowest_level < FDRI_ARENA_SAMPLE_LEVELS ? weight >> s->lowest_level : 0;
    if (due > 1) fdri_atomic_bump_relaxed(&s->left_out, due - 1);
}

static void present(struct fdr_sampled *d, const struct fdr_look *look, uint64_t weight, bool live, uint64_t time_ns)
{
    struct fdri_arena_samples *s = d->s;
    struct fdri_arena_location *l = d->t.loc;
    uint64_t number = s->number + weight;
    uint32_t level = levelled() ? fdri_policies_sample_level(s->number, number) : 0;
    fdri_atomic_bump_relaxed(&s->level[level].presented, 1);
    if (is_outside(look)) count_left_out(s, weight);
    if (live && paused(d, look)) {
        fdri_atomic_bump_relaxed(&s->level[level].filtered, 1);
    } else if (level < s->lowest_level || s->level[level].part == FDRI_THREAD_GATE_CLOSED) {
        fdri_atomic_bump_relaxed(&s->level[level].reduced_gate, 1);
    } else {
        struct fdri_codec_sample_record r = {.number = number, .pc = look->pc, .flags = look->flags & LOOK_FLAGS};
        uint64_t tick = live ? fdri_thread_clamp_live(&d->t, fdri_thread_tick_live(&d->t))
                             : fdri_thread_tick_at(&d->t, time_ns);
        fill_path(d, look, &r);
        if (!look->stack_count && !is_outside(look)) fdri_atomic_bump_relaxed(&s->without_path, 1);
        store(d, level, &r, tick >> d->t.shift);
        l->last_tick = tick;
    }
    fdri_atomic_store_relaxed(&s->number, number);
}

/* Marks the stream's location busy and returns it. NULL: the recording is over, or a sample is under way. The memory of
 * an ended recording stays mapped, empty or unchanged. A late caller finds no location in it, or marks a location that
 * no one reads. Then it sees the switch off, because the switch goes off before the memory. If the switch is still on
 * after the mark, fdr_finalize waits for this operation. */
static struct fdri_arena_location *begin_operation(struct fdr_sampled *d, uint64_t here)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    if (!on || !d || fdri_atomic_load_relaxed(&d->recording) != on) return NULL;
    struct fdri_arena_location *l = fdri_atomic_load_relaxed(&d->t.loc);
    if (!l || fdri_atomic_load_relaxed(&l->busy)) return NULL;
    fdri_atomic_store_relaxed(&l->busy, here);
    fdri_atomic_signal_fence();
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) == on) return l;
    fdri_atomic_store_release(&l->busy, 0); /* R:busy */
    return NULL;
}

static uint64_t sample(struct fdr_sampled *d, const struct fdr_look *look, bool live, uint64_t time_ns)
{
    struct fdri_arena_location *l = begin_operation(d, (uint64_t)(uintptr_t)__builtin_frame_address(0));
    if (!l) return 0;
    if (d->t.no_event_yet) {
        if (!live) {
            fdri_thread_set_clock(&d->t, true);
            l->start_tick = 0; /* that was a time of the other clock; the first sample sets it */
        }
        d->t.no_event_yet = false;
    }
    uint64_t most = FDRI_CODEC_SAMPLE_NUMBER_MAX - d->s->number;
    bool good = look->weight && look->weight < most;
    if (good) present(d, look, look->weight, live, time_ns);
    uint64_t wanted = good && d->s->lowest_level < FDRI_ARENA_SAMPLE_LEVELS ? 1ull << d->s->lowest_level : 0;
    fdri_thread_end(&d->t);
    return wanted;
}

uint64_t fdr_sample(struct fdr_sampled *d, const struct fdr_look *look) { return sample(d, look, true, 0); }
uint64_t fdr_sample_at(struct fdr_sampled *d, const struct fdr_look *look, uint64_t time_ns)
{
    return sample(d, look, false, time_ns);
}
