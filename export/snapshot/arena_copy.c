/* SPDX-License-Identifier: MIT */
/* Copies a live arena without stopping a writer. The order makes the copy consistent; docs/DESIGN.md, "Taking it out",
 * has the same numbers:
 *
 *   1 bounds      the number of events that each location had completed
 *   2 meta        accounts "before", definitions, totals, stacks
 *     notes       again: each value as it was at one moment
 *   3 stacks      each open stack again, read twice; the file gets the longest prefix equal in both
 *   4 bins        all bins handed out by then, each up to the commit word that was read first; a bin whose generation
 *                 changed meanwhile is dropped
 *   5 new blocks  of accounts; they may lie where the file has a bin
 *     partitions  of all locations, again: their list heads are newer than all of the above, so no list names a bin
 *                 that was taken away
 *   6 tail        accounts "after", and the tick at which each stack was copied
 *   7 checks      of the written file, read back (snapshot_checks.c)
 *   8 superblock  last: a file without it is no recording
 *
 * Bins appended after their place was copied are missing at the newest end of a list. Records newer than the tail's
 * tick may lack a parent. The reader handles both. */
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

uint8_t fdri_snapshot_batch[FDRI_SNAPSHOT_BATCH_BYTES] __attribute__((aligned(64)));

static void *at(uint32_t off) { return fdri_snapshot_view.base + off; }
static struct fdri_arena_superblock *superblock(void) { return (void *)fdri_snapshot_view.base; }

int fdri_snapshot_put(int fd, const void *bytes, uint64_t count, uint64_t off)
{
    const uint8_t *p = bytes;
    struct rlimit limit;
    /* else the kernel would send SIGXFSZ, which ends the process */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && off + count > limit.rlim_cur) return -EFBIG;
    while (count) {
        ssize_t n = pwrite(fd, p, fdri_bits_min(count, 1u << 20), (off_t)off);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n ? -errno : -EIO;
        p += n;
        off += (uint64_t)n;
        count -= (uint64_t)n;
    }
    return 0;
}

int fdri_snapshot_put_live(int fd, const uint8_t *from, uint64_t count, uint64_t off)
{
    int e = 0;
    for (uint64_t n; count && !e; from += n, off += n, count -= n) {
        n = fdri_bits_min(count, FDRI_SNAPSHOT_BATCH_BYTES);
        fdri_racy_copy(fdri_snapshot_batch, from, n);
        e = fdri_snapshot_put(fd, fdri_snapshot_batch, n, off);
    }
    return e;
}

/* ---- 2: meta, until no block was added meanwhile; then the meta blocks that lie in pieces of bins ---- */

/* Reads the size once: another thread may be writing there. */
FDRI_RACY uint32_t fdri_snapshot_meta_piece(const uint8_t *from, uint32_t room)
{
    const struct fdri_arena_meta_head *m = (const void *)from;
    uint32_t bytes = fdri_atomic_load_relaxed(&m->bytes);
    bool good = fdri_atomic_load_relaxed(&m->magic) == FDRI_ARENA_META_MAGIC && fdri_bits_is_pow2(bytes) &&
                bytes >= FDRI_ARENA_BIN_MIN_BYTES && bytes <= room;
    return good ? bytes : 0;
}

/* The size in the bin's header, if it fits the place; 0: this is no bin. */
FDRI_RACY static uint32_t size_of(const uint8_t *from, uint32_t room)
{
    const struct fdri_arena_bin *b = (const void *)from;
    uint32_t log2 = fdri_atomic_load_relaxed(&b->size_log2), size = log2 >= 9 && log2 <= 16 ? 1u << log2 : 0;
    uint64_t at_ = (uint64_t)(from - fdri_snapshot_view.base) - superblock()->bins_off;
    return b->magic == FDRI_ARENA_BIN_MAGIC && size && size <= room && !(at_ & (size - 1)) ? size : 0;
}

/* True if the bin is in use and fills its slot, so no meta block lies in it. */
FDRI_RACY static bool whole_bin(const uint8_t *from, uint32_t bin_bytes)
{
    const struct fdri_arena_bin *b = (const void *)from;
    /* G:check - pairs with G:open: the size is at least as new */
    uint32_t generation = fdri_atomic_load_acquire(&b->generation);
    return generation & 1 && size_of(from, bin_bytes) == bin_bytes;
}

FDRI_RACY uint64_t fdri_snapshot_next_meta_piece(uint64_t off, uint64_t end, uint32_t *bytes)
{
    uint64_t bins = superblock()->bins_off;
    uint32_t bin_bytes = superblock()->bin_bytes, step = FDRI_ARENA_BIN_MIN_BYTES;
    for (; off < end; off += step) {
        const uint8_t *from = fdri_snapshot_view.base + off;
        uint32_t within = (uint32_t)(off - bins) & (bin_bytes - 1);
        step = !within && whole_bin(from, bin_bytes) ? bin_bytes : FDRI_ARENA_BIN_MIN_BYTES;
        if (step == FDRI_ARENA_BIN_MIN_BYTES && (*bytes = fdri_snapshot_meta_piece(from, bin_bytes - within)))
            return off;
    }
    return end;
}

static int copy_meta_pieces(int fd, uint64_t virgin)
{
    uint64_t off = superblock()->bins_off, end = off + (uint64_t)(uint32_t)virgin * superblock()->bin_bytes;
    int e = 0;
    for (uint32_t bytes; !e && (off = fdri_snapshot_next_meta_piece(off, end, &bytes)) < end; off += bytes)
        e = fdri_snapshot_put_live(fd, fdri_snapshot_view.base + off, bytes, off);
    return e;
}

static int copy_meta(int fd, uint64_t *virgin)
{
    uint64_t end = fdri_snapshot_view.bytes;
    for (int i = 0; i < 4; i++) {
        *virgin = fdri_atomic_load_acquire(&superblock()->virgin); /* A:virgin - pairs with L:virgin */
        uint64_t low = (*virgin >> 32) * FDRI_ARENA_META_ALIGN;
        if (low >= end) break;
        int e = fdri_snapshot_put_live(fd, fdri_snapshot_view.base + low, end - low, low);
        if (e) return e;
        end = low;
    }
    return copy_meta_pieces(fd, *virgin);
}

/* ---- 4: bins ---- */

/* Copies one bin or piece into `to`. Returns the bytes copied; 0 if it is not in use or was taken away meanwhile.
 * *size: its size, or the least size if it has none. All is read behind the generation, because halves join to wholes
 * and wholes split into halves. A half loses its generation when it joins, so the same generation may come again. The
 * header's check does not come again, so it is compared, too. */
FDRI_RACY static uint32_t copy_bin(const uint8_t *from, uint8_t *to, uint32_t room, uint32_t *size, uint64_t *dropped)
{
    const struct fdri_arena_bin *b = (const void *)from;
    uint32_t generation = fdri_atomic_load_acquire(&b->generation); /* G:check - pairs with G:open, G:give and G:take */
    uint32_t bytes = size_of(from, room);
    *size = bytes ? bytes : FDRI_ARENA_BIN_MIN_BYTES;
    if (!bytes || !(generation & 1)) return 0;
    uint32_t check = fdri_atomic_load_relaxed(&b->check);
    uint64_t commit = fdri_atomic_load_acquire(&b->commit); /* A:commit - pairs with R:commit */
    uint32_t used = (uint32_t)fdri_bits_align_up(FDRI_ARENA_BIN_HEADER + (FDRI_ARENA_COMMIT_BITS(commit) + 7) / 8, 8);
    if (used > bytes) used = bytes;
    fdri_racy_copy(to, from, used);
    fdri_atomic_fence_acquire(); /* G:check */
    /* G:check - the copy was read before this */
    if (fdri_atomic_load_relaxed(&b->generation) != generation || fdri_atomic_load_relaxed(&b->check) != check) {
        ++*dropped;
        *size = FDRI_ARENA_BIN_MIN_BYTES; /* the bins there now may be smaller */
        return 0;
    }
    struct fdri_arena_bin *copy = (void *)to;
    copy->commit = commit;
    copy->generation = generation;
    return used;
}

/* Writes the batch from *from up to `to` to its place in the file. Meta pieces lie between such stretches and are
 * skipped. */
static int put_batch(int fd, uint64_t off, uint64_t *from, uint64_t to, bool any)
{
    int e = any && to > *from ? fdri_snapshot_put(fd, fdri_snapshot_batch + *from, to - *from, off + *from) : 0;
    *from = to;
    return e;
}

/* Copies the slots of bin_bytes in [off, off + bytes), each whole or in pieces. Empty stretches stay holes of the
 * file. */
FDRI_RACY static int copy_slots(int fd, uint64_t off, uint64_t bytes, uint32_t bin_bytes, uint64_t *dropped)
{
    bool any = false;
    uint64_t from = 0;
    for (uint64_t i = 0; i < bytes;) {
        const uint8_t *at_ = fdri_snapshot_view.base + off + i;
        uint32_t room = bin_bytes - (uint32_t)(i % bin_bytes);
        uint32_t skip = fdri_snapshot_meta_piece(at_, room);
        if (skip) {
            int e = put_batch(fd, off, &from, i, any);
            if (e) return e;
            from = i += skip;
            continue;
        }
        uint32_t size, used = copy_bin(at_, fdri_snapshot_batch + i, room, &size, dropped);
        memset(fdri_snapshot_batch + i + used, 0, size - used);
        any |= used != 0;
        i += size;
    }
    return put_batch(fd, off, &from, bytes, any);
}

FDRI_RACY static int copy_bins(int fd, uint64_t virgin, uint64_t *dropped)
{
    uint32_t bin_bytes = superblock()->bin_bytes;
    uint64_t off = superblock()->bins_off, end = off + (uint64_t)(uint32_t)virgin * bin_bytes;
    int e = 0;
    for (; !e && off < end; off += FDRI_SNAPSHOT_BATCH_BYTES)
        e = copy_slots(fd, off, fdri_bits_min(end - off, FDRI_SNAPSHOT_BATCH_BYTES), bin_bytes, dropped);
    return e;
}

/* Writes the section behind the checks if there is room; *off: its place, 0: not written. */
static int put_section(int fd, const struct fdri_snapshot_why *why, const struct fdri_arena_spare *spare, uint64_t *off)
{
    uint64_t at_ = fdri_bits_align_up(spare->chunks_off + spare->chunk_count * sizeof(struct fdri_arena_chunk), 8);
    *off = 0;
    if (!why->section_bytes || at_ + why->section_bytes > fdri_snapshot_view.bytes + FDRI_ARENA_TAIL_MAX_BYTES)
        return 0;
    *off = at_;
    return fdri_snapshot_put(fd, why->section, why->section_bytes, at_);
}

/* `s` was read before anything was copied, so the file has everything that `s` counts. */
static int put_superblock(int fd, struct fdri_arena_superblock *s, struct fdri_arena_spare *spare,
                          const struct fdri_snapshot_why *why, uint64_t number, uint64_t virgin, uint64_t dropped)
{
    memset(fdri_snapshot_batch, 0, FDRI_ARENA_SUPERBLOCK_BYTES);
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
    memcpy(fdri_snapshot_batch, s, sizeof *s);
    fdri_arena_spare_finish(fdri_snapshot_batch, spare);
    return fdri_snapshot_put(fd, fdri_snapshot_batch, FDRI_ARENA_SUPERBLOCK_BYTES, 0);
}

/* Reads the end of the bins again behind the stacks. Records older than a stack's copy lie in bins that were handed out
 * by now. The end of the meta blocks stays as it was copied. */
static uint64_t bins_by_now(uint64_t virgin)
{
    return (virgin & ~(uint64_t)UINT32_MAX) | (uint32_t)fdri_atomic_load_acquire(&superblock()->virgin); /* A:virgin */
}

static bool holding; /* this snapshot holds the accounts */
void fdri_snapshot_copy_abandon(void)
{
    if (holding) fdri_snapshot_view.release_accounts();
    holding = false;
}

FDRI_RACY int fdri_snapshot_copy_arena(int fd, const struct fdri_snapshot_why *why, uint64_t number)
{
    static struct fdri_arena_superblock before; /* one snapshot at a time */
    uint64_t virgin = 0, dropped = 0;
    holding = true; /* set first: a handler may leave by longjmp during hold_accounts() */
    if (!fdri_snapshot_view.hold_accounts()) holding = false;
    fdri_snapshot_view.self_check(holding);
    struct fdri_clock_reading now = fdri_clock_read(fdri_snapshot_view.ticks);
    superblock()->clock_last = (struct fdri_arena_clock_pair){fdri_snapshot_tick_of(now.tick), now.monotonic_ns,
                                                              now.realtime_ns, 0};
    fdri_racy_copy(&before, superblock(), sizeof before);
    /* A:location - pairs with R:location */
    before.location_first = fdri_atomic_load_acquire(&superblock()->location_first);
    before.notes_off = fdri_atomic_load_acquire(&superblock()->notes_off); /* A:notes - pairs with R:notes */
    const struct fdri_arena_location *first = before.location_first ? at(before.location_first) : NULL;
    fdri_snapshot_locations_note(first, before.location_count);
    int e = copy_meta(fd, &virgin);
    if (!e) e = fdri_snapshot_notes_put(fd, before.notes_off);
    if (!e) e = fdri_snapshot_locations_stacks(fd, first);
    virgin = bins_by_now(virgin);
    if (!e) e = copy_bins(fd, virgin, &dropped);
    if (!e) e = fdri_snapshot_locations_finish(fd, first);
    struct fdri_arena_spare spare = {0};
    if (!e) e = fdri_snapshot_put_checks(fd, virgin, fdri_snapshot_tail_bytes(), &spare);
    if (!e) e = put_section(fd, why, &spare, &before.section_off);
    if (!e) e = put_superblock(fd, &before, &spare, why, number, virgin, dropped);
    fdri_snapshot_copy_abandon();
    return e;
}
