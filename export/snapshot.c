/* SPDX-License-Identifier: MIT */
/* Copies a live arena without stopping a writer. The order makes the copy consistent:
 *
 *   0 bounds      how many events each location had completed
 *   1 meta        accounts "before", definitions, totals, stacks
 *     notes       of it again: each value as it stood at one moment
 *   2 stacks      each open stack once more, twice; the longest prefix equal in both is what stands in the file
 *   3 bins        all that are handed out by then; payload up to the commit word read first; a bin whose generation
 *                 moved meanwhile is dropped
 *   4 new blocks  partitions, epochs, levels, which may lie where a bin was that the file has
 *     partitions  again, of all locations: their list heads are now newer than all that, so no list names a bin that
 *                 was taken away
 *   5 tail        accounts "after", and the tick at which each stack was copied
 *   6 checks      of what was written, read back (checks.c)
 *   7 superblock  last: a file without it is none
 *
 * Bins appended after their place was copied are missing at the newest end of a list; records newer than the tail's
 * tick may lack a parent; the reader knows both. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/racy.h"
#include "export/export.h"
#include "format/checks.h"

enum { BATCH_BYTES = 256 * 1024, STACK_MAX = FDR_LEVELS_MAX };

static uint8_t batch[BATCH_BYTES] __attribute__((aligned(64))); /* one snapshot at a time */
static struct fdr_level frames[STACK_MAX];

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

/* The same from memory that is being written, through the batch. */
static int put_live(int fd, const uint8_t *from, uint64_t count, uint64_t off)
{
    int e = 0;
    for (uint64_t n; count && !e; from += n, off += n, count -= n) {
        n = fdr_min(count, BATCH_BYTES);
        fdr_copy_racy(batch, from, n);
        e = fdri_put(fd, batch, n, off);
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

FDR_RACY static int copy_meta_pieces(int fd, uint64_t virgin)
{
    uint32_t bin_bytes = super()->bin_bytes;
    uint64_t end = super()->bins_off + (uint64_t)(uint32_t)virgin * bin_bytes;
    for (uint64_t off = super()->bins_off; off < end; off += FDR_BIN_MIN_BYTES) {
        uint32_t room = bin_bytes - (uint32_t)((off - super()->bins_off) % bin_bytes);
        uint32_t bytes = fdri_meta_piece(fdri_view.base + off, room);
        int e = bytes ? put_live(fd, fdri_view.base + off, bytes, off) : 0;
        if (e) return e;
    }
    return 0;
}

static int copy_meta(int fd, uint64_t *virgin)
{
    uint64_t end = fdri_view.bytes;
    for (int i = 0; i < 4; i++) {
        *virgin = fdr_load_acquire(&super()->virgin); /* A:virgin - pairs with L:virgin */
        uint64_t low = (*virgin >> 32) * FDR_META_ALIGN;
        if (low >= end) break;
        int e = put_live(fd, fdri_view.base + low, end - low, low);
        if (e) return e;
        end = low;
    }
    return copy_meta_pieces(fd, *virgin);
}

/* ---- 2: stacks ---- */

FDR_RACY static struct fdr_level *level_of(const struct fdr_location *l, uint32_t depth)
{
    struct fdr_levels_block *b = at(l->levels_off[fdr_level_block(depth)]);
    return &b->level[fdr_level_entry(depth)];
}

FDR_RACY static bool same_frame(const struct fdr_level *a, const struct fdr_level *b)
{
    return a->enter_tick == b->enter_tick && a->region == b->region && a->flags == b->flags && a->address == b->address;
}

FDR_RACY static int copy_stack(int fd, const struct fdr_location *l, uint64_t *cut, uint32_t *copied)
{
    uint32_t believed = 0;
    *cut = fdr_load_acquire(&l->last_tick);       /* A:frame - the tick is read before the depth */
    uint32_t depth = fdr_load_acquire(&l->depth); /* A:frame - pairs with R:frame */
    if (depth > fdr_levels_in(l->level_blocks) || depth > STACK_MAX) depth = 0;
    for (uint32_t d = 1; d <= depth; d++) fdr_copy_racy(&frames[d - 1], level_of(l, d), sizeof frames[0]);
    fdr_fence_acquire();                          /* A:frame - the first reading is over before the second begins */
    uint32_t again = fdr_load_acquire(&l->depth); /* A:frame */
    while (believed < depth && believed < again && same_frame(&frames[believed], level_of(l, believed + 1))) believed++;
    for (uint32_t d = 1; d <= believed; d++) {
        int e = fdri_put(fd, &frames[d - 1], sizeof frames[0], (uint64_t)((uint8_t *)level_of(l, d) - fdri_view.base));
        if (e) return e;
    }
    *copied = believed;
    return fdri_put(fd, &believed, sizeof believed, (uint64_t)((const uint8_t *)&l->depth - fdri_view.base));
}

/* ---- 3: bins ---- */

/* The size that a header says, which must fit its place; 0: it is none. */
FDR_RACY static uint32_t size_of(const uint8_t *from, uint32_t room)
{
    const struct fdr_bin *b = (const void *)from;
    uint32_t log2 = fdr_load_relaxed(&b->size_log2), size = log2 >= 9 && log2 <= 16 ? 1u << log2 : 0;
    uint64_t at_ = (uint64_t)(from - fdri_view.base) - super()->bins_off;
    return b->magic == FDR_BIN_MAGIC && size && size <= room && !(at_ & (size - 1)) ? size : 0;
}

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

/* What stands in `batch` from `*from` up to `to` goes to its place; meta pieces between are not touched. */
static int put_batch(int fd, uint64_t off, uint64_t *from, uint64_t to, bool any)
{
    int e = any && to > *from ? fdri_put(fd, batch + *from, to - *from, off + *from) : 0;
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
        uint32_t size, used = copy_bin(at_, batch + i, room, &size, dropped);
        memset(batch + i + used, 0, size - used);
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
    for (; !e && off < end; off += BATCH_BYTES)
        e = copy_slots(fd, off, fdr_min(end - off, BATCH_BYTES), bin_bytes, dropped);
    return e;
}

/* ---- 4: partitions and floors ---- */

/* The list from `first` on as it stands now. *forgets: what a rewind has not counted yet. */
FDR_RACY static int copy_parts(int fd, const struct fdr_location *l, uint32_t first, uint64_t *forgets)
{
    const struct fdr_part *p;
    *forgets = 0;
    int e = fdri_put(fd, &first, sizeof first, (uint64_t)((const uint8_t *)&l->parts_first - fdri_view.base));
    for (uint32_t off = first; off && off <= fdri_view.bytes - sizeof(struct fdr_part) && !e;) {
        struct fdr_part copy;
        p = at(off);
        fdr_copy_racy(&copy, p, sizeof copy);
        uint64_t head = fdr_load_acquire(&p->list_head); /* A:list - pairs with R:link */
        /* one whose newest bin was taken in between says so from then on */
        if (!(uint32_t)head) fdr_copy_racy(&copy, p, sizeof copy);
        copy.list_head = head;
        *forgets += copy.forgets = fdr_load_acquire(&p->forgets); /* A:forget - before `filtered` is read again */
        e = fdri_put(fd, &copy, sizeof copy, off);
        off = copy.next;
    }
    uint64_t floor = l->floor_tick;
    return e ? e : fdri_put(fd, &floor, sizeof floor, (uint64_t)((const uint8_t *)&l->floor_tick - fdri_view.base));
}

/* ---- epochs: the table with its rows, as they stood together ---- */

enum { EPOCH_TRIES = 16 };

/* Table and rows into the batch, one behind the other; false: they moved meanwhile. */
FDR_RACY static bool read_epochs(const struct fdr_epochs *from, struct fdr_epochs *e, uint32_t *row_bytes)
{
    uint32_t version = fdr_load_acquire(&from->version); /* A:epochs - pairs with R:epochs */
    if (version & 1) return false;
    fdr_copy_racy(e, from, sizeof *e);
    *row_bytes = e->row_bytes;
    if (e->count > FDR_EPOCHS_MAX || *row_bytes > 4096) return false;
    for (uint32_t i = 0; i < e->count; i++)
        if (e->epoch[i].rows_off) fdr_copy_racy(batch + i * 4096, at(e->epoch[i].rows_off), *row_bytes);
    fdr_fence_acquire(); /* A:epochs - the copy was read before this */
    return fdr_load_relaxed(&from->version) == version;
}

FDR_RACY static int copy_epochs(int fd, const struct fdr_location *l)
{
    static struct fdr_epochs e; /* one snapshot at a time */
    uint32_t off = l->epochs_off, row_bytes = 0;
    bool good = false;
    if (!off) return 0;
    for (int i = 0; i < EPOCH_TRIES && !good; i++)
        if (!(good = read_epochs(at(off), &e, &row_bytes))) sched_yield(); /* its owner may wait for a processor */
    if (!good) {
        /* its head as well: the block may have come since that place was copied */
        fdr_copy_racy(&e, at(off), offsetof(struct fdr_epochs, epoch));
        e.version = 1; /* the reader does not believe it */
    }
    int error = fdri_put(fd, &e, good ? sizeof e : offsetof(struct fdr_epochs, epoch), off);
    for (uint32_t i = 0; good && i < e.count && !error; i++)
        if (e.epoch[i].rows_off) error = fdri_put(fd, batch + i * 4096, row_bytes, e.epoch[i].rows_off);
    return error;
}
static_assert(FDR_EPOCHS_MAX * 4096 <= BATCH_BYTES, "rows of all epochs fit");

/* ---- 5: tail ---- */

FDR_RACY static uint64_t presented_of_level(const struct fdr_level *v)
{
    uint64_t n = fdr_load_relaxed(&v->presented);
    if (!v->points_off) return n;
    const struct fdr_level_points *points = at(v->points_off);
    for (int c = 0; c < FDR_CLASS_COUNT; c++) n += fdr_load_relaxed(&points->by_class[c].presented);
    return n;
}

FDR_RACY static uint64_t filtered_of_level(const struct fdr_level *v)
{
    uint64_t n = fdr_load_relaxed(&v->filtered);
    if (!v->points_off) return n;
    const struct fdr_level_points *points = at(v->points_off);
    for (int c = 0; c < FDR_CLASS_COUNT; c++) n += fdr_load_relaxed(&points->by_class[c].filtered);
    return n;
}

FDR_RACY static uint64_t filtered_of(const struct fdr_location *l)
{
    uint64_t n = filtered_of_level(at(l->level0_off));
    for (uint32_t d = 1; d <= fdr_levels_in(l->level_blocks); d++) n += filtered_of_level(level_of(l, d));
    return n;
}

FDR_RACY static uint64_t presented_of(const struct fdr_location *l)
{
    uint64_t n = l->presented_overflow + presented_of_level(at(l->level0_off));
    for (uint32_t d = 1; d <= fdr_levels_in(l->level_blocks); d++) n += presented_of_level(level_of(l, d));
    const struct fdr_samples *s = l->samples_off ? at(l->samples_off) : NULL;
    for (uint32_t i = 0; s && i < FDR_SAMPLE_LEVELS; i++) n += fdr_load_relaxed(&s->level[i].presented);
    return n;
}

FDR_RACY static uint64_t completed_of(const struct fdr_location *l)
{
    uint64_t presented = presented_of(l);
    uint64_t open = (uint64_t)fdr_load_acquire(&l->depth) + l->overflow; /* A:frame - read after: never too few */
    return presented > open + 1 ? presented - open - 1 : 0;              /* one may be on its way */
}

/* ---- all of it ---- */

static uint32_t off_of(const struct fdr_location *l) { return (uint32_t)((const uint8_t *)l - fdri_view.base); }

static struct {
    struct fdr_tail head;
    struct fdr_tail_entry entry[FDR_TAIL_ENTRIES];
} tail;
static uint8_t level_blocks[FDR_TAIL_ENTRIES]; /* of each when the copy began */
static uint64_t filtered[FDR_TAIL_ENTRIES];    /* likewise, of threads that had rewound by then */
static uint32_t parts_first[FDR_TAIL_ENTRIES]; /* of each when its new blocks were copied */
static uint32_t open_calls[FDR_TAIL_ENTRIES];  /* of each that its stack's copy has */
static uint32_t slabs_first[FDR_TAIL_ENTRIES]; /* its newest block of further meta when the copy began */
static uint32_t rows_table[FDR_TAIL_ENTRIES];  /* the table of its totals then */
static uint32_t noted[FDR_TAIL_ENTRIES];       /* its off */
static_assert(FDR_LEVEL_BLOCKS_MAX <= UINT8_MAX, "they fit");

FDR_RACY static const struct fdr_location *next_location(const struct fdr_location *l)
{
    return l->next ? at(l->next) : NULL;
}

/* Locations that came while the copy was made have ids from `newcomers` on, or no entry though there is room for all;
 * what the file has of them may be half of it. */
static uint32_t newcomers;
static bool all_have_entries;

FDR_RACY static bool is_free(const struct fdr_location *l)
{
    return (fdr_load_acquire(&l->flags) & FDR_LOCATION_FREE) || l->id >= newcomers; /* A:location */
}

FDR_RACY static void note_bounds(const struct fdr_location *first)
{
    tail.head = (struct fdr_tail){.magic = FDR_TAIL_MAGIC};
    for (const struct fdr_location *l = first; l && tail.head.count < FDR_TAIL_ENTRIES; l = next_location(l)) {
        if (is_free(l)) continue;
        uint32_t i = tail.head.count++;
        uint32_t busy = fdr_load_acquire(&l->busy) != 0; /* A:busy - pairs with R:busy */
        tail.entry[i] = (struct fdr_tail_entry){.location = l->id, .under_way = busy, .completed = completed_of(l)};
        noted[i] = off_of(l);
        level_blocks[i] = (uint8_t)l->level_blocks;
        slabs_first[i] = l->slabs;
        rows_table[i] = fdr_load_acquire(&l->rows_table_off); /* A:rows */
        filtered[i] = fdr_load_relaxed(&l->flags) & FDR_LOCATION_REWINDS ? filtered_of(l) : 0;
    }
    all_have_entries = tail.head.count < FDR_TAIL_ENTRIES;
}

static int leave_out(int fd, const struct fdr_location *l)
{
    static const uint32_t nobodys = FDR_LOCATION_FREE;
    return fdri_put(fd, &nobodys, sizeof nobodys, (uint64_t)((const uint8_t *)&l->flags - fdri_view.base));
}

/* The entry of l, which is number *i or has none. Nobody's is the entry of one that was given to others meanwhile: the
 * accounts could not be held still. */
FDR_RACY static struct fdr_tail_entry *entry_of(const struct fdr_location *l, uint32_t *i)
{
    if (*i >= tail.head.count || noted[*i] != off_of(l)) return NULL;
    struct fdr_tail_entry *entry = &tail.entry[(*i)++];
    if (!is_free(l) && entry->location == l->id) return entry;
    entry->location = UINT32_MAX;
    return NULL;
}

FDR_RACY static int copy_stacks(int fd, const struct fdr_location *first)
{
    int e = 0;
    uint32_t i = 0;
    for (const struct fdr_location *l = first; l && !e; l = next_location(l)) {
        uint64_t cut;
        uint32_t open;
        struct fdr_tail_entry *entry = entry_of(l, &i);
        if (is_free(l)) continue;
        e = copy_stack(fd, l, entry ? &entry->cut_tick : &cut, entry ? &open_calls[entry - tail.entry] : &open);
    }
    return e;
}

static uint32_t tail_bytes(void) { return (uint32_t)(sizeof tail.head + tail.head.count * sizeof tail.entry[0]); }

/* Blocks of levels that came while the copy was made: its header may have them, and where they lie was copied
 * before. */
FDR_RACY static int copy_new_levels(int fd, const struct fdr_location *l, uint32_t before)
{
    uint32_t blocks = l->level_blocks;
    uint64_t here = (uint64_t)((const uint8_t *)l - fdri_view.base);
    int e = 0;
    if (blocks <= before || blocks > FDR_LEVEL_BLOCKS_MAX) return 0;
    for (uint32_t b = before; b < blocks && !e; b++)
        e = put_live(fd, at(l->levels_off[b]), fdr_levels_bytes(fdr_levels_of(b)), l->levels_off[b]);
    if (!e)
        e = put_live(fd, (const uint8_t *)l->levels_off, sizeof l->levels_off,
                     here + offsetof(struct fdr_location, levels_off));
    return e ? e : fdri_put(fd, &blocks, sizeof blocks, here + offsetof(struct fdr_location, level_blocks));
}

/* What was open when it stopped storing: the header may have it, and its place was copied before. It never changes. */
FDR_RACY static int copy_frozen(int fd, const struct fdr_location *l)
{
    int e = 0;
    const struct fdr_frozen *f;
    for (uint32_t off = l->frozen_off; off && !e; off = f->next) {
        f = (const struct fdr_frozen *)at(off);
        e = put_live(fd, (const uint8_t *)f, f->head.bytes, off);
    }
    return e;
}

/* What rewinds took away since, is perhaps neither in the bins nor in the accounts that were copied before them. A
 * location that does nothing but rewind moves, too. */
static void take_rewound(struct fdr_tail_entry *entry, uint64_t records)
{
    entry->completed -= fdr_min(entry->completed, records);
    entry->end_tick += records != 0;
}

/* A bin that the file has at `at_`, if it reaches behind `until`, is not there any more: links may lead to it. */
FDR_RACY static int hide_bin(int fd, uint64_t at_, uint64_t until)
{
    static const uint32_t none = 0;
    struct fdr_bin b;
    bool is = pread(fd, &b, sizeof b, (off_t)at_) == sizeof b && b.magic == FDR_BIN_MAGIC && b.size_log2 < 32;
    if (!is || at_ + (1ull << b.size_log2) <= until) return 0;
    return fdri_put(fd, &none, sizeof none, at_ + offsetof(struct fdr_bin, magic));
}

/* Bins of whose memory this is a part by now, and what is left in there of bins that it was. */
FDR_RACY static int hide_bins(int fd, uint64_t off, uint64_t bytes)
{
    uint64_t bins_off = super()->bins_off;
    int e = 0;
    for (uint64_t size = bytes * 2; size <= super()->bin_bytes && !e; size *= 2)
        if ((off - bins_off) % size) e = hide_bin(fd, off - (off - bins_off) % size, off);
    for (uint64_t at_ = off + FDR_BIN_MIN_BYTES; at_ < off + bytes && !e; at_ += FDR_BIN_MIN_BYTES)
        e = hide_bin(fd, at_, at_);
    return e;
}

/* Memory that serves for its accounts since: the file has there what was before, a bin or what another location had,
 * and rows of totals that were copied behind that lead there. */
FDR_RACY static int copy_new_slabs(int fd, const struct fdr_location *l, uint32_t *known)
{
    int e = 0;
    uint32_t first = l->slabs;
    for (uint32_t off = first; off && off != *known && !e; off = ((const struct fdr_slab *)at(off))->next) {
        const struct fdr_slab *s = at(off);
        uint32_t bytes = fdr_load_relaxed(&s->head.bytes);
        e = put_live(fd, at(off), fdr_min(bytes, fdri_view.bytes - off), off);
        if (!e && s->in_bins) e = hide_bins(fd, off, bytes);
    }
    *known = first;
    return e;
}

/* One that came while the copy was made may lie where that had been already, and so may its newest rows. The one before
 * stays as it was, in the file as in the arena, and so do the rows it names. */
FDR_RACY static int name_old_table(int fd, const struct fdr_location *l, uint32_t before)
{
    if (l->rows_table_off == before) return 0;
    return fdri_put(fd, &before, sizeof before, (uint64_t)((const uint8_t *)&l->rows_table_off - fdri_view.base));
}

/* A location's first event says which clock it has. Behind all times of its records, rows and stack that the file has:
 * without it they would be of the other one. */
FDR_RACY static int copy_beginning(int fd, const struct fdr_location *l)
{
    fdr_fence_acquire(); /* A:unit - pairs with R:unit */
    uint64_t here = (uint64_t)((const uint8_t *)l - fdri_view.base), start = l->start_tick;
    uint64_t flags_at = here + offsetof(struct fdr_location, flags);
    uint32_t ns = fdr_load_relaxed(&l->flags) & FDR_LOCATION_NS, flags;
    int e = fdri_put(fd, &start, sizeof start, here + offsetof(struct fdr_location, start_tick));
    if (e || !ns) return e;
    ssize_t n = pread(fd, &flags, sizeof flags, (off_t)flags_at);
    if (n != sizeof flags) return n < 0 ? -errno : -EIO;
    if (flags & ns) return 0;
    flags |= ns;
    return fdri_put(fd, &flags, sizeof flags, flags_at);
}

/* Blocks that came while the copy was made may lie where the file has a bin that was given back for them. So those of
 * all locations are written before the first list head is read: none names such a bin then. Links in the file may,
 * where a rewind gave back what was newest: the bin is not there for them, either. */
FDR_RACY static int copy_new_blocks(int fd, const struct fdr_location *first)
{
    int e = 0;
    uint32_t i = 0;
    for (const struct fdr_location *l = first; l && !e; l = next_location(l)) {
        struct fdr_tail_entry *entry = entry_of(l, &i);
        if (is_free(l) || (!entry && all_have_entries)) {
            e = leave_out(fd, l);
            continue;
        }
        uint64_t forgets;
        uint32_t *slabs = entry ? &slabs_first[entry - tail.entry] : NULL;
        if (slabs) e = copy_new_slabs(fd, l, slabs);        /* first: what follows is in them */
        uint32_t parts = fdr_load_acquire(&l->parts_first); /* A:part - pairs with R:part */
        if (!e) e = copy_parts(fd, l, parts, &forgets);
        if (!e) e = copy_epochs(fd, l);
        if (!entry) continue;
        parts_first[entry - tail.entry] = parts;
        if (!e) e = copy_new_levels(fd, l, level_blocks[entry - tail.entry]);
        if (!e) e = copy_frozen(fd, l);
        if (!e) e = name_old_table(fd, l, rows_table[entry - tail.entry]);
        if (!e) e = copy_new_slabs(fd, l, slabs); /* what was written just now may lie in some that came meanwhile */
    }
    return e;
}

FDR_RACY static int finish_locations(int fd, const struct fdr_location *first)
{
    uint32_t i = 0;
    int e = copy_new_blocks(fd, first);
    for (const struct fdr_location *l = first; l && !e; l = next_location(l)) {
        struct fdr_tail_entry *entry = entry_of(l, &i);
        if (is_free(l) || (!entry && all_have_entries)) {
            e = leave_out(fd, l);
            continue;
        }
        uint64_t forgets;
        if (entry) e = copy_parts(fd, l, parts_first[entry - tail.entry], &forgets);
        if (!e) e = copy_beginning(fd, l);
        if (!entry) continue;
        entry->presented = presented_of(l);
        entry->under_way |= fdr_load_acquire(&l->busy) != 0;                              /* A:busy */
        entry->end_tick = fdr_load_relaxed(&l->last_tick);                                /* a hint: it moved, or not */
        entry->end_tick += fdr_load_relaxed(&l->depth) != open_calls[entry - tail.entry]; /* calls ended in that tick */
        if (fdr_load_relaxed(&l->flags) & FDR_LOCATION_REWINDS)
            take_rewound(entry, forgets + filtered_of(l) - filtered[entry - tail.entry]);
    }
    return e ? e : fdri_put(fd, &tail, tail_bytes(), fdri_view.bytes);
}

/* Of those that are there the tail has entries, and of some that come meanwhile. */
FDR_RACY uint32_t fdri_section_room(void)
{
    uint64_t entries = 256, most = FDR_TAIL_ENTRIES;
    uint32_t first = fdr_load_acquire(&super()->location_first); /* A:location */
    for (const struct fdr_location *l = first ? at(first) : NULL; l; l = next_location(l))
        entries += !(fdr_load_acquire(&l->flags) & FDR_LOCATION_FREE); /* A:location */
    uint64_t taken = sizeof tail.head + sizeof tail.entry[0] * fdr_min(entries, most) + 4096 + 64;
    return taken < FDR_TAIL_MAX_BYTES ? (uint32_t)(FDR_TAIL_MAX_BYTES - taken) & ~7u : 0;
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
    memset(batch, 0, FDR_SUPERBLOCK_BYTES);
    s->virgin = virgin;
    s->snapshot_number = number;
    s->dropped_bins = dropped;
    s->reason_kind = why->kind;
    memcpy(s->reason, why->reason, sizeof s->reason);
    s->trigger_tick = why->tick;
    s->trigger_value = why->value;
    s->trigger_value_type = why->value_type;
    s->trigger_location = why->location;
    memcpy(s->trigger_name, why->name, sizeof s->trigger_name);
    memcpy(batch, s, sizeof *s);
    fdr_spare_finish(batch, spare);
    return fdri_put(fd, batch, FDR_SUPERBLOCK_BYTES, 0);
}

/* Once more, behind the stacks: what is older than the cut lies in bins that were handed out by now. Meta stays as it
 * was copied. */
static uint64_t bins_by_now(uint64_t virgin)
{
    return (virgin & ~(uint64_t)UINT32_MAX) | (uint32_t)fdr_load_acquire(&super()->virgin); /* A:virgin */
}

FDR_RACY int fdri_copy_arena(int fd, const struct fdri_why *why, uint64_t number)
{
    static struct fdr_superblock before; /* one snapshot at a time */
    uint64_t virgin = 0, dropped = 0;
    bool held = fdri_view.hold();
    struct fdr_clock_reading now = fdr_clock_read(fdri_view.ticks);
    super()->clock_last = (struct fdr_clock_pair){fdri_tick_of(now.tick), now.monotonic_ns, now.realtime_ns, 0};
    fdr_copy_racy(&before, super(), sizeof before);
    before.location_first = fdr_load_acquire(&super()->location_first); /* A:location - pairs with R:location */
    before.notes_off = fdr_load_acquire(&super()->notes_off);           /* A:notes - pairs with R:notes */
    const struct fdr_location *first = before.location_first ? at(before.location_first) : NULL;
    newcomers = before.location_count;
    note_bounds(first);
    int e = copy_meta(fd, &virgin);
    if (!e) e = fdri_notes_put(fd, before.notes_off);
    if (!e) e = copy_stacks(fd, first);
    virgin = bins_by_now(virgin);
    if (!e) e = copy_bins(fd, virgin, &dropped);
    if (!e) e = finish_locations(fd, first);
    struct fdr_spare spare = {0};
    if (!e) e = fdri_put_checks(fd, virgin, tail_bytes(), &spare);
    if (!e) e = put_section(fd, why, &spare, &before.section_off);
    if (!e) e = put_superblock(fd, &before, &spare, why, number, virgin, dropped);
    if (held) fdri_view.release();
    return e;
}
