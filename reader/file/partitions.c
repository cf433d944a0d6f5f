/* SPDX-License-Identifier: MIT */
/* Finds the partitions of a location: along their chain; if that is broken, from all partition blocks; if those are
 * missing, from the bins. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* There is one partition of each class, depth and band, and perhaps an older, pinned one. The pinned one sorts
 * first. */
#define IDENTITIES (FDRI_ARENA_CLASS_COUNT * (FDRI_FILE_DEPTH_MAX + 1u) * FDRI_ARENA_BANDS * 2)
struct seen {
    uint8_t bit[(IDENTITIES + 7) / 8];
};

static uint32_t identity(uint32_t class_, uint32_t depth, uint32_t band, bool pinned)
{
    return ((class_ * (FDRI_FILE_DEPTH_MAX + 1u) + depth) * FDRI_ARENA_BANDS + band) * 2 + !pinned;
}

/* Returns true the first time. */
static bool first_time(struct seen *s, uint32_t class_, uint32_t depth, uint32_t band, bool pinned)
{
    uint32_t i = identity(class_, depth, band, pinned);
    uint8_t mask = (uint8_t)(1u << (i & 7));
    bool fresh = !(s->bit[i / 8] & mask);
    s->bit[i / 8] |= mask;
    return fresh;
}

static bool is_seen(const struct seen *s, const struct fdri_file_found *b, bool pinned)
{
    uint32_t i = identity(b->class_, b->depth, b->band, pinned);
    return s->bit[i / 8] >> (i & 7) & 1;
}

static struct fdri_file_part *new_part(struct fdri_file_location *l, uint32_t class_, uint32_t depth, uint32_t band)
{
    if (!fdri_file_grow(&l->part, l->part_count, &l->part_room, sizeof *l->part)) return NULL;
    struct fdri_file_part *p = &l->part[l->part_count++];
    *p = (struct fdri_file_part){.depth = (uint16_t)depth, .class_ = (uint8_t)class_, .band = (uint8_t)band};
    return p;
}

/* For a damaged block. If its oldest and its open bin name the same partition, and the oldest has the right seq, the
 * bins are right. */
static void believe_bins(const struct fdr_file *f, const struct fdri_file_location *l, struct fdri_arena_part *raw)
{
    struct fdri_arena_bin h, open;
    if (!fdri_file_bin_header(f, (uint32_t)raw->list_head, &h) || h.location != l->id ||
        h.seq != (uint32_t)(raw->list_head >> 32) || !fdri_file_bin_header(f, raw->open_off, &open) ||
        open.location != l->id || open.class_ != h.class_ || open.depth != h.depth || open.band != h.band)
        return;
    raw->class_ = h.class_;
    raw->depth = h.depth;
    raw->band = h.band;
}

/* Reads the partition block at `off`. Returns false if it is none of this location's. */
static bool get_block(const struct fdr_file *f, const struct fdri_file_location *l, uint64_t off,
                      struct fdri_arena_part *raw)
{
    if (!fdri_file_meta_at(f, off, FDRI_ARENA_META_PART, l->id, sizeof *raw)) return false;
    memcpy(raw, f->bytes + off, sizeof *raw);
    if (fdri_file_is_suspect(f, off, sizeof *raw)) believe_bins(f, l, raw);
    return raw->class_ < FDRI_ARENA_CLASS_COUNT && raw->band < FDRI_ARENA_BANDS && raw->depth <= FDRI_FILE_DEPTH_MAX &&
           (raw->class_ != FDRI_ARENA_CLASS_REGION || raw->depth > 0);
}

/* Is this a damaged block that leads to no bin? Then nothing confirms which partition it is of. Such blocks come
 * after all others, so that they take neither a better block's place nor its bins. */
static bool is_doubtful(const struct fdr_file *f, const struct fdri_file_location *l, uint64_t off,
                        const struct fdri_arena_part *raw)
{
    struct fdri_arena_bin h;
    uint32_t head = (uint32_t)raw->list_head;
    bool leads = head && fdri_file_bin_header(f, head, &h) && h.location == l->id && h.class_ == raw->class_ &&
                 h.depth == raw->depth && h.band == raw->band;
    return !leads && fdri_file_is_suspect(f, off, sizeof *raw);
}

/* Adds the block's partition. Returns false if there is one of its identity already. */
static bool take_block(struct fdr_file *f, struct fdri_file_location *l, struct seen *s, uint64_t off,
                       const struct fdri_arena_part *raw)
{
    if (!first_time(s, raw->class_, raw->depth, raw->band, raw->flags & FDRI_ARENA_PART_PINNED)) return false;
    struct fdri_file_part *p = new_part(l, raw->class_, raw->depth, raw->band);
    if (!p) return false;
    p->off = off;
    p->pinned = raw->flags & FDRI_ARENA_PART_PINNED;
    p->pin_kept_parents = raw->pin_flags & FDRI_ARENA_PINNED_PARENTS;
    p->pin_tick = raw->pin_tick;
    p->rewind_records = raw->rewind_records;
    fdri_file_list_bins(f, l, p, raw);
    return true;
}

/* Follows the chain for the doubtful blocks only, or for all others only. */
static bool read_chain(struct fdr_file *f, struct fdri_file_location *l, struct seen *s, bool doubtful)
{
    struct fdri_arena_part raw;
    uint64_t mark = 0; /* it moves on after 1, 2, 4, ... blocks: a chain that comes back to it has no end */
    uint32_t n = 0;
    for (uint64_t off = l->raw.parts_first; off; off = raw.next) {
        if (off == mark || n++ == IDENTITIES || !get_block(f, l, off, &raw)) return false;
        if (fdri_bits_is_pow2(n)) mark = off;
        if (is_doubtful(f, l, off, &raw) != doubtful) continue;
        if (!take_block(f, l, s, off, &raw) && !doubtful) return false;
    }
    return true;
}

/* Does m[i] begin inside of the block before it, which is the next one in the list? Bytes written to a wrong place
 * may look like a block there. Only one of the two can be right. */
static bool is_inside(const struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_file_meta *m,
                      size_t i, size_t count)
{
    struct fdri_arena_part raw;
    return i + 1 < count && m[i].off - m[i + 1].off < sizeof raw && get_block(f, l, m[i + 1].off, &raw);
}

static size_t by_scan(struct fdr_file *f, struct fdri_file_location *l, struct seen *s)
{
    struct fdri_arena_part raw;
    size_t before = l->part_count, count;
    const struct fdri_file_meta *m = fdri_file_meta_scan(f, FDRI_ARENA_META_PART, l->id, &count);
    for (int doubtful = 0; doubtful < 2; doubtful++)
        for (size_t i = 0; i < count; i++)
            if (!is_inside(f, l, m, i, count) && get_block(f, l, m[i].off, &raw) &&
                is_doubtful(f, l, m[i].off, &raw) == doubtful)
                take_block(f, l, s, m[i].off, &raw);
    return l->part_count - before;
}

/* The bins that the scan found for this location, *count of them. */
static struct fdri_file_found **scanned_bins_of(struct fdr_file *f, const struct fdri_file_location *l, size_t *count)
{
    struct fdri_file_found **all = fdri_file_by_identity(f);
    size_t low = 0, high = all ? f->found_count : 0;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (all[i]->location < l->id) low = i + 1;
        else high = i;
    }
    size_t end = low;
    while (all && end < f->found_count && all[end]->location == l->id) end++;
    *count = end - low;
    return all ? all + low : NULL;
}

/* Does a bin of this location belong to a partition without a block? */
static bool bins_without_partition(struct fdr_file *f, const struct fdri_file_location *l, const struct seen *s)
{
    size_t count;
    struct fdri_file_found **b = scanned_bins_of(f, l, &count);
    for (size_t i = 0; i < count; i++)
        if (!b[i]->listed && !is_seen(s, b[i], false) && !is_seen(s, b[i], true)) return true;
    return false;
}

static bool has_pinned(const struct fdri_file_location *l)
{
    for (size_t i = 0; i < l->part_count; i++)
        if (l->part[i].pinned) return true;
    return false;
}

/* Makes partitions from bins that no list holds. If one of the two partitions of an identity exists, the bin belongs
 * to the other one. */
static void partitions_from_bins(struct fdr_file *f, struct fdri_file_location *l, struct seen *s)
{
    size_t count;
    struct fdri_file_found **b = scanned_bins_of(f, l, &count);
    bool twins = has_pinned(l);
    for (size_t i = 0; i < count; i++) {
        bool pinned = is_seen(s, b[i], false);
        if (b[i]->listed || (pinned && !twins)) continue;
        if (!first_time(s, b[i]->class_, b[i]->depth, b[i]->band, pinned)) continue;
        struct fdri_file_part *p = new_part(l, b[i]->class_, b[i]->depth, b[i]->band);
        if (!p) return;
        p->pinned = pinned;
        fdri_file_list_bins(f, l, p, NULL);
    }
}

static int compare_place(const void *x, const void *y)
{
    const struct fdri_file_part *a = x, *b = y;
    uint32_t i = identity(a->class_, a->depth, a->band, a->pinned),
             j = identity(b->class_, b->depth, b->band, b->pinned);
    return i < j ? -1 : i > j;
}

/* A location without its block has lost the flag that it has readings. Its partitions show it: user events at
 * consecutive depths, the deepest near the greatest depth of readings, and no call at all. A program's own events
 * lie so deep only inside of calls, and some of these would be stored. */
static void tell_readings(struct fdr_file *f, struct fdri_file_location *l)
{
    enum { NEAR = 8 };
    uint32_t depths = 0, deepest = 0, first = 0;
    for (size_t i = 0; i < l->part_count; i++) { /* in order of depth */
        const struct fdri_file_part *p = &l->part[i];
        if (p->class_ == FDRI_ARENA_CLASS_REGION) return;
        if (p->class_ != FDRI_ARENA_CLASS_USER || p->depth == deepest) continue;
        deepest = p->depth;
        if (!depths++) first = deepest;
    }
    bool readings = depths && deepest <= FDRI_ARENA_READING_DEPTHS && deepest > FDRI_ARENA_READING_DEPTHS - NEAR;
    if (!readings || depths != deepest - first + 1) return;
    l->raw.flags |= FDRI_ARENA_LOCATION_READINGS;
    fdri_file_damage(f, "location %u: user events at %u depths without any call: taken as readings outside calls",
                     l->id, depths);
}

void fdri_file_parts(struct fdr_file *f, struct fdri_file_location *l)
{
    struct seen *s = fdri_file_calloc(1, sizeof *s);
    if (!s) return;
    bool whole = l->off && read_chain(f, l, s, false) && read_chain(f, l, s, true);
    if (!whole) {
        l->parts_lost = true;
        if (l->off) fdri_file_damage(f, "location %u: the chain of partitions is broken", l->id);
        by_scan(f, l, s);
        partitions_from_bins(f, l, s);
    } else if (!l->moving && bins_without_partition(f, l, s) && by_scan(f, l, s)) {
        fdri_file_damage(f, "location %u: the chain of partitions misses some of them", l->id);
    }
    free(s);
    l->parts_missing = l->parts_lost || l->raw.flags & FDRI_ARENA_LOCATION_PARTS_LOST;
    if (l->part_count) qsort(l->part, l->part_count, sizeof *l->part, compare_place);
    if (!l->off) tell_readings(f, l);
}

uint64_t fdri_file_zeros_from(const struct fdri_file_location *l, uint32_t depth)
{
    uint32_t band = l->raw.flags & FDRI_ARENA_LOCATION_JOINED_ALL ? FDRI_ARENA_BANDS - 1 : 0;
    uint64_t from = 0;
    if (!l->parts_missing) return 0;
    if (!fdri_file_part(l, FDRI_ARENA_CLASS_REGION, depth, band, false)) return UINT64_MAX;
    if (fdri_file_part(l, FDRI_ARENA_CLASS_REGION, depth, band, true)) return 0;
    for (size_t i = 0; i < l->part_count; i++)
        if (l->part[i].pinned) from = fdri_bits_max(from, fdri_bits_min(l->part[i].pin_tick, UINT64_MAX - 1) + 1);
    return from;
}

const struct fdri_file_part *fdri_file_part(const struct fdri_file_location *l, uint32_t class_, uint32_t depth,
                                            uint32_t band, bool pinned)
{
    size_t low = 0, high = l->part_count;
    uint32_t want = identity(class_, depth, band, pinned);
    /* deeper calls are not stored; identity() would name another partition */
    if (depth > FDRI_FILE_DEPTH_MAX) return NULL;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        const struct fdri_file_part *p = &l->part[i];
        uint32_t is = identity(p->class_, p->depth, p->band, p->pinned);
        if (is == want) return p;
        if (is < want) low = i + 1;
        else high = i;
    }
    return NULL;
}
