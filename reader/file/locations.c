/* SPDX-License-Identifier: MIT */
/* Finds the locations: their blocks, their levels, their open calls, and their entries in the tail. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "reader/account/account.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- levels ---- */

/* Block number `index` of the location's levels, or NULL if another thing stands at `off`. */
static const struct fdri_arena_levels_block *levels_at(const struct fdr_file *f, uint64_t off, uint32_t location,
                                                       uint32_t index)
{
    uint32_t bytes = fdri_arena_levels_bytes(fdri_arena_levels_of(index));
    const struct fdri_arena_levels_block *b = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_LEVELS, location,
                                                                              bytes);
    return b && b->index == index && b->head.bytes == bytes ? b : NULL;
}

const struct fdri_arena_level *fdri_file_level(const struct fdr_file *f, const struct fdri_file_location *l,
                                               uint32_t depth)
{
    if (depth == 0) {
        const uint64_t head = offsetof(struct fdri_arena_levels_block, level), off = l->raw.level0_off;
        if (off < head ||
            !fdri_file_meta_at(f, off - head, FDRI_ARENA_META_LEVELS, l->id, head + sizeof(struct fdri_arena_level)))
            return NULL;
        return (const void *)(f->bytes + off);
    }
    uint32_t block = fdri_arena_level_block(depth);
    if (block >= l->raw.level_blocks || !l->levels_off[block]) return NULL;
    const struct fdri_arena_levels_block *b = levels_at(f, l->levels_off[block], l->id, block);
    return b ? &b->level[fdri_arena_level_entry(depth)] : NULL;
}

const struct fdri_arena_level_points *fdri_file_points(const struct fdr_file *f, const struct fdri_file_location *l,
                                                       uint32_t depth)
{
    const struct fdri_arena_level *v = fdri_file_level(f, l, depth);
    if (!v || !v->points_off) return NULL;
    return (const void *)fdri_file_meta_at(f, v->points_off, FDRI_ARENA_META_POINTS, l->id,
                                           sizeof(struct fdri_arena_level_points));
}

static bool is_readable(const struct fdr_file *f, const void *p, uint64_t bytes)
{
    return p && !fdri_file_is_suspect(f, (uint64_t)((const uint8_t *)p - f->bytes), bytes);
}

/* Finds the blocks that the location no longer leads to. Blocks in damaged bytes do not count: they may lie over
 * something else. Returns the number still missing. */
static uint32_t claim_levels(struct fdr_file *f, struct fdri_file_location *l)
{
    size_t count;
    uint32_t missing = 0;
    const struct fdri_file_meta *m = fdri_file_meta_scan(f, FDRI_ARENA_META_LEVELS, l->id, &count);
    for (uint32_t b = 0; b < l->raw.level_blocks; b++) {
        for (size_t i = 0; i < count && !l->levels_off[b]; i++)
            if (levels_at(f, m[i].off, l->id, b) &&
                is_readable(f, f->bytes + m[i].off, sizeof(struct fdri_arena_levels_block)))
                l->levels_off[b] = m[i].off;
        missing += !l->levels_off[b];
    }
    return missing;
}

static void find_levels(struct fdr_file *f, struct fdri_file_location *l)
{
    uint32_t missing = 0;
    if (l->raw.level_blocks > FDRI_ARENA_LEVEL_BLOCKS_MAX) {
        fdri_file_damage(f, "location %u: its number of blocks of levels, %u, is impossible", l->id,
                         l->raw.level_blocks);
        l->raw.level_blocks = FDRI_ARENA_LEVEL_BLOCKS_MAX;
        while (l->raw.level_blocks && !l->raw.levels_off[l->raw.level_blocks - 1]) l->raw.level_blocks--;
    }
    for (uint32_t i = 0; i < l->raw.level_blocks; i++) {
        l->levels_off[i] = levels_at(f, l->raw.levels_off[i], l->id, i) ? l->raw.levels_off[i] : 0;
        missing += !l->levels_off[i];
    }
    if (missing) fdri_file_damage(f, "location %u: levels are missing", l->id);
    if (missing) l->levels_lost = claim_levels(f, l) != 0;
    if (!fdri_file_level(f, l, 0)) fdri_file_damage(f, "location %u: level 0 is missing", l->id);
}

/* ---- open calls ---- */

static bool add_frame(struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_frame *frame,
                      uint32_t *count, uint64_t enter_tick, uint32_t region, uint32_t flags, uint32_t ordinal)
{
    uint64_t enter = enter_tick >> l->clock.shift, before = *count ? frame[*count - 1].enter : 0;
    if (flags & FDRI_ARENA_LEVEL_UNTIMED) enter = before;
    if (enter < before || enter > l->clock.stored_max) {
        if (l->settled)
            fdri_file_damage(f, "location %u: the stack of open calls is damaged at depth %u", l->id, *count + 1);
        return false;
    }
    if (!(flags & FDRI_ARENA_LEVEL_ORDINAL)) ordinal = FDRI_CODEC_ORDINAL_COUNTED;
    frame[(*count)++] = (struct fdri_file_frame){enter, region, flags, ordinal};
    return true;
}

static void find_live(struct fdr_file *f, struct fdri_file_location *l)
{
    uint32_t depth = l->raw.depth, most = fdri_arena_levels_in(l->raw.level_blocks);
    if (depth > most) {
        if (l->settled) fdri_file_damage(f, "location %u: its %u open calls exceed its %u levels", l->id, depth, most);
        depth = 0;
    }
    if (l->block_damaged) return;
    if (!depth || !(l->live = fdri_file_calloc(depth, sizeof *l->live))) return;
    for (uint32_t d = 1; d <= depth; d++) {
        const struct fdri_arena_level *v = fdri_file_level(f, l, d);
        uint32_t flags = v ? v->flags : 0;
        /* The cut was read before the stack. A call entered in between ends after the cut, and its record may be
         * stored, too. */
        if (v && l->moving && v->enter_tick >> l->clock.shift > l->cut) return;
        /* Later events of the same tick may refer to its ordinal. */
        if (v && l->moving && v->enter_tick >> l->clock.shift == l->cut) flags |= FDRI_ARENA_LEVEL_ORDINAL;
        /* The location stopped storing during the copy: only the stack has its open calls. */
        if (l->moving && !(l->raw.flags & FDRI_ARENA_LOCATION_STOPPED)) flags &= ~(uint32_t)FDRI_ARENA_LEVEL_SETTLED;
        if (!v || fdri_file_is_suspect(f, (uint64_t)((const uint8_t *)v - f->bytes), sizeof *v) ||
            !add_frame(f, l, l->live, &l->live_count, v->enter_tick, v->region, flags,
                       v->zero_tick == v->enter_tick >> l->clock.shift ? v->zero_count : 0))
            return;
    }
}

/* One block of the stack at the stop; NULL: damaged. */
static const struct fdri_arena_frozen *frozen_at(struct fdr_file *f, const struct fdri_file_location *l, uint64_t off)
{
    const struct fdri_arena_frozen *z = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_FROZEN, l->id,
                                                                        sizeof *z);
    if (!z || z->count > FDRI_FILE_DEPTH_MAX || !fdri_file_at(f, off, fdri_arena_frozen_bytes(z->count)) ||
        fdri_file_is_suspect(f, off, fdri_arena_frozen_bytes(z->count)))
        return NULL;
    return z;
}

/* Counts the calls open at the stop. Returns false if not all of them are readable. */
static bool count_frozen(struct fdr_file *f, const struct fdri_file_location *l, uint32_t *count)
{
    const struct fdri_arena_frozen *z;
    uint32_t blocks = 0;
    *count = 0;
    for (uint64_t off = l->raw.frozen_off; off; off = z->next) {
        if (blocks++ == FDRI_ARENA_LEVEL_BLOCKS_MAX || !(z = frozen_at(f, l, off))) return false;
        *count += z->count;
        if (*count > FDRI_FILE_DEPTH_MAX) return false;
    }
    return true;
}

static bool add_frozen(struct fdr_file *f, struct fdri_file_location *l, const struct fdri_arena_frozen *z)
{
    for (uint32_t i = 0; i < z->count; i++) {
        uint32_t flags = z->frame[i].flags & (FDRI_ARENA_LEVEL_UNTIMED | FDRI_ARENA_LEVEL_ORDINAL);
        uint32_t ordinal = z->frame[i].flags >> FDRI_ARENA_FROZEN_ORDINAL;
        if (ordinal == FDRI_ARENA_FROZEN_ORDINAL_MAX) ordinal = FDRI_FILE_NO_ORDINAL;
        if (!add_frame(f, l, l->frozen, &l->frozen_count, z->frame[i].enter_tick, z->frame[i].region, flags, ordinal))
            return false;
    }
    return true;
}

static void find_frozen(struct fdr_file *f, struct fdri_file_location *l)
{
    uint32_t count;
    if (!l->raw.frozen_off) return;
    if (!count_frozen(f, l, &count)) {
        fdri_file_damage(f, "location %u: the open calls at its stop are damaged", l->id);
        return;
    }
    l->stopped = true;
    if (!count || !(l->frozen = fdri_file_calloc(count, sizeof *l->frozen))) return;
    const struct fdri_arena_frozen *z;
    for (uint64_t off = l->raw.frozen_off; off && !l->frozen_lost; off = z->next)
        l->frozen_lost = !add_frozen(f, l, z = frozen_at(f, l, off));
}

static void find_frames(struct fdr_file *f, struct fdri_file_location *l)
{
    find_live(f, l);
    find_frozen(f, l);
    l->frame = l->stopped ? l->frozen : l->live;
    l->frame_count = l->stopped ? l->frozen_count : l->live_count;
}

/* ---- the tail, and the events presented ---- */

static uint64_t presented(struct fdr_file *f, struct fdri_file_location *l)
{
    uint64_t sum = l->raw.presented_overflow;
    l->presented_in[FDRI_ARENA_CLASS_REGION] = sum;
    for (uint32_t d = 0; d <= fdri_arena_levels_in(l->raw.level_blocks); d++) {
        const struct fdri_arena_level *v = fdri_file_level(f, l, d);
        const struct fdri_arena_level_points *p = fdri_file_points(f, l, d);
        if (v && v->points_off && !p && !f->has_tail)
            fdri_file_damage(f, "location %u: the accounts of points at depth %u are missing", l->id, d);
        l->presented_unsure |= !is_readable(f, v, sizeof *v) || (v->points_off && !is_readable(f, p, sizeof *p));
        if (v && d > 0) sum += v->presented, l->presented_in[FDRI_ARENA_CLASS_REGION] += v->presented;
        for (uint32_t c = 1; p && c < FDRI_ARENA_CLASS_COUNT; c++) {
            sum += p->by_class[c].presented;
            l->presented_in[c] += p->by_class[c].presented;
        }
    }
    const struct fdri_arena_samples *samples = fdri_events_samples(f, l);
    for (uint32_t i = 0; samples && i < FDRI_ARENA_SAMPLE_LEVELS; i++) sum += samples->level[i].presented;
    return sum;
}

static void read_tail(struct fdr_file *f)
{
    struct fdri_arena_tail tail;
    if (!f->has_tail || f->tail_bad) return;
    memcpy(&tail, f->bytes + f->end, sizeof tail);
    uint64_t fit = (f->size - f->end - sizeof tail) / sizeof(struct fdri_arena_tail_entry);
    for (uint64_t i = 0; i < tail.count && i < fit; i++) {
        struct fdri_arena_tail_entry e;
        memcpy(&e, f->bytes + f->end + sizeof tail + i * sizeof e, sizeof e);
        struct fdri_file_location *l = fdri_file_location(f, e.location);
        f->info.threads_gone += e.location == UINT32_MAX;
        if (!l) continue;
        if (e.presented < l->presented_before)
            fdri_file_damage(f, "location %u: the tail has fewer events presented than the levels", l->id);
        l->in_tail = true;
        l->tail = e;
        l->cut = e.cut_tick >> l->clock.shift;
    }
}

/* Only the location's block counts the calls deeper than the stack. If it is damaged, they count if the tail has as
 * many events. */
static void doubt_overflow(struct fdri_file_location *l)
{
    if (!l->block_damaged) return;
    if (!l->in_tail || l->presented_before > l->tail.presented) {
        l->presented_before -= l->raw.presented_overflow;
        l->raw.presented_overflow = 0;
    }
    l->raw.lost_overflow = fdri_bits_min(l->raw.lost_overflow, l->raw.presented_overflow);
}

/* Is this location moving: did it record during the copy? It may also have ended meanwhile, or between the copies of
 * its parts and of its header. Without an entry in the tail: yes if it lives. Without a tail: no. */
static bool recorded_during_copy(const struct fdr_file *f, const struct fdri_file_location *l)
{
    if (!f->has_tail || f->tail_bad) return false;
    if (!l->in_tail) return l->raw.flags & FDRI_ARENA_LOCATION_LIVE;
    uint64_t rested = l->tail.completed + l->raw.depth + l->raw.overflow + 1;
    return l->tail.presented > rested || l->tail.presented != l->presented_before ||
           l->raw.last_tick != l->tail.cut_tick || l->tail.end_tick != l->tail.cut_tick;
}

/* ---- finding the blocks ---- */

/* Searches the first `count` locations, which are sorted. */
static struct fdri_file_location *find(struct fdr_file *f, size_t count, uint32_t id)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (f->location[i].id < id) low = i + 1;
        else high = i;
    }
    return low < count && f->location[low].id == id ? &f->location[low] : NULL;
}

struct fdri_file_location *fdri_file_location(struct fdr_file *f, uint32_t id)
{
    return find(f, f->location_count, id);
}

static struct fdri_file_location *add(struct fdr_file *f, uint32_t id)
{
    if (!fdri_file_grow(&f->location, f->location_count, &f->location_room, sizeof *f->location)) return NULL;
    struct fdri_file_location *l = &f->location[f->location_count++];
    memset(l, 0, sizeof *l);
    l->id = id;
    l->raw.parent = UINT32_MAX;
    return l;
}

/* The block holds its id twice. If they differ, the id that its partitions have is right. */
static uint32_t id_of(const struct fdr_file *f, const struct fdri_arena_location *raw)
{
    uint32_t other = raw->head.location;
    if (raw->id == other ||
        !fdri_file_meta_at(f, raw->parts_first, FDRI_ARENA_META_PART, other, sizeof(struct fdri_arena_part)))
        return raw->id;
    return other;
}

/* Takes in the location block at `off`. Returns true if there was one; *next is the location attached before it. */
static bool take_location(struct fdr_file *f, uint64_t off, uint64_t *next)
{
    struct fdri_arena_location raw;
    if (!fdri_file_meta_at(f, off, FDRI_ARENA_META_LOCATION, UINT32_MAX, sizeof raw)) return false;
    memcpy(&raw, f->bytes + off, sizeof raw);
    *next = raw.next;
    if (raw.flags & FDRI_ARENA_LOCATION_FREE) return true;
    struct fdri_file_location *l = add(f, id_of(f, &raw));
    if (!l) return false;
    if (l->id != raw.id) fdri_file_damage(f, "location %u: its block has the id %u", l->id, raw.id);
    raw.id = l->id;
    l->off = off;
    l->raw = raw;
    l->raw.name[sizeof l->raw.name - 1] = 0;
    l->block_damaged = fdri_file_is_suspect(f, off, sizeof raw);
    *next = raw.next;
    return true;
}

static int by_id(const void *x, const void *y)
{
    const struct fdri_file_location *a = x, *b = y;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return a->off < b->off ? -1 : a->off > b->off;
}

/* Sorts by id. Of several blocks with one id, the first stays. */
static void put_in_order(struct fdr_file *f)
{
    size_t kept = 0;
    if (f->location_count) qsort(f->location, f->location_count, sizeof *f->location, by_id);
    for (size_t i = 0; i < f->location_count; i++) {
        if (kept && f->location[kept - 1].id == f->location[i].id) {
            if (f->location[kept - 1].off != f->location[i].off)
                fdri_file_damage(f, "location %u has two blocks", f->location[i].id);
            continue;
        }
        if (kept != i) f->location[kept] = f->location[i];
        kept++;
    }
    f->location_count = kept;
}

/* Do bins belong to locations that are not on the chain? */
static bool bins_without_location(struct fdr_file *f)
{
    struct fdri_file_found **b = fdri_file_by_identity(f);
    for (size_t i = 0; b && i < f->found_count; i++)
        if ((i == 0 || b[i]->location != b[i - 1]->location) && !fdri_file_location(f, b[i]->location)) return true;
    return false;
}

/* Takes in blocks that are not on the chain. It leaves out the block of a thread that was just attaching: it is not
 * complete. */
static void by_scan(struct fdr_file *f)
{
    size_t count, known = f->location_count;
    uint64_t next;
    const struct fdri_file_meta *m = fdri_file_meta_scan(f, FDRI_ARENA_META_LOCATION, UINT32_MAX, &count);
    for (size_t i = 0; i < count; i++) {
        const struct fdri_arena_location *raw = fdri_file_at(f, m[i].off, sizeof *raw);
        if (raw && raw->id == raw->head.location && raw->parts_first && !find(f, known, raw->id))
            take_location(f, m[i].off, &next);
    }
    put_in_order(f);
}

static void find_all(struct fdr_file *f)
{
    uint64_t off = f->sb.location_first;
    size_t most = f->end / sizeof(struct fdri_arena_location) + 1;
    while (off && most-- && take_location(f, off, &off)) continue;
    put_in_order(f);
    if (off) {
        fdri_file_damage(f, "the chain of locations is broken");
        f->locations_lost = true;
        by_scan(f);
    } else if (f->location_count < f->sb.location_count && !f->has_tail && bins_without_location(f)) {
        size_t known = f->location_count;
        by_scan(f);
        if (f->location_count > known) fdri_file_damage(f, "the chain of locations misses some of them");
    }
    /* A damaged block may have a wrong flag, or two wrong ids. */
    if (f->bad_count && !f->locations_lost) f->locations_lost = bins_without_location(f);
}

/* Makes locations without a block from their bins. */
static void locations_from_bins(struct fdr_file *f)
{
    struct fdri_file_found **b = fdri_file_by_identity(f);
    size_t known = f->location_count;
    for (size_t i = 0; b && i < f->found_count; i++) {
        if (i && b[i]->location == b[i - 1]->location) continue;
        if (find(f, known, b[i]->location) || !add(f, b[i]->location)) continue;
        fdri_file_damage(f, "location %u is known from its bins only", b[i]->location);
    }
    put_in_order(f);
}

/* Location and bins both say whether times are ns. The bins are under a check, so they decide: a snapshot may have
 * copied the location's header before its first event set the unit. */
static void settle_units(struct fdr_file *f)
{
    for (size_t i = 0; i < f->found_count; i++) {
        struct fdri_file_location *l = fdri_file_location(f, f->found[i].location);
        bool ns = f->found[i].flags & FDRI_ARENA_BIN_NS;
        if (!l || ns == ((l->raw.flags & FDRI_ARENA_LOCATION_NS) != 0)) continue;
        l->bins_other_unit = true;
        l->raw.flags ^= FDRI_ARENA_LOCATION_NS;
    }
}

/* A thread's id and whether it lives: both agree between a thread and its samples. */
struct thread_key {
    uint64_t key;
    size_t at;
};

static uint64_t key_of(const struct fdri_arena_location *l)
{
    return (uint64_t)l->tid << 1 | ((l->flags & FDRI_ARENA_LOCATION_LIVE) != 0);
}

static int by_key(const void *a, const void *b)
{
    const struct thread_key *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The last thread with this key, or NULL. */
static const struct thread_key *last_of(const struct thread_key *threads, size_t count, uint64_t key)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (threads[middle].key <= key) low = middle + 1;
        else high = middle;
    }
    return low && threads[low - 1].key == key ? &threads[low - 1] : NULL;
}

/* Samples taken by the kernel name their thread by its id only. Their parent is the location with this id that
 * attached last before the samples ended. */
static void find_parents(struct fdr_file *f)
{
    struct thread_key *threads = fdri_file_malloc((f->location_count + 1) * sizeof *threads);
    size_t count = 0;
    if (!threads) return;
    for (size_t i = 0; i < f->location_count; i++) {
        const struct fdri_arena_location *l = &f->location[i].raw;
        bool thread = f->location[i].off && !(l->flags & (FDRI_ARENA_LOCATION_SAMPLES | FDRI_ARENA_LOCATION_LANE |
                                                          FDRI_ARENA_LOCATION_ENDED));
        if (thread) threads[count++] = (struct thread_key){key_of(l), i};
    }
    qsort(threads, count, sizeof *threads, by_key);
    for (size_t i = 0; i < f->location_count; i++) {
        struct fdri_arena_location *s = &f->location[i].raw;
        if (!(s->flags & FDRI_ARENA_LOCATION_SAMPLES) || s->parent != UINT32_MAX || !s->tid) continue;
        const struct thread_key *found = last_of(threads, count, key_of(s));
        if (found) s->parent = f->location[found->at].raw.id;
    }
    free(threads);
}

void fdri_file_locations(struct fdr_file *f)
{
    find_all(f);
    if (f->locations_lost) locations_from_bins(f);
    find_parents(f);
    settle_units(f);
    for (size_t i = 0; i < f->location_count; i++) {
        struct fdri_file_location *l = &f->location[i];
        if (l->raw.flags & FDRI_ARENA_LOCATION_NS) fdri_file_clock_ns(&l->clock, f->sb.shift);
        else l->clock = f->clock;
        l->info.given_times = (l->raw.flags & FDRI_ARENA_LOCATION_NS) && f->sb.clock_kind == FDRI_ARENA_CLOCK_TSC;
        if (l->off) find_levels(f, l);
        l->presented_before = presented(f, l);
    }
    read_tail(f);
    for (size_t i = 0; i < f->location_count; i++) {
        struct fdri_file_location *l = &f->location[i];
        doubt_overflow(l);
        l->moving = recorded_during_copy(f, l);
        l->settled = !l->moving && !(l->in_tail && l->tail.under_way);
        if (l->moving && !l->in_tail) l->cut = l->raw.last_tick >> l->clock.shift;
        if (l->bins_other_unit && l->off && l->settled)
            fdri_file_damage(f, "location %u: its time unit differs from the unit of its bins", l->id);
        if (l->off) find_frames(f, l);
        fdri_file_parts(f, l);
        fdri_account_keep_rule(l);
        fdri_account_reach(f, l);
    }
}
