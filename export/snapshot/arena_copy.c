/* SPDX-License-Identifier: MIT */
/* Copies a live arena without stopping a writer. The order makes the copy consistent:
 *
 *   0 bounds      how many events each location had completed
 *   1 meta        accounts "before", definitions, totals, stacks
 *     notes       of it again: each value as it stood at one moment
 *   2 stacks      each open stack once more, twice; the longest prefix equal in both is what stands in the file
 *   3 bins        all that are handed out by then; payload up to the commit word read first; a bin whose generation
 *                 moved meanwhile is dropped
 *   4 new blocks  of accounts, which may lie where a bin was that the file has
 *     partitions  again, of all locations: their list heads are now newer than all that, so no list names a bin that
 *                 was taken away
 *   5 tail        accounts "after", and the tick at which each stack was copied
 *   6 checks      of what was written, read back (snapshot_checks.c)
 *   7 superblock  last: a file without it is none
 *
 * Bins appended after their place was copied are missing at the newest end of a list; records newer than the tail's
 * tick may lack a parent; the reader knows both. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/racy.h"
#include "export/snapshot/snapshot.h"
#include "export/snapshot/snapshot_parts.h"
#include "format/arena/arena.h"
#include "format/arena/checks.h"

uint8_t fdri_batch[FDRI_BATCH_BYTES] __attribute__((aligned(64)));

static void *at(uint32_t off) { return fdri_view.base + off; }
static struct fdr_superblock *super(void) { return (void *)fdri_view.base; }

int fdri_put(int fd, const void *bytes, uint64_t count, uint64_t off)
{
    const uint8_t *p = bytes;
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && off + count > limit.rlim_cur)
        return -EFBIG; /* else a signal: SIGXFSZ */
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

int fdri_put_live(int fd, const uint8_t *from, uint64_t count, uint64_t off)
{
    int e = 0;
    for (uint64_t n; count && !e; from += n, off += n, count -= n) {
        n = fdr_min(count, FDRI_BATCH_BYTES);
        fdr_copy_racy(fdri_batch, from, n);
        e = fdri_put(fd, fdri_batch, n, off);
    }
    return e;
}

/* ---- 1: meta, until no block was added meanwhile, and the blocks that lie in pieces of bins ---- */

/* Its size is read once: another thread may be writing there. */
FDR_RACY uint32_t fdri_meta_piece(const uint8_t *from, uint32_t room)
{
    const struct fdr_meta_head *m = (const void *)from;
    uint32_t bytes = fdr_load_relaxed(&m->bytes);
    bool good = fdr_load_relaxed(&m->magic) == FDR_META_MAGIC && fdr_is_pow2(bytes) && bytes >= FDR_BIN_MIN_BYTES &&
                bytes <= room;
    return good ? bytes : 0;
}

/* The size that a header says, which must fit its place; 0: it is none. */
FDR_RACY static uint32_t size_of(const uint8_t *from, uint32_t room)
{
    const struct fdr_bin *b = (const void *)from;
    uint32_t log2 = fdr_load_relaxed(&b->size_log2), size = log2 >= 9 && log2 <= 16 ? 1u << log2 : 0;
    uint64_t at_ = (uint64_t)(from - fdri_view.base) - super()->bins_off;
    return b->magic == FDR_BIN_MAGIC && size && size <= room && !(at_ & (size - 1)) ? size : 0;
}

/* In use, and all of its slot: no meta block lies in it. */
FDR_RACY static bool whole_bin(const uint8_t *from, uint32_t bin_bytes)
{
    const struct fdr_bin *b = (const void *)from;
    uint32_t generation = fdr_load_acquire(&b->generation); /* G:check - pairs with G:open: the size is as new */
    return generation & 1 && size_of(from, bin_bytes) == bin_bytes;
}

FDR_RACY uint64_t fdri_next_meta_piece(uint64_t off, uint64_t end, uint32_t *bytes)
{
    uint64_t bins = super()->bins_off;
    uint32_t bin_bytes = super()->bin_bytes, step = FDR_BIN_MIN_BYTES;
    for (; off < end; off += step) {
        const uint8_t *from = fdri_view.base + off;
        uint32_t within = (uint32_t)(off - bins) & (bin_bytes - 1);
        step = !within && whole_bin(from, bin_bytes) ? bin_bytes : FDR_BIN_MIN_BYTES;
        if (step == FDR_BIN_MIN_BYTES && (*bytes = fdri_meta_piece(from, bin_bytes - within))) return off;
    }
    return end;
}

static int copy_meta_pieces(int fd, uint64_t virgin)
{
    uint64_t off = super()->bins_off, end = off + (uint64_t)(uint32_t)virgin * super()->bin_bytes;
    int e = 0;
    for (uint32_t bytes; !e && (off = fdri_next_meta_piece(off, end, &bytes)) < end; off += bytes)
        e = fdri_put_live(fd, fdri_view.base + off, bytes, off);
    return e;
}

static int copy_meta(int fd, uint64_t *virgin)
{
    uint64_t end = fdri_view.bytes;
    for (int i = 0; i < 4; i++) {
        *virgin = fdr_load_acquire(&super()->virgin); /* A:virgin - pairs with L:virgin */
        uint64_t low = (*virgin >> 32) * FDR_META_ALIGN;
        if (low >= end) break;
        int e = fdri_put_live(fd, fdri_view.base + low, end - low, low);
        if (e) return e;
        end = low;
    }
    return copy_meta_pieces(fd, *virgin);
}

/* ---- 3: bins ---- */

/* Copies one bin or piece into `to`; the bytes that were copied, 0 when it is nobody's or was taken away meanwhile.
 * *size is its own, or the least where it has none: read behind the generation like all else, for halves become wholes
 * and wholes halves. Halves lose their generation when they become a whole, so the same may come again: the header's
 * check, which does not, is compared too. */
FDR_RACY static uint32_t copy_bin(const uint8_t *from, uint8_t *to, uint32_t room, uint32_t *size, uint64_t *dropped)
{
    const struct fdr_bin *b = (const void *)from;
    uint32_t generation = fdr_load_acquire(&b->generation); /* G:check - pairs with G:open, G:give and G:take */
    uint32_t bytes = size_of(from, room);
    *size = bytes ? bytes : FDR_BIN_MIN_BYTES;
    if (!bytes || !(generation & 1)) return 0;
    uint32_t check = fdr_load_relaxed(&b->check);
    uint64_t commit = fdr_load_acquire(&b->commit); /* A:commit - pairs with R:commit */
    uint32_t used = (uint32_t)fdr_align_up(FDR_BIN_HEADER + (FDR_COMMIT_BITS(commit) + 7) / 8, 8);
    if (used > bytes) used = bytes;
    fdr_copy_racy(to, from, used);
    fdr_fence_acquire(); /* G:check */
    /* G:check - the copy was read before this */
    if (fdr_load_relaxed(&b->generation) != generation || fdr_load_relaxed(&b->check) != check) {
        ++*dropped;
        *size = FDR_BIN_MIN_BYTES; /* what is there now may be smaller */
        return 0;
    }
    struct fdr_bin *copy = (void *)to;
    copy->commit = commit;
    copy->generation = generation;
    return used;
}

/* What stands in the batch from `*from` up to `to` goes to its place; meta pieces between are not touched. */
static int put_batch(int fd, uint64_t off, uint64_t *from, uint64_t to, bool any)
{
    int e = any && to > *from ? fdri_put(fd, fdri_batch + *from, to - *from, off + *from) : 0;
    *from = to;
    return e;
}

/* The slots of bin_bytes in [off, off + bytes), each whole or in pieces. Empty stretches stay holes. */
FDR_RACY static int copy_slots(int fd, uint64_t off, uint64_t bytes, uint32_t bin_bytes, uint64_t *dropped)
{
    bool any = false;
    uint64_t from = 0;
    for (uint64_t i = 0; i < bytes;) {
        const uint8_t *at_ = fdri_view.base + off + i;
        uint32_t room = bin_bytes - (uint32_t)(i % bin_bytes);
        uint32_t skip = fdri_meta_piece(at_, room);
        if (skip) {
            int e = put_batch(fd, off, &from, i, any);
            if (e) return e;
            from = i += skip;
            continue;
        }
        uint32_t size, used = copy_bin(at_, fdri_batch + i, room, &size, dropped);
        memset(fdri_batch + i + used, 0, size - used);
        any |= used != 0;
        i += size;
    }
    return put_batch(fd, off, &from, bytes, any);
}

FDR_RACY static int copy_bins(int fd, uint64_t virgin, uint64_t *dropped)
{
    uint32_t bin_bytes = super()->bin_bytes;
    uint64_t off = super()->bins_off, end = off + (uint64_t)(uint32_t)virgin * bin_bytes;
    int e = 0;
    for (; !e && off < end; off += FDRI_BATCH_BYTES)
        e = copy_slots(fd, off, fdr_min(end - off, FDRI_BATCH_BYTES), bin_bytes, dropped);
    return e;
}

/* Behind the checks, where there is room left. */
static int put_section(int fd, const struct fdri_why *why, const struct fdr_spare *spare, uint64_t *off)
{
    uint64_t at_ = fdr_align_up(spare->chunks_off + spare->chunk_count * sizeof(struct fdr_chunk), 8);
    *off = 0;
    if (!why->section_bytes || at_ + why->section_bytes > fdri_view.bytes + FDR_TAIL_MAX_BYTES) return 0;
    *off = at_;
    return fdri_put(fd, why->section, why->section_bytes, at_);
}

/* `s` was read before anything was copied: what it counts is there. */
static int put_superblock(int fd, struct fdr_superblock *s, struct fdr_spare *spare, const struct fdri_why *why,
                          uint64_t number, uint64_t virgin, uint64_t dropped)
{
    memset(fdri_batch, 0, FDR_SUPERBLOCK_BYTES);
    s->virgin = virgin;
    s->snapshot_number = s->snapshots_taken = number;
    s->dropped_bins = dropped;
    s->reason_kind = why->kind;
    memcpy(s->reason, why->reason, sizeof s->reason);
    s->trigger_tick = why->tick;
    s->trigger_value = why->value;
    s->trigger_value_type = why->value_type;
    s->trigger_location = why->location;
    memcpy(s->trigger_name, why->name, sizeof s->trigger_name);
    memcpy(fdri_batch, s, sizeof *s);
    fdr_spare_finish(fdri_batch, spare);
    return fdri_put(fd, fdri_batch, FDR_SUPERBLOCK_BYTES, 0);
}

/* Once more, behind the stacks: what is older than the cut lies in bins that were handed out by now. Meta stays as it
 * was copied. */
static uint64_t bins_by_now(uint64_t virgin)
{
    return (virgin & ~(uint64_t)UINT32_MAX) | (uint32_t)fdr_load_acquire(&super()->virgin); /* A:virgin */
}

static bool holding; /* the accounts still, for the one that is being written */
void fdri_copy_abandon(void)
{
    if (holding) fdri_view.release();
    holding = false;
}

FDR_RACY int fdri_copy_arena(int fd, const struct fdri_why *why, uint64_t number)
{
    static struct fdr_superblock before; /* one snapshot at a time */
    uint64_t virgin = 0, dropped = 0;
    holding = true; /* first: it may be left while it waits */
    if (!fdri_view.hold()) holding = false;
    struct fdr_clock_reading now = fdr_clock_read(fdri_view.ticks);
    super()->clock_last = (struct fdr_clock_pair){fdri_tick_of(now.tick), now.monotonic_ns, now.realtime_ns, 0};
    fdr_copy_racy(&before, super(), sizeof before);
    before.location_first = fdr_load_acquire(&super()->location_first); /* A:location - pairs with R:location */
    before.notes_off = fdr_load_acquire(&super()->notes_off);           /* A:notes - pairs with R:notes */
    const struct fdr_location *first = before.location_first ? at(before.location_first) : NULL;
    fdri_locations_note(first, before.location_count);
    int e = copy_meta(fd, &virgin);
    if (!e) e = fdri_notes_put(fd, before.notes_off);
    if (!e) e = fdri_locations_stacks(fd, first);
    virgin = bins_by_now(virgin);
    if (!e) e = copy_bins(fd, virgin, &dropped);
    if (!e) e = fdri_locations_finish(fd, first);
    struct fdr_spare spare = {0};
    if (!e) e = fdri_put_checks(fd, virgin, fdri_tail_bytes(), &spare);
    if (!e) e = put_section(fd, why, &spare, &before.section_off);
    if (!e) e = put_superblock(fd, &before, &spare, why, number, virgin, dropped);
    fdri_copy_abandon();
    return e;
}
