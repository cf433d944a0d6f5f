/* SPDX-License-Identifier: MIT */
/* Locations in a snapshot (arena_copy.c): before the copy their completed events, then their open calls. Behind the
 * bins follow their new blocks, their partitions again and their entries in the tail. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "export/snapshot/snapshot.h"
#include "export/snapshot/snapshot_parts.h"
#include "format/arena/arena.h"

static struct fdri_arena_level frames[FDRI_ARENA_LEVELS_MAX];

static void *at(uint32_t off) { return fdri_snapshot_view.base + off; }
static struct fdri_arena_superblock *superblock(void) { return (void *)fdri_snapshot_view.base; }
static uint32_t off_of(const struct fdri_arena_location *l)
{
    return (uint32_t)((const uint8_t *)l - fdri_snapshot_view.base);
}

/* ---- stacks ---- */

FDRI_RACY static struct fdri_arena_level *level_of(const struct fdri_arena_location *l, uint32_t depth)
{
    struct fdri_arena_levels_block *b = at(l->levels_off[fdri_arena_level_block(depth)]);
    return &b->level[fdri_arena_level_entry(depth)];
}

FDRI_RACY static bool same_frame(const struct fdri_arena_level *a, const struct fdri_arena_level *b)
{
    return a->enter_tick == b->enter_tick && a->region == b->region && a->flags == b->flags && a->address == b->address;
}

/* Copies the open calls down to `levels`, the levels that the file has by now. Levels added since are copied later,
 * with their open calls. *copied: the number of frames equal in both readings. */
FDRI_RACY static int copy_stack(int fd, const struct fdri_arena_location *l, uint32_t levels, uint32_t *copied)
{
    uint32_t believed = 0;
    uint32_t depth = fdri_atomic_load_acquire(&l->depth); /* A:frame - pairs with R:frame */
    if (depth > fdri_arena_levels_in(l->level_blocks) || depth > FDRI_ARENA_LEVELS_MAX) depth = 0;
    depth = (uint32_t)fdri_bits_min(depth, levels);
    for (uint32_t d = 1; d <= depth; d++) fdri_racy_copy(&frames[d - 1], level_of(l, d), sizeof frames[0]);
    fdri_atomic_fence_acquire(); /* A:frame - the first reading is over before the second begins */
    uint32_t again = fdri_atomic_load_acquire(&l->depth); /* A:frame */
    while (believed < depth && believed < again && same_frame(&frames[believed], level_of(l, believed + 1))) believed++;
    for (uint32_t d = 1; d <= believed; d++) {
        int e = fdri_snapshot_put(fd, &frames[d - 1], sizeof frames[0],
                                  (uint64_t)((uint8_t *)level_of(l, d) - fdri_snapshot_view.base));
        if (e) return e;
    }
    *copied = believed;
    return fdri_snapshot_put(fd, &believed, sizeof believed,
                             (uint64_t)((const uint8_t *)&l->depth - fdri_snapshot_view.base));
}

/* ---- partitions and floors ---- */

/* Copies the list of partitions from `first` on as it is now. *forgets: records that rewinds removed and have not yet
 * counted as filtered. */
FDRI_RACY static int copy_parts(int fd, const struct fdri_arena_location *l, uint32_t first, uint64_t *forgets)
{
    const struct fdri_arena_part *p;
    *forgets = 0;
    int e = fdri_snapshot_put(fd, &first, sizeof first,
                              (uint64_t)((const uint8_t *)&l->parts_first - fdri_snapshot_view.base));
    for (uint32_t off = first; off && off <= fdri_snapshot_view.bytes - sizeof(struct fdri_arena_part) && !e;) {
        struct fdri_arena_part copy;
        p = at(off);
        fdri_racy_copy(&copy, p, sizeof copy);
        uint64_t head = fdri_atomic_load_acquire(&p->list_head); /* A:list - pairs with R:link */
        /* if the partition's newest bin was taken meanwhile, its accounts changed with the head: copy them again */
        if (!(uint32_t)head) fdri_racy_copy(&copy, p, sizeof copy);
        copy.list_head = head;
        /* A:forget - before `filtered` is read again */
        *forgets += copy.rewind_records = fdri_atomic_load_acquire(&p->rewind_records);
        e = fdri_snapshot_put(fd, &copy, sizeof copy, off);
        off = copy.next;
    }
    uint64_t floor = l->floor_tick;
    return e ? e
             : fdri_snapshot_put(fd, &floor, sizeof floor,
                                 (uint64_t)((const uint8_t *)&l->floor_tick - fdri_snapshot_view.base));
}

/* ---- epochs: the table with its rows, as they were at one moment ---- */

enum { EPOCH_TRIES = 16 };

/* Reads table and rows into the batch, one behind the other. False: they changed meanwhile. */
FDRI_RACY static bool read_epochs(const struct fdri_arena_epochs *from, struct fdri_arena_epochs *e,
                                  uint32_t *row_bytes)
{
    uint32_t version = fdri_atomic_load_acquire(&from->version); /* A:epochs - pairs with R:epochs */
    if (version & 1) return false;
    fdri_racy_copy(e, from, sizeof *e);
    *row_bytes = e->row_bytes;
    if (e->count > FDRI_ARENA_EPOCHS_MAX || *row_bytes > 4096) return false;
    for (uint32_t i = 0; i < e->count; i++)
        if (e->epoch[i].rows_off) fdri_racy_copy(fdri_snapshot_batch + i * 4096, at(e->epoch[i].rows_off), *row_bytes);
    fdri_atomic_fence_acquire(); /* A:epochs - the copy was read before this */
    return fdri_atomic_load_relaxed(&from->version) == version;
}

FDRI_RACY static int copy_epochs(int fd, const struct fdri_arena_location *l)
{
    static struct fdri_arena_epochs e; /* one snapshot at a time */
    uint32_t off = l->epochs_off, row_bytes = 0;
    bool good = false;
    if (!off) return 0;
    /* the owner may be waiting for a processor in the middle of a change */
    for (int i = 0; i < EPOCH_TRIES && !good; i++)
        if (!(good = read_epochs(at(off), &e, &row_bytes))) sched_yield();
    if (!good) {
        /* write the head as well: the block may be newer than the copy of its place */
        fdri_racy_copy(&e, at(off), offsetof(struct fdri_arena_epochs, epoch));
        e.version = 1; /* odd: the reader ignores the table */
    }
    int error = fdri_snapshot_put(fd, &e, good ? sizeof e : offsetof(struct fdri_arena_epochs, epoch), off);
    for (uint32_t i = 0; good && i < e.count && !error; i++)
        if (e.epoch[i].rows_off)
            error = fdri_snapshot_put(fd, fdri_snapshot_batch + i * 4096, row_bytes, e.epoch[i].rows_off);
    return error;
}
static_assert(FDRI_ARENA_EPOCHS_MAX * 4096 <= FDRI_SNAPSHOT_BATCH_BYTES, "rows of all epochs fit");

/* ---- accounts ---- */

FDRI_RACY static uint64_t presented_of_level(const struct fdri_arena_level *v)
{
    uint64_t n = fdri_atomic_load_relaxed(&v->presented);
    uint32_t off = fdri_atomic_load_relaxed(&v->points_off);
    /* another location may have taken the block by now, so the offset can be anything */
    if (!off || off > fdri_snapshot_view.bytes - sizeof(struct fdri_arena_level_points)) return n;
    const struct fdri_arena_level_points *points = at(off);
    for (int c = 0; c < FDRI_ARENA_CLASS_COUNT; c++) n += fdri_atomic_load_relaxed(&points->by_class[c].presented);
    return n;
}

FDRI_RACY static uint64_t filtered_of_level(const struct fdri_arena_level *v)
{
    uint64_t n = fdri_atomic_load_relaxed(&v->filtered);
    if (!v->points_off) return n;
    const struct fdri_arena_level_points *points = at(v->points_off);
    for (int c = 0; c < FDRI_ARENA_CLASS_COUNT; c++) n += fdri_atomic_load_relaxed(&points->by_class[c].filtered);
    return n;
}

FDRI_RACY static uint64_t filtered_of(const struct fdri_arena_location *l)
{
    uint64_t n = filtered_of_level(at(l->level0_off));
    for (uint32_t d = 1; d <= fdri_arena_levels_in(l->level_blocks); d++) n += filtered_of_level(level_of(l, d));
    return n;
}

FDRI_RACY uint64_t fdri_snapshot_presented_of(const struct fdri_arena_location *l)
{
    uint64_t n = l->presented_overflow + presented_of_level(at(l->level0_off));
    for (uint32_t d = 1; d <= fdri_arena_levels_in(l->level_blocks); d++) n += presented_of_level(level_of(l, d));
    const struct fdri_arena_samples *s = l->samples_off ? at(l->samples_off) : NULL;
    for (uint32_t i = 0; s && i < FDRI_ARENA_SAMPLE_LEVELS; i++) n += fdri_atomic_load_relaxed(&s->level[i].presented);
    return n;
}

FDRI_RACY static uint64_t completed_of(const struct fdri_arena_location *l)
{
    uint64_t presented = fdri_snapshot_presented_of(l);
    /* A:frame - read after `presented`, so the number of open calls is never too small */
    uint64_t open = (uint64_t)fdri_atomic_load_acquire(&l->depth) + l->overflow;
    return presented > open + 1 ? presented - open - 1 : 0; /* one event may be in progress */
}

/* ---- the noted state of each location ---- */

static struct {
    struct fdri_arena_tail head;
    struct fdri_arena_tail_entry entry[FDRI_ARENA_TAIL_ENTRIES];
} tail;

/* One for each entry of the tail, at the same index. */
static struct noted {
    uint32_t off;          /* of the location; the next four fields: as they were when the copy began */
    uint32_t level_blocks; /* later: the blocks that the file has */
    uint32_t slabs;        /* its newest block of further meta; later: the newest that the file has */
    uint32_t rows_table;   /* the table of its totals */
    uint64_t filtered;     /* only if its thread had rewound by then */
    uint32_t parts_first;  /* the list of partitions when its new blocks were copied */
    uint32_t open_calls;   /* open calls that the copy of its stack has */
} noted[FDRI_ARENA_TAIL_ENTRIES];

/* Locations added during the copy have ids from newcomers_from on. If the tail has room for all locations, one without
 * an entry is new, too. The file may have half of such a location, so it is marked free there. */
static uint32_t newcomers_from;
static bool all_have_entries;

FDRI_RACY static const struct fdri_arena_location *next_location(const struct fdri_arena_location *l)
{
    return l->next ? at(l->next) : NULL;
}

FDRI_RACY static bool is_free(const struct fdri_arena_location *l)
{
    return (fdri_atomic_load_acquire(&l->flags) & FDRI_ARENA_LOCATION_FREE) || l->id >= newcomers_from; /* A:location */
}

FDRI_RACY void fdri_snapshot_locations_note(const struct fdri_arena_location *first, uint32_t newcomers)
{
    newcomers_from = newcomers;
    tail.head = (struct fdri_arena_tail){.magic = FDRI_ARENA_TAIL_MAGIC};
    for (const struct fdri_arena_location *l = first; l && tail.head.count < FDRI_ARENA_TAIL_ENTRIES;
         l = next_location(l)) {
        if (is_free(l)) continue;
        uint32_t i = tail.head.count++, busy = fdri_atomic_load_acquire(&l->busy) != 0; /* A:busy - pairs with R:busy */
        tail.entry[i] = (struct fdri_arena_tail_entry){
            .location = l->id, .under_way = busy, .completed = completed_of(l)};
        noted[i] = (struct noted){
            .off = off_of(l),
            .level_blocks = l->level_blocks,
            .slabs = fdri_atomic_load_acquire(&l->slabs),               /* A:block */
            .rows_table = fdri_atomic_load_acquire(&l->rows_table_off), /* A:rows */
            .filtered = fdri_atomic_load_relaxed(&l->flags) & FDRI_ARENA_LOCATION_REWINDS ? filtered_of(l) : 0};
    }
    all_have_entries = tail.head.count < FDRI_ARENA_TAIL_ENTRIES;
}

/* The entry of l: number *i, or NULL. If hold() failed, the location may have been given to another thread meanwhile;
 * then the entry's location becomes UINT32_MAX. */
FDRI_RACY static struct fdri_arena_tail_entry *tail_entry_of(const struct fdri_arena_location *l, uint32_t *i)
{
    if (*i >= tail.head.count || noted[*i].off != off_of(l)) return NULL;
    struct fdri_arena_tail_entry *entry = &tail.entry[(*i)++];
    if (!is_free(l) && entry->location == l->id) return entry;
    entry->location = UINT32_MAX;
    return NULL;
}

static struct noted *note_of(const struct fdri_arena_tail_entry *entry) { return &noted[entry - tail.entry]; }

/* Calls f for each location. `entry` is NULL if the tail has no room for it. New locations are marked free in the file
 * instead. */
typedef int (*each)(int fd, const struct fdri_arena_location *l, struct fdri_arena_tail_entry *entry);
FDRI_RACY static int for_each(int fd, const struct fdri_arena_location *first, each f)
{
    static const uint32_t nobodys = FDRI_ARENA_LOCATION_FREE;
    uint32_t i = 0;
    int e = 0;
    for (const struct fdri_arena_location *l = first; l && !e; l = next_location(l)) {
        struct fdri_arena_tail_entry *entry = tail_entry_of(l, &i);
        if (is_free(l) || (!entry && all_have_entries))
            e = fdri_snapshot_put(fd, &nobodys, sizeof nobodys,
                                  off_of(l) + offsetof(struct fdri_arena_location, flags));
        else e = f(fd, l, entry);
    }
    return e;
}

/* ---- new since the copy began ---- */

/* Copies blocks of levels added during the copy. The file's location may already name them, but their places were
 * copied earlier. */
FDRI_RACY static int copy_new_levels(int fd, const struct fdri_arena_location *l, uint32_t *known)
{
    uint32_t blocks = l->level_blocks, before = *known;
    uint64_t here = (uint64_t)((const uint8_t *)l - fdri_snapshot_view.base);
    int e = 0;
    if (blocks <= before || blocks > FDRI_ARENA_LEVEL_BLOCKS_MAX) return 0;
    *known = blocks;
    for (uint32_t b = before; b < blocks && !e; b++)
        e = fdri_snapshot_put_live(fd, at(l->levels_off[b]), fdri_arena_levels_bytes(fdri_arena_levels_of(b)),
                                   l->levels_off[b]);
    if (!e)
        e = fdri_snapshot_put_live(fd, (const uint8_t *)l->levels_off, sizeof l->levels_off,
                                   here + offsetof(struct fdri_arena_location, levels_off));
    return e ? e
             : fdri_snapshot_put(fd, &blocks, sizeof blocks, here + offsetof(struct fdri_arena_location, level_blocks));
}

/* Copies the calls that were open when the location stopped storing. The file's location may name that block, but its
 * place was copied earlier. The block never changes. */
FDRI_RACY static int copy_frozen(int fd, const struct fdri_arena_location *l)
{
    int e = 0;
    const struct fdri_arena_frozen *f;
    for (uint32_t off = l->frozen_off; off && !e; off = f->next) {
        f = (const struct fdri_arena_frozen *)at(off);
        e = fdri_snapshot_put_live(fd, (const uint8_t *)f, f->head.bytes, off);
    }
    return e;
}

/* Erases the magic of a bin that the file has at `at_` if it extends beyond `until`. Links in the file may still lead
 * to it. */
FDRI_RACY static int hide_bin(int fd, uint64_t at_, uint64_t until)
{
    static const uint32_t none = 0;
    struct fdri_arena_bin b;
    bool is = pread(fd, &b, sizeof b, (off_t)at_) == sizeof b && b.magic == FDRI_ARENA_BIN_MAGIC && b.size_log2 < 32;
    if (!is || at_ + (1ull << b.size_log2) <= until) return 0;
    return fdri_snapshot_put(fd, &none, sizeof none, at_ + offsetof(struct fdri_arena_bin, magic));
}

/* Erases in the file the larger bins of which [off, off + bytes) is a part now, and smaller bins inside of it. */
FDRI_RACY static int hide_bins(int fd, uint64_t off, uint64_t bytes)
{
    uint64_t bins_off = superblock()->bins_off;
    int e = 0;
    for (uint64_t size = bytes * 2; size <= superblock()->bin_bytes && !e; size *= 2)
        if ((off - bins_off) % size) e = hide_bin(fd, off - (off - bins_off) % size, off);
    for (uint64_t at_ = off + FDRI_ARENA_BIN_MIN_BYTES; at_ < off + bytes && !e; at_ += FDRI_ARENA_BIN_MIN_BYTES)
        e = hide_bin(fd, at_, at_);
    return e;
}

/* Copies memory that became accounts during the copy. The file still has its earlier contents there, a bin or another
 * location's accounts, while rows of totals copied later lead there. If the accounts could not be held, another
 * location may own the chain by now, so it can lead anywhere. The walk ends at anything that is not such a block, or
 * after as many bytes as the arena has. */
FDRI_RACY static int copy_new_slabs(int fd, const struct fdri_arena_location *l, uint32_t *known)
{
    int e = 0;
    uint64_t left = fdri_snapshot_view.bytes;
    uint32_t first = fdri_atomic_load_acquire(&l->slabs), off = first; /* A:block - pairs with R:block */
    while (off && off != *known && !e) {
        if (off % FDRI_ARENA_META_ALIGN || off > fdri_snapshot_view.bytes - sizeof(struct fdri_arena_slab)) return 0;
        const struct fdri_arena_slab *s = at(off);
        uint32_t bytes = fdri_atomic_load_relaxed(&s->head.bytes), next = fdri_atomic_load_relaxed(&s->next);
        bool is = fdri_atomic_load_relaxed(&s->head.magic) == FDRI_ARENA_META_MAGIC &&
                  s->head.kind == FDRI_ARENA_META_SLAB;
        if (!is || bytes < sizeof *s || bytes > fdri_snapshot_view.bytes - off || bytes > left) return 0;
        e = fdri_snapshot_put_live(fd, at(off), bytes, off);
        if (!e && s->in_bins) e = hide_bins(fd, off, bytes);
        left -= bytes;
        off = next;
    }
    if (!e) *known = first;
    return e;
}

/* Stores the offset of the old table of totals. A table added during the copy, and its newest rows, may lie where the
 * copy had already been. The old table and its rows do not change, neither in the file nor in the arena. */
FDRI_RACY static int name_old_table(int fd, const struct fdri_arena_location *l, uint32_t before)
{
    if (l->rows_table_off == before) return 0;
    return fdri_snapshot_put(fd, &before, sizeof before,
                             off_of(l) + offsetof(struct fdri_arena_location, rows_table_off));
}

/* A location's first event sets its clock flag. The flag is copied behind all times of the location's records, rows
 * and stack. Otherwise the reader would take them for times of the other clock. The flag for rewinds must follow all
 * bins. */
FDRI_RACY static int copy_beginning(int fd, const struct fdri_arena_location *l)
{
    fdri_atomic_fence_acquire(); /* A:unit - pairs with R:unit */
    uint64_t start = l->start_tick, flags_at = off_of(l) + offsetof(struct fdri_arena_location, flags);
    uint32_t since = fdri_atomic_load_relaxed(&l->flags) & (FDRI_ARENA_LOCATION_NS | FDRI_ARENA_LOCATION_REWINDS),
             flags;
    int e = fdri_snapshot_put(fd, &start, sizeof start, off_of(l) + offsetof(struct fdri_arena_location, start_tick));
    if (e || !since) return e;
    ssize_t n = pread(fd, &flags, sizeof flags, (off_t)flags_at);
    if (n != sizeof flags) return n < 0 ? -errno : -EIO;
    if (!(since & ~flags)) return 0;
    flags |= since;
    return fdri_snapshot_put(fd, &flags, sizeof flags, flags_at);
}

/* Copies new levels first: the believed open calls are then written over them, and not the reverse. New memory follows;
 * otherwise it would count as new again behind the bins. */
FDRI_RACY static int stack_of(int fd, const struct fdri_arena_location *l, struct fdri_arena_tail_entry *entry)
{
    uint32_t open;
    if (!entry) return copy_stack(fd, l, FDRI_ARENA_LEVELS_MAX, &open);
    struct noted *n = note_of(entry);
    /* A:frame - the tick is read before levels and depth */
    entry->cut_tick = fdri_atomic_load_acquire(&l->last_tick);
    int e = copy_new_levels(fd, l, &n->level_blocks);
    if (!e) e = copy_new_slabs(fd, l, &n->slabs);
    return e ? e : copy_stack(fd, l, fdri_arena_levels_in(n->level_blocks), &n->open_calls);
}

int fdri_snapshot_locations_stacks(int fd, const struct fdri_arena_location *first)
{
    return for_each(fd, first, stack_of);
}

/* Copies new blocks. They may lie where the file has a bin that was given back for them. So the blocks of all locations
 * are written before the first list head is read; no list head read later names such a bin. If a rewind gave back the
 * newest bins, links in the file may still lead there; hide_bins erases those bins. */
FDRI_RACY static int copy_new_blocks(int fd, const struct fdri_arena_location *l, struct fdri_arena_tail_entry *entry)
{
    uint64_t forgets;
    struct noted *n = entry ? note_of(entry) : NULL;
    int e = n ? copy_new_slabs(fd, l, &n->slabs) : 0;           /* first: the blocks below lie in these */
    uint32_t parts = fdri_atomic_load_acquire(&l->parts_first); /* A:part - pairs with R:part */
    if (!e) e = copy_parts(fd, l, parts, &forgets);
    if (!e) e = copy_epochs(fd, l);
    if (!n) return e;
    n->parts_first = parts;
    if (!e) e = copy_new_levels(fd, l, &n->level_blocks);
    if (!e) e = copy_frozen(fd, l);
    if (!e) e = name_old_table(fd, l, n->rows_table);
    uint32_t slabs = n->slabs;
    if (!e) e = copy_new_slabs(fd, l, &n->slabs); /* blocks written just now may lie in slabs added meanwhile */
    return e || slabs == n->slabs ? e : copy_epochs(fd, l); /* and the epochs must match them */
}

/* ---- the tail ---- */

/* Records that rewinds removed during the copy may be missing in the bins and in the accounts, which were copied
 * earlier. So they do not count as completed. A location that only rewinds counts as having moved. */
static void take_rewound(struct fdri_arena_tail_entry *entry, uint64_t records)
{
    entry->completed -= fdri_bits_min(entry->completed, records);
    entry->end_tick += records != 0;
}

FDRI_RACY static int finish_location(int fd, const struct fdri_arena_location *l, struct fdri_arena_tail_entry *entry)
{
    uint64_t forgets = 0;
    struct noted *n = entry ? note_of(entry) : NULL;
    int e = n ? copy_parts(fd, l, n->parts_first, &forgets) : 0;
    if (!e) e = copy_beginning(fd, l);
    if (e || !n) return e;
    entry->presented = fdri_snapshot_presented_of(l);
    entry->under_way |= fdri_atomic_load_acquire(&l->busy) != 0;             /* A:busy */
    entry->end_tick = fdri_atomic_load_relaxed(&l->last_tick);               /* a hint: whether it moved */
    entry->end_tick += fdri_atomic_load_relaxed(&l->depth) != n->open_calls; /* calls ended within that tick */
    if (fdri_atomic_load_relaxed(&l->flags) & FDRI_ARENA_LOCATION_REWINDS)
        take_rewound(entry, forgets + filtered_of(l) - n->filtered);
    return 0;
}

uint32_t fdri_snapshot_tail_bytes(void)
{
    return (uint32_t)(sizeof tail.head + tail.head.count * sizeof tail.entry[0]);
}

int fdri_snapshot_locations_finish(int fd, const struct fdri_arena_location *first)
{
    int e = for_each(fd, first, copy_new_blocks);
    if (!e) e = for_each(fd, first, finish_location);
    return e ? e : fdri_snapshot_put(fd, &tail, fdri_snapshot_tail_bytes(), fdri_snapshot_view.bytes);
}

/* Leaves room for the tail entries of the present locations and of some 256 new ones. */
FDRI_RACY uint32_t fdri_snapshot_section_room(void)
{
    uint64_t entries = 256, most = FDRI_ARENA_TAIL_ENTRIES;
    uint32_t first = fdri_atomic_load_acquire(&superblock()->location_first); /* A:location */
    for (const struct fdri_arena_location *l = first ? at(first) : NULL; l; l = next_location(l))
        entries += !(fdri_atomic_load_acquire(&l->flags) & FDRI_ARENA_LOCATION_FREE); /* A:location */
    uint64_t taken = sizeof tail.head + sizeof tail.entry[0] * fdri_bits_min(entries, most) + 4096 + 64;
    return taken < FDRI_ARENA_TAIL_MAX_BYTES ? (uint32_t)(FDRI_ARENA_TAIL_MAX_BYTES - taken) & ~7u : 0;
}
