/* SPDX-License-Identifier: MIT */
/* Locations, copied from outside: completed events, open calls, partitions, and entries in the tail.
 * export/snapshot/snapshot_locations.c does the same within the process and gives the reasons. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/live/external_copy.h"
#include "reader/live/find_process.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- locations ---- */

static uint64_t level_off(const struct fdri_arena_location *l, uint32_t depth)
{
    return l->levels_off[fdri_arena_level_block(depth)] + offsetof(struct fdri_arena_levels_block, level) +
           fdri_arena_level_entry(depth) * sizeof(struct fdri_arena_level);
}

static bool get_location(struct copy *c, uint64_t off, struct fdri_arena_location *l)
{
    if (!fdri_live_external_get(c, off, l, sizeof *l) || l->head.magic != FDRI_ARENA_META_MAGIC ||
        l->head.kind != FDRI_ARENA_META_LOCATION)
        return false;
    if (l->level_blocks > FDRI_ARENA_LEVEL_BLOCKS_MAX) l->level_blocks = FDRI_ARENA_LEVEL_BLOCKS_MAX;
    return true;
}

static uint64_t presented_of_level(struct copy *c, const struct fdri_arena_level *v)
{
    struct fdri_arena_level_points points;
    uint64_t n = v->presented;
    if (!v->points_off || !fdri_live_external_get(c, v->points_off, &points, sizeof points)) return n;
    for (int i = 0; i < FDRI_ARENA_CLASS_COUNT; i++) n += points.by_class[i].presented;
    return n;
}

static uint64_t filtered_of_level(struct copy *c, const struct fdri_arena_level *v)
{
    struct fdri_arena_level_points points;
    uint64_t n = v->filtered;
    if (!v->points_off || !fdri_live_external_get(c, v->points_off, &points, sizeof points)) return n;
    for (int i = 0; i < FDRI_ARENA_CLASS_COUNT; i++) n += points.by_class[i].filtered;
    return n;
}

static uint64_t presented_of_samples(struct copy *c, const struct fdri_arena_location *l)
{
    struct fdri_arena_samples samples;
    uint64_t n = 0;
    if (!l->samples_off || !fdri_live_external_get(c, l->samples_off, &samples, sizeof samples)) return 0;
    for (int i = 0; i < FDRI_ARENA_SAMPLE_LEVELS; i++) n += samples.level[i].presented;
    return n;
}

/* Reads the levels of block number b into `level`; returns their number. */
static uint32_t get_levels(struct copy *c, uint64_t off, uint32_t b, struct fdri_arena_level *level)
{
    uint32_t count = fdri_arena_levels_of(b);
    return fdri_live_external_get(c, off + sizeof(struct fdri_arena_levels_block), level, count * sizeof *level) ? count
                                                                                                                 : 0;
}

static uint64_t presented_of(struct copy *c, const struct fdri_arena_location *l)
{
    struct fdri_arena_level level[FDRI_ARENA_LEVELS_LARGE], outside;
    uint64_t n = l->presented_overflow + presented_of_samples(c, l);
    if (fdri_live_external_get(c, l->level0_off, &outside, sizeof outside)) n += presented_of_level(c, &outside);
    for (uint32_t b = 0; b < l->level_blocks && !c->error; b++) {
        uint32_t count = get_levels(c, l->levels_off[b], b, level);
        for (uint32_t i = 0; i < count; i++) n += presented_of_level(c, &level[i]);
    }
    return n;
}

static uint64_t filtered_of(struct copy *c, const struct fdri_arena_location *l)
{
    struct fdri_arena_level level[FDRI_ARENA_LEVELS_LARGE], outside;
    uint64_t n = 0;
    if (fdri_live_external_get(c, l->level0_off, &outside, sizeof outside)) n += filtered_of_level(c, &outside);
    for (uint32_t b = 0; b < l->level_blocks && !c->error; b++) {
        uint32_t count = get_levels(c, l->levels_off[b], b, level);
        for (uint32_t i = 0; i < count; i++) n += filtered_of_level(c, &level[i]);
    }
    return n;
}

/* The number of events completed. The open calls are read after the accounts, so their number is never too small. */
static uint64_t completed_of(struct copy *c, uint64_t off, const struct fdri_arena_location *l)
{
    uint64_t presented = presented_of(c, l);
    struct {
        uint32_t depth, overflow;
    } open = {0, 0};
    fdri_live_external_get(c, off + offsetof(struct fdri_arena_location, depth), &open, sizeof open);
    uint64_t closed = (uint64_t)open.depth + open.overflow + 1; /* one event may be in progress */
    return presented > closed ? presented - closed : 0;
}
static_assert(offsetof(struct fdri_arena_location, overflow) == offsetof(struct fdri_arena_location, depth) + 4,
              "read together");

/* True for a location without a thread, or one added during the copy, which the copy has half of at most. */
static bool is_free(const struct copy *c, const struct fdri_arena_location *l)
{
    return (l->flags & FDRI_ARENA_LOCATION_FREE) || l->id >= c->super.location_count;
}

void fdri_live_external_note_bounds(struct copy *c)
{
    struct fdri_arena_location l;
    c->tail.head = (struct fdri_arena_tail){.magic = FDRI_ARENA_TAIL_MAGIC};
    uint64_t off = c->super.location_first;
    for (; off && c->tail.head.count < FDRI_ARENA_TAIL_ENTRIES && get_location(c, off, &l); off = l.next) {
        if (is_free(c, &l)) continue;
        uint32_t i = c->tail.head.count++;
        c->location_off[i] = off;
        c->stacks[i].level_blocks = l.level_blocks;
        c->stacks[i].rows_table = l.rows_table_off;
        c->stacks[i].slabs = l.slabs;
        c->stacks[i].presented = l.flags & FDRI_ARENA_LOCATION_LIVE ? UINT64_MAX : presented_of(c, &l);
        c->stacks[i].fold_from = l.fold_from;
        c->stacks[i].filtered = l.flags & FDRI_ARENA_LOCATION_REWINDS ? filtered_of(c, &l) : 0;
        c->tail.entry[i] = (struct fdri_arena_tail_entry){
            .location = l.id, .under_way = l.busy != 0, .completed = completed_of(c, off, &l)};
    }
}

/* ---- new since the copy began ---- */

/* True if the location belongs to another thread by now, or is being given away. Then the copy has pieces of both,
 * which cannot be prevented from another process. An ended thread may have begun long ago to give its memory back. It
 * remains usable until its accounts move to [ended]: the flag MOVING shows that in progress, and the remaining accounts
 * show it done. */
static bool was_folded(struct copy *c, uint32_t i, const struct fdri_arena_location *l)
{
    if (l->id != c->tail.entry[i].location || l->flags & FDRI_ARENA_LOCATION_FREE) return true;
    if (!(l->flags & FDRI_ARENA_LOCATION_FOLDING)) return false;
    if (l->flags & FDRI_ARENA_LOCATION_MOVING) return true;
    return l->fold_from != c->stacks[i].fold_from || presented_of(c, l) != c->stacks[i].presented;
}

/* Copies blocks of levels added during the copy. The copy's location may already name them, but their places were
 * copied earlier. */
static void copy_new_levels(struct copy *c, uint64_t off, const struct fdri_arena_location *l, uint32_t *known)
{
    uint8_t block[sizeof(struct fdri_arena_levels_block) + FDRI_ARENA_LEVELS_LARGE * sizeof(struct fdri_arena_level)];
    uint32_t before = *known;
    if (l->level_blocks <= before) return;
    *known = l->level_blocks;
    for (uint32_t b = before; b < l->level_blocks; b++) {
        uint32_t bytes = fdri_arena_levels_bytes(fdri_arena_levels_of(b));
        if (fdri_live_external_get(c, l->levels_off[b], block, bytes) &&
            fdri_live_external_is(l->levels_off[b], (const void *)block, FDRI_ARENA_META_LEVELS, l->id))
            fdri_live_external_put(c, l->levels_off[b], block, bytes);
    }
    fdri_live_external_put(c, off + offsetof(struct fdri_arena_location, levels_off), l->levels_off,
                           sizeof l->levels_off);
    fdri_live_external_put(c, off + offsetof(struct fdri_arena_location, level_blocks), &l->level_blocks,
                           sizeof l->level_blocks);
}

/* Erases the magic of a bin that the copy has at `at` if it extends beyond `until`. */
static void hide_bin(struct copy *c, uint64_t at, uint64_t until)
{
    static const uint32_t none = 0;
    struct fdri_arena_bin b;
    bool is = pread(c->fd, &b, sizeof b, (off_t)at) == sizeof b && b.magic == FDRI_ARENA_BIN_MAGIC && b.size_log2 < 32;
    if (is && at + (1ull << b.size_log2) > until)
        fdri_live_external_put(c, at + offsetof(struct fdri_arena_bin, magic), &none, sizeof none);
}

static void hide_bins(struct copy *c, uint64_t off, uint64_t bytes)
{
    uint64_t bins_off = c->super.bins_off;
    for (uint64_t size = bytes * 2; bytes && size <= c->super.bin_bytes; size *= 2)
        if ((off - bins_off) % size) hide_bin(c, off - (off - bins_off) % size, off);
    for (uint64_t at = off + FDRI_ARENA_BIN_MIN_BYTES; at < off + bytes; at += FDRI_ARENA_BIN_MIN_BYTES)
        hide_bin(c, at, at);
}

/* Copies memory that became accounts during the copy. */
static void copy_new_slabs(struct copy *c, const struct fdri_arena_location *l, uint32_t *known)
{
    struct fdri_arena_slab s;
    uint64_t left = c->bytes;
    for (uint64_t off = l->slabs; off && off != *known; off = s.next) {
        if (!fdri_live_external_get(c, off, &s, sizeof s) ||
            !fdri_live_external_is(off, &s.head, FDRI_ARENA_META_SLAB, l->id))
            return;
        if (s.head.bytes < sizeof s || s.head.bytes > left) return;
        left -= s.head.bytes;
        for (uint64_t at = 0, n; at < s.head.bytes; at += n) {
            n = fdri_bits_min(s.head.bytes - at, BATCH);
            if (fdri_live_external_get(c, off + at, c->first, n)) fdri_live_external_put(c, off + at, c->first, n);
        }
        if (s.in_bins && off >= c->super.bins_off) hide_bins(c, off, s.head.bytes);
    }
    *known = l->slabs;
}

/* ---- stacks ---- */

static uint32_t read_frames(struct copy *c, const struct fdri_arena_location *l, uint32_t depth,
                            struct fdri_arena_level *frames)
{
    uint32_t d = 0;
    while (d < depth) {
        uint32_t n = (uint32_t)fdri_bits_min(depth - d, fdri_arena_levels_of(fdri_arena_level_block(d + 1)));
        if (!fdri_live_external_get(c, level_off(l, d + 1), frames + d, n * sizeof *frames)) break;
        d += n;
    }
    return d;
}

static bool same_frame(const struct fdri_arena_level *a, const struct fdri_arena_level *b)
{
    return a->enter_tick == b->enter_tick && a->region == b->region && a->flags == b->flags && a->address == b->address;
}

static bool keep_frames(struct copy *c, uint32_t count)
{
    if (!count) return true; /* the arrays may not be allocated yet */
    if (c->kept_count + count > c->kept_room) {
        size_t room = (c->kept_count + count) * 2;
        void *grown = realloc(c->kept_frames, room * sizeof *c->kept_frames);
        if (!grown) {
            c->error = -ENOMEM;
            return false;
        }
        c->kept_frames = grown;
        c->kept_room = room;
    }
    memcpy(c->kept_frames + c->kept_count, c->frames, count * sizeof *c->frames);
    c->kept_count += count;
    return true;
}

/* Reads the open calls twice; believes the longest prefix equal in both readings. */
static void read_stack(struct copy *c, uint32_t i)
{
    struct fdri_arena_location l;
    struct kept_stack *s = &c->stacks[i];
    uint64_t off = c->location_off[i];
    uint32_t depth = 0, again = 0, believed = 0;
    if (!GET_FIELD(c, off, struct fdri_arena_location, last_tick, &c->tail.entry[i].cut_tick)) return;
    if (!GET_FIELD(c, off, struct fdri_arena_location, depth, &depth) || !get_location(c, off, &l)) return;
    if (depth > fdri_arena_levels_in(l.level_blocks) || depth > STACK_MAX) depth = 0;
    depth = read_frames(c, &l, depth, c->frames);
    uint32_t there = read_frames(c, &l, depth, c->frames_again);
    GET_FIELD(c, off, struct fdri_arena_location, depth, &again);
    if (again < there) there = again;
    while (believed < there && same_frame(&c->frames[believed], &c->frames_again[believed])) believed++;
    s->location_off = off;
    s->trusted_levels = believed;
    s->first = c->kept_count;
    memcpy(s->levels_off, l.levels_off, sizeof s->levels_off);
    if (!keep_frames(c, believed)) s->trusted_levels = 0;
}

void fdri_live_external_read_stacks(struct copy *c)
{
    for (uint32_t i = 0; i < c->tail.head.count && !c->error; i++) read_stack(c, i);
}

/* New levels come first: the believed open calls are then written over them, and not the reverse. */
void fdri_live_external_write_stacks(struct copy *c)
{
    struct fdri_arena_location l;
    for (uint32_t i = 0; i < c->tail.head.count && !c->error; i++) {
        struct kept_stack *s = &c->stacks[i];
        if (!s->location_off) continue;
        /* its levels may belong to others */
        if (!get_location(c, s->location_off, &l) || was_folded(c, i, &l)) continue;
        copy_new_slabs(c, &l, &s->slabs);
        copy_new_levels(c, s->location_off, &l, &s->level_blocks);
        memcpy(l.levels_off, s->levels_off, sizeof l.levels_off);
        for (uint32_t d = 1; d <= s->trusted_levels; d++)
            fdri_live_external_put(c, level_off(&l, d), &c->kept_frames[s->first + d - 1], sizeof *c->kept_frames);
        fdri_live_external_put(c, s->location_off + offsetof(struct fdri_arena_location, depth), &s->trusted_levels,
                               sizeof s->trusted_levels);
    }
}

/* ---- partitions, tail ---- */

/* Copies the list of partitions from `first` on of location number i. Returns the records that rewinds removed and have
 * not yet counted as filtered. */
static uint64_t copy_parts(struct copy *c, uint32_t i, uint32_t first)
{
    uint64_t location_off = c->location_off[i];
    struct fdri_arena_part part;
    uint64_t floor = 0, most = c->bytes / sizeof part, forgets = 0;
    fdri_live_external_put(c, location_off + offsetof(struct fdri_arena_location, parts_first), &first, sizeof first);
    for (uint64_t off = first; off && most-- && fdri_live_external_get(c, off, &part, sizeof part); off = part.next) {
        if (!fdri_live_external_is(off, &part.head, FDRI_ARENA_META_PART, c->tail.entry[i].location)) break;
        /* again: it must not be older than the fields before it */
        GET_FIELD(c, off, struct fdri_arena_part, list_head, &part.list_head);
        GET_FIELD(c, off, struct fdri_arena_part, rewind_records, &part.rewind_records); /* again */
        fdri_live_external_put(c, off, &part, sizeof part);
        forgets += part.rewind_records;
    }
    if (GET_FIELD(c, location_off, struct fdri_arena_location, floor_tick, &floor))
        fdri_live_external_put(c, location_off + offsetof(struct fdri_arena_location, floor_tick), &floor,
                               sizeof floor);
    return forgets;
}

/* Copies the calls that were open when the location stopped storing. The copy's location may name that block, but its
 * place was copied earlier. The block never changes. */
static void copy_frozen(struct copy *c, uint32_t location, uint32_t off)
{
    struct fdri_arena_frozen f = {0};
    uint8_t part[FDRI_ARENA_META_ALIGN];
    for (uint32_t most = FDRI_ARENA_LEVEL_BLOCKS_MAX; off && most--; off = f.next) {
        if (!fdri_live_external_get(c, off, &f, sizeof f) ||
            !fdri_live_external_is(off, &f.head, FDRI_ARENA_META_FROZEN, location))
            return;
        for (uint64_t end = (uint64_t)off + f.head.bytes, at = off;
             at < end && fdri_live_external_get(c, at, part, sizeof part); at += sizeof part)
            fdri_live_external_put(c, at, part, sizeof part);
    }
}

/* A location that only rewinds counts as having moved. */
static void take_rewound(struct fdri_arena_tail_entry *e, uint64_t records)
{
    e->completed -= fdri_bits_min(e->completed, records);
    e->end_tick += records != 0;
}

static void leave_out_newcomers(struct copy *c)
{
    const uint32_t nobodys = FDRI_ARENA_LOCATION_FREE;
    struct fdri_arena_location l;
    uint64_t most = c->bytes / sizeof l;
    uint32_t i = 0;
    bool all_have_entries = c->tail.head.count < FDRI_ARENA_TAIL_ENTRIES;
    for (uint64_t off = c->super.location_first; off && most-- && get_location(c, off, &l); off = l.next) {
        bool noted = i < c->tail.head.count && c->location_off[i] == off;
        i += noted;
        if (is_free(c, &l) || (!noted && all_have_entries))
            fdri_live_external_put(c, off + offsetof(struct fdri_arena_location, flags), &nobodys, sizeof nobodys);
    }
}

static void leave_out(struct copy *c, uint32_t i)
{
    const uint32_t nobodys = FDRI_ARENA_LOCATION_FREE;
    fdri_live_external_put(c, c->location_off[i] + offsetof(struct fdri_arena_location, flags), &nobodys,
                           sizeof nobodys);
    c->tail.entry[i] = (struct fdri_arena_tail_entry){.location = UINT32_MAX};
}

/* Stores the offset of the old table of totals: a newer one may lie where the copy had already been. */
static void name_old_table(struct copy *c, uint64_t off, const struct fdri_arena_location *l, uint32_t before)
{
    if (l->rows_table_off == before) return;
    fdri_live_external_put(c, off + offsetof(struct fdri_arena_location, rows_table_off), &before, sizeof before);
}

/* Copies the time and clock flag of the location's first event, behind all copied times of it; and the flag for
 * rewinds. */
static void copy_beginning(struct copy *c, uint64_t off, const struct fdri_arena_location *l)
{
    uint64_t flags_at = off + offsetof(struct fdri_arena_location, flags);
    uint32_t since = l->flags & (FDRI_ARENA_LOCATION_NS | FDRI_ARENA_LOCATION_REWINDS), flags;
    fdri_live_external_put(c, off + offsetof(struct fdri_arena_location, start_tick), &l->start_tick,
                           sizeof l->start_tick);
    if (!since || pread(c->fd, &flags, sizeof flags, (off_t)flags_at) != sizeof flags || !(since & ~flags)) return;
    flags |= since;
    fdri_live_external_put(c, flags_at, &flags, sizeof flags);
}

/* Copies all blocks added during the copy, before the first list head is read. */
static void copy_new_blocks(struct copy *c)
{
    struct fdri_arena_location l;
    for (uint32_t i = 0; i < c->tail.head.count && !c->error; i++) {
        uint64_t off = c->location_off[i];
        uint32_t *parts = &c->stacks[i].parts_first;
        bool there = get_location(c, off, &l) && !was_folded(c, i, &l);
        if (there) copy_new_slabs(c, &l, &c->stacks[i].slabs);
        if (there && GET_FIELD(c, off, struct fdri_arena_location, parts_first, parts)) copy_parts(c, i, *parts);
        if (!there || !get_location(c, off, &l) || was_folded(c, i, &l)) {
            leave_out(c, i);
            continue;
        }
        if (c->mode != FDRI_LIVE_EXTERNAL_HEADERS) fdri_live_external_copy_epochs(c, &l);
        copy_new_levels(c, off, &l, &c->stacks[i].level_blocks);
        copy_frozen(c, l.id, l.frozen_off);
        name_old_table(c, off, &l, c->stacks[i].rows_table);
        uint32_t slabs = c->stacks[i].slabs;
        if (get_location(c, off, &l) && !was_folded(c, i, &l)) copy_new_slabs(c, &l, &c->stacks[i].slabs);
        if (slabs != c->stacks[i].slabs && c->mode != FDRI_LIVE_EXTERNAL_HEADERS) fdri_live_external_copy_epochs(c, &l);
    }
}

static void finish_location(struct copy *c, uint32_t i)
{
    struct fdri_arena_location l;
    struct fdri_arena_tail_entry *e = &c->tail.entry[i];
    uint64_t off = c->location_off[i], busy = 0;
    uint64_t forgets = copy_parts(c, i, c->stacks[i].parts_first);
    if (!get_location(c, off, &l) || was_folded(c, i, &l)) {
        leave_out(c, i);
        return;
    }
    copy_beginning(c, off, &l);
    e->presented = presented_of(c, &l);
    GET_FIELD(c, off, struct fdri_arena_location, busy, &busy);
    e->under_way |= busy != 0;
    GET_FIELD(c, off, struct fdri_arena_location, last_tick, &e->end_tick);
    e->end_tick += l.depth != c->stacks[i].trusted_levels; /* calls ended within that tick */
    if (l.flags & FDRI_ARENA_LOCATION_REWINDS) take_rewound(e, forgets + filtered_of(c, &l) - c->stacks[i].filtered);
}

void fdri_live_external_finish_locations(struct copy *c)
{
    struct fdri_arena_location l;
    leave_out_newcomers(c);
    copy_new_blocks(c);
    for (uint32_t i = 0; i < c->tail.head.count && !c->error; i++)
        if (c->tail.entry[i].location != UINT32_MAX) finish_location(c, i);
    /* its memory may be in the copy as another location's */
    for (uint32_t i = 0; i < c->tail.head.count && !c->error; i++)
        if (c->tail.entry[i].location != UINT32_MAX && get_location(c, c->location_off[i], &l) && was_folded(c, i, &l))
            leave_out(c, i);
    fdri_live_external_put(c, c->bytes, &c->tail, fdri_live_external_tail_bytes(c));
}
