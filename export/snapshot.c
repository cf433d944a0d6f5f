/* SPDX-License-Identifier: MIT */
/* Copies a live arena without stopping a writer. The order makes the copy consistent:
 *
 *   1 meta        accounts "before", definitions, totals, stacks
 *   2 stacks      each open stack once more, twice; the longest prefix equal in both is what stands in the file
 *   3 bins        payload up to the commit word read first; a bin whose generation moved meanwhile is dropped
 *   4 partitions  again: their list heads are now newer than the bins, so no list names a bin that was taken away
 *   5 tail        accounts "after", and the tick at which each stack was copied
 *   6 superblock  last: a file without it is none
 *
 * Bins appended after their place was copied are missing at the newest end of a list; records newer than the tail's
 * tick may lack a parent; the reader knows both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "export/export.h"

enum { BATCH_BYTES = 256 * 1024, STACK_MAX = FDR_LEVELS_PER_BLOCK * FDR_LEVEL_BLOCKS_MAX };

static uint8_t batch[BATCH_BYTES] __attribute__((aligned(64))); /* one snapshot at a time */
static struct fdr_level frames[STACK_MAX];

static void *at(uint32_t off) { return fdri_view.base + off; }
static struct fdr_superblock *super(void) { return (void *)fdri_view.base; }

static int put(int fd, const void *bytes, uint64_t count, uint64_t off)
{
    const uint8_t *p = bytes;
    while (count) {
        ssize_t n = pwrite(fd, p, fdr_min(count, 1u << 20), (off_t)off);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n ? -errno : -EIO;
        p += n;
        off += (uint64_t)n;
        count -= (uint64_t)n;
    }
    return 0;
}

/* ---- 1: meta, until no block was added meanwhile ---- */

static int copy_meta(int fd, uint64_t *virgin)
{
    uint64_t end = fdri_view.bytes;
    for (int i = 0; i < 4; i++) {
        *virgin = fdr_load_acquire(&super()->virgin); /* A:virgin - pairs with L:virgin */
        uint64_t low = (*virgin >> 32) * FDR_META_ALIGN;
        if (low >= end) return 0;
        int e = put(fd, fdri_view.base + low, end - low, low);
        if (e) return e;
        end = low;
    }
    return 0;
}

/* ---- 2: stacks ---- */

static struct fdr_level *level_of(const struct fdr_location *l, uint32_t depth)
{
    struct fdr_levels_block *b = at(l->levels_off[(depth - 1) / FDR_LEVELS_PER_BLOCK]);
    return &b->level[(depth - 1) % FDR_LEVELS_PER_BLOCK];
}

static bool same_frame(const struct fdr_level *a, const struct fdr_level *b)
{
    return a->enter_tick == b->enter_tick && a->region == b->region && a->flags == b->flags && a->address == b->address;
}

static int copy_stack(int fd, const struct fdr_location *l, uint64_t *cut)
{
    uint32_t believed = 0;
    *cut = fdr_load_acquire(&l->last_tick); /* A:frame - the tick is read before the depth */
    uint32_t depth = fdr_load_acquire(&l->depth); /* A:frame - pairs with R:frame */
    if (depth > l->level_blocks * FDR_LEVELS_PER_BLOCK || depth > STACK_MAX) depth = 0;
    for (uint32_t d = 1; d <= depth; d++) memcpy(&frames[d - 1], level_of(l, d), sizeof frames[0]);
    fdr_fence_acquire(); /* A:frame - the first reading is over before the second begins */
    uint32_t again = fdr_load_acquire(&l->depth); /* A:frame */
    while (believed < depth && believed < again && same_frame(&frames[believed], level_of(l, believed + 1))) believed++;
    for (uint32_t d = 1; d <= believed; d++) {
        int e = put(fd, &frames[d - 1], sizeof frames[0], (uint64_t)((uint8_t *)level_of(l, d) - fdri_view.base));
        if (e) return e;
    }
    return put(fd, &believed, sizeof believed, (uint64_t)((const uint8_t *)&l->depth - fdri_view.base));
}

/* ---- 3: bins ---- */

/* Copies one bin or piece into `to`; false when it is nobody's or was taken away meanwhile. */
static bool copy_bin(const uint8_t *from, uint8_t *to, uint32_t bytes, uint64_t *dropped)
{
    const struct fdr_bin *b = (const void *)from;
    uint32_t generation = fdr_load_acquire(&b->generation); /* G:check - pairs with G:take and G:give */
    if (!(generation & 1)) return false;
    uint64_t commit = fdr_load_acquire(&b->commit);         /* A:commit - pairs with R:commit */
    uint32_t used = FDR_BIN_HEADER + (FDR_COMMIT_BITS(commit) + 7) / 8;
    if (used > bytes) used = bytes;
    memcpy(to, from, used);
    fdr_fence_acquire(); /* G:check */
    if (fdr_load_relaxed(&b->generation) != generation) {   /* G:check - the copy was read before this */
        memset(to, 0, used);
        ++*dropped;
        return false;
    }
    struct fdr_bin *copy = (void *)to;
    copy->commit = commit;
    copy->generation = generation;
    return true;
}

/* One slot of bin_bytes, whole or in pieces. Returns whether anything was copied. */
static bool copy_slot(const uint8_t *from, uint8_t *to, uint32_t bytes, uint64_t *dropped)
{
    bool any = false;
    for (uint32_t at_ = 0; at_ < bytes;) {
        const struct fdr_bin *b = (const void *)(from + at_);
        uint32_t log2 = b->size_log2, size = log2 >= 9 && log2 <= 16 ? 1u << log2 : FDR_BIN_MIN_BYTES;
        const struct fdr_meta_head *m = (const void *)(from + at_);
        if (m->magic == FDR_META_MAGIC && fdr_is_pow2(m->bytes) && m->bytes >= FDR_BIN_MIN_BYTES && m->bytes <= bytes - at_) {
            memcpy(to + at_, m, m->bytes); /* a meta block that found no room at the meta end */
            at_ += m->bytes;
            any = true;
            continue;
        }
        bool good = b->magic == FDR_BIN_MAGIC && size <= bytes - at_ && !(at_ & (size - 1));
        if (!good) size = FDR_BIN_MIN_BYTES;
        if (good && copy_bin(from + at_, to + at_, size, dropped)) any = true;
        at_ += size;
    }
    return any;
}

static int copy_bins(int fd, uint64_t virgin, uint64_t *dropped)
{
    uint32_t bin_bytes = super()->bin_bytes, count = (uint32_t)virgin;
    uint64_t off = super()->bins_off, end = off + (uint64_t)count * bin_bytes;
    while (off < end) {
        uint64_t n = fdr_min(end - off, BATCH_BYTES);
        bool any = false;
        memset(batch, 0, n);
        for (uint64_t i = 0; i < n; i += bin_bytes)
            if (copy_slot(fdri_view.base + off + i, batch + i, bin_bytes, dropped)) any = true;
        int e = any ? put(fd, batch, n, off) : 0;
        if (e) return e;
        off += n;
    }
    return 0;
}

/* ---- 4: partitions and floors ---- */

static int copy_parts(int fd, const struct fdr_location *l)
{
    for (uint32_t off = fdr_load_acquire(&l->parts_first); off;) { /* A:part - pairs with R:part */
        struct fdr_part copy;
        memcpy(&copy, at(off), sizeof copy);
        copy.list_head = fdr_load_acquire(&((struct fdr_part *)at(off))->list_head); /* A:list - pairs with R:link */
        int e = put(fd, &copy, sizeof copy, off);
        if (e) return e;
        off = copy.next;
    }
    uint64_t floor[1] = {l->floor_tick};
    return put(fd, floor, sizeof floor, (uint64_t)((const uint8_t *)&l->floor_tick - fdri_view.base));
}

/* ---- 5: tail ---- */

static uint64_t presented_of_level(const struct fdr_level *v)
{
    uint64_t n = fdr_load_relaxed(&v->presented);
    if (!v->points_off) return n;
    const struct fdr_level_points *points = at(v->points_off);
    for (int c = 0; c < FDR_CLASS_COUNT; c++) n += fdr_load_relaxed(&points->by_class[c].presented);
    return n;
}

static uint64_t presented_of(const struct fdr_location *l)
{
    uint64_t n = l->presented_overflow + presented_of_level(at(l->level0_off));
    for (uint32_t d = 1; d <= l->level_blocks * FDR_LEVELS_PER_BLOCK; d++) n += presented_of_level(level_of(l, d));
    return n;
}

/* ---- all of it ---- */

enum { TAIL_ENTRIES = (FDR_TAIL_MAX_BYTES - sizeof(struct fdr_tail)) / sizeof(struct fdr_tail_entry) };
static struct { struct fdr_tail head; struct fdr_tail_entry entry[TAIL_ENTRIES]; } tail;

static int copy_locations(int fd, uint32_t first, uint64_t low)
{
    tail.head = (struct fdr_tail){.magic = FDR_TAIL_MAGIC};
    for (uint32_t off = first; off >= low && tail.head.count < TAIL_ENTRIES;) {
        const struct fdr_location *l = at(off);
        struct fdr_tail_entry *e = &tail.entry[tail.head.count++];
        e->location = l->id;
        int error = copy_stack(fd, l, &e->cut_tick);
        if (error) return error;
        off = l->next;
    }
    return 0;
}

static int finish_locations(int fd, uint32_t first, uint64_t low)
{
    uint32_t i = 0;
    for (uint32_t off = first; off >= low; i++) {
        const struct fdr_location *l = at(off);
        int e = copy_parts(fd, l);
        if (e) return e;
        if (i < tail.head.count) tail.entry[i].presented = presented_of(l);
        off = l->next;
    }
    return put(fd, &tail, sizeof tail.head + tail.head.count * sizeof tail.entry[0], fdri_view.bytes);
}

static int copy_superblock(int fd, const char *reason, uint64_t number, uint64_t virgin, uint32_t first, uint64_t dropped)
{
    memset(batch, 0, FDR_SUPERBLOCK_BYTES);
    struct fdr_superblock *s = (void *)batch;
    memcpy(s, super(), sizeof *s);
    s->virgin = virgin;
    s->location_first = first;
    s->snapshot_number = number;
    s->dropped_bins = dropped;
    memset(s->reason, 0, sizeof s->reason);
    strncpy(s->reason, reason ? reason : "", sizeof s->reason - 1);
    return put(fd, batch, FDR_SUPERBLOCK_BYTES, 0);
}

int fdri_copy_arena(int fd, const char *reason, uint64_t number)
{
    uint64_t virgin, dropped = 0;
    struct fdr_clock_reading now = fdr_clock_read(fdri_view.ticks);
    super()->clock_last = (struct fdr_clock_pair){now.tick, now.monotonic_ns, now.realtime_ns, 0};
    uint32_t first = fdr_load_acquire(&super()->location_first); /* A:location - pairs with R:location */
    int e = copy_meta(fd, &virgin);
    uint64_t low = (virgin >> 32) * FDR_META_ALIGN;
    if (!e) e = copy_locations(fd, first, low);
    if (!e) e = copy_bins(fd, virgin, &dropped);
    if (!e) e = finish_locations(fd, first, low);
    if (!e) e = copy_superblock(fd, reason, number, virgin, first, dropped);
    return e;
}
