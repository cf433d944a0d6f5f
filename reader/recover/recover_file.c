/* SPDX-License-Identifier: MIT */
/* Writes a fresh, whole file from whatever is readable. It is a copy of the arena in which every list and chain is
 * correct. Its accounts count the records of bad bins as lost. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "format/arena/crash_section.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"
#include "reader/file/whole_file.h"
#include "reader/recover/recover_image.h"

#include <errno.h>
#include <fcntl.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the image ---- */

static bool all_zero(const uint8_t *p, size_t n) { return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0); }

/* The end of the bins in the image: after the last listed one. */
static uint64_t bins_end(const struct fdr_file *f)
{
    uint64_t end = f->sb.bins_off;
    for (size_t i = 0; i < f->found_count; i++)
        if (f->found[i].listed) end = f->found[i].off + 1ull;
    uint64_t bins = (end - f->sb.bins_off + f->sb.bin_bytes - 1) / f->sb.bin_bytes;
    return f->sb.bins_off + bins * f->sb.bin_bytes;
}

/* The lowest meta block, found by scan if the superblock's border is damaged. */
static uint64_t first_meta(struct fdr_file *f, uint64_t after)
{
    if (f->meta_first > f->sb.bins_off || f->bins_end == f->meta_first) return f->meta_first;
    uint64_t first = f->sb.arena_bytes;
    for (uint32_t kind = 1; kind < FDRI_ARENA_META_FREE; kind++) {
        size_t count;
        const struct fdri_file_meta *m = fdri_file_meta_scan(f, kind, UINT32_MAX, &count);
        for (size_t i = 0; i < count; i++)
            if (m[i].off >= after && m[i].off < first) first = m[i].off;
    }
    return first;
}

/* The greatest size of the image. All old blocks had room in the arena, so new ones fit into as much again. Offsets
 * have 32 bits. */
static uint64_t grow_to(uint64_t arena_bytes)
{
    enum { LEAST = 1 << 20 };
    uint64_t most = UINT32_MAX & ~(uint64_t)(FDRI_ARENA_META_ALIGN - 1);
    return fdri_bits_max(arena_bytes, fdri_bits_min(arena_bytes + fdri_bits_max(arena_bytes, LEAST), most));
}

static void lay_out(struct fdri_recover_image *m)
{
    struct fdr_file *f = m->file;
    struct fdri_arena_superblock *sb = fdri_recover_image_at(m, 0);
    uint64_t end = bins_end(f);
    memcpy(sb, &f->sb, sizeof *sb);
    memcpy(sb->magic, FDRI_ARENA_MAGIC, 8); /* a file of an older format becomes one of the present */
    sb->header_bytes = FDRI_ARENA_SUPERBLOCK_BYTES;
    if (f->bins_end > end && f->bins_end <= f->meta_first) end = f->bins_end;
    m->meta_first = first_meta(f, end);
    /* There is room in the part that was cut off, and between bins and meta blocks. */
    uint64_t cut = (f->end + FDRI_ARENA_META_ALIGN - 1) & ~(uint64_t)(FDRI_ARENA_META_ALIGN - 1);
    m->room[0].low = cut > end ? cut : end;
    m->room[0].high = f->end < m->arena_bytes ? m->arena_bytes : 0;
    m->room[1].low = end;
    m->room[1].high = m->meta_first < cut ? m->meta_first : cut;
    /* Memory that was never used is zero. If it is not, the border is wrong, and good blocks may lie there. */
    if (m->room[1].high > end && !all_zero(m->bytes + end, m->room[1].high - end)) m->room[1].high = end;
    sb->virgin = end;
}

static void finish_superblock(struct fdri_recover_image *m)
{
    struct fdri_arena_superblock *sb = fdri_recover_image_at(m, 0);
    uint64_t end = sb->virgin;
    if (m->meta_first < end) m->meta_first = end;
    sb->virgin = m->meta_first / FDRI_ARENA_META_ALIGN << 32 | (end - sb->bins_off) / sb->bin_bytes;
    if (m->arena_bytes != sb->arena_bytes) sb->bins_total = (uint32_t)((m->arena_bytes - sb->bins_off) / sb->bin_bytes);
    sb->arena_bytes = m->arena_bytes;
    /* a recovered file is to be kept; if a death's section is in another file, it stays there */
    if (sb->state != FDRI_ARENA_STATE_CRASHED) sb->over = sb->over_error = 0;
    sb->free_stack = 0;
    sb->free_bins = 0;
    sb->nodes_off = 0;
    /* the missing records are reported and count as lost, so the new file is complete */
    sb->cut = FDRI_ARENA_TRUNCATED_NOT;
    fdri_arena_spare_begin(sb);
}

/* ---- accounts ---- */

/* Are records missing that no account includes? Accounts include those found missing at an earlier recovery. */
static bool has_gaps(const struct fdri_file_part *p)
{
    bool any = p->tail_gap && !p->tail_gap_accounted;
    for (uint32_t i = 0; i < p->bin_count && !any; i++)
        any = (p->bin[i].gap && !p->bin[i].gap_accounted) || p->bin[i].state == FDRI_FILE_BIN_BAD;
    return any;
}

/* Records of this depth are missing, but the accounts, copied before the bins, do not show it. Flags the partitions
 * that lack them. `l` is the location in the image. */
static void mark_unaccounted(struct fdri_recover_image *m, const struct fdri_file_location *l, uint32_t depth)
{
    const struct fdri_file_location *was = fdri_file_location(m->file, l->id);
    for (uint32_t i = 0; was && i < FDRI_ARENA_BANDS * 2; i++) {
        const struct fdri_file_part *p = fdri_file_part(was, FDRI_ARENA_CLASS_REGION, depth, i / 2, i & 1);
        const struct fdri_file_part *is = fdri_file_part(l, FDRI_ARENA_CLASS_REGION, depth, i / 2, i & 1);
        if (!p || !is || !is->off || !has_gaps(p)) continue;
        struct fdri_arena_part *raw = fdri_recover_image_at(m, is->off);
        raw->flags |= FDRI_ARENA_PART_UNACCOUNTED;
    }
}

/* May the accounts of this row differ from the number presented, though nothing is lost? In a snapshot of a moving
 * location, some events may be in some accounts only. An operation that was under way may have counted its event as
 * presented, and nothing else. */
static bool may_differ(const struct fdr_file *was, const struct fdri_file_location *l, bool moving, uint64_t sum,
                       uint64_t presented)
{
    bool under_way = l->in_tail && l->tail.under_way;
    if (moving && sum > presented) return true;
    return !fdr_file_damage_count(was) && (moving || (under_way && sum + 1 == presented));
}

/* Makes the accounts of one ledger row balance: presented events that are in no account count as lost. Returns the
 * number presented. first: nothing was counted as lost yet; *changed: the accounts changed. */
static uint64_t settle_account(struct fdri_recover_image *m, const struct fdr_file *g, const struct fdr_ledger_row *r,
                               bool first, bool *changed)
{
    uint64_t sum = r->kept + r->filtered + r->reduced + r->lost, most = fdri_bits_max(sum, r->presented);
    const struct fdri_file_location *l = fdri_file_location((struct fdr_file *)(uintptr_t)g, r->location);
    uint64_t *presented, *lost;
    if (first && r->class_ == FDRI_ARENA_CLASS_REGION && sum >= r->presented) mark_unaccounted(m, l, r->depth);
    /* accounts that begin anew make the location look as if it were moving; the tail has the old sums */
    const struct fdri_file_location *was = fdri_file_location(m->file, r->location);
    bool moving = l->moving && !(was && was->accounts_dropped);
    if (sum == r->presented || may_differ(m->file, l, moving, sum, r->presented)) return most;
    if (r->class_ == FDRI_ARENA_CLASS_REGION) {
        const struct fdri_arena_level *v = fdri_file_level(g, l, r->depth);
        if (!v) { /* deeper than the stack: all of these are lost */
            struct fdri_arena_location *raw = fdri_recover_image_at(m, l->off);
            if (!l->off) return r->presented;
            *changed |= raw->lost_overflow != raw->presented_overflow;
            raw->lost_overflow = raw->presented_overflow;
            return r->presented;
        }
        struct fdri_arena_level *w = fdri_recover_image_at(m, (uint64_t)((const uint8_t *)v - g->bytes));
        presented = &w->presented;
        lost = &w->lost;
    } else if (r->class_ == FDRI_ARENA_CLASS_SAMPLE && fdri_events_samples(g, l)) {
        const struct fdri_arena_samples *v = fdri_events_samples(g, l);
        if (r->depth >= FDRI_ARENA_SAMPLE_LEVELS) return most;
        struct fdri_arena_samples *w = fdri_recover_image_at(m, (uint64_t)((const uint8_t *)v - g->bytes));
        presented = &w->level[r->depth].presented;
        lost = &w->level[r->depth].lost;
    } else {
        const struct fdri_arena_level_points *v = fdri_file_points(g, l, r->depth);
        if (!v) return most;
        struct fdri_arena_level_points *w = fdri_recover_image_at(m, (uint64_t)((const uint8_t *)v - g->bytes));
        presented = &w->by_class[r->class_].presented;
        lost = &w->by_class[r->class_].lost;
    }
    if (sum < r->presented) *lost += r->presented - sum;
    else *presented += sum - r->presented;
    *changed = true;
    return most;
}

/* The accounts have fewer events than were over before the copy, so some of them were damaged. */
static void lower_tail_counts(struct fdri_recover_image *m, const struct fdri_file_location *l,
                              struct fdri_arena_tail_entry *e, uint64_t presented)
{
    struct fdri_arena_location *raw = fdri_recover_image_at(m, l->off);
    if (!l->off || !fdr_file_damage_count(m->file)) return;
    e->completed = presented;
    raw->flags |= FDRI_ARENA_LOCATION_ANEW;
}

/* Adapts the location's tail entry to its new accounts. Returns true if the entry changed. */
static bool settle_tail(struct fdri_recover_image *m, uint32_t location, uint64_t presented)
{
    const struct fdri_file_location *l = fdri_file_location(m->file, location);
    struct fdri_arena_tail *tail = fdri_recover_image_at(m, m->arena_bytes);
    struct fdri_arena_tail_entry *e = (void *)(tail + 1);
    bool changed = false;
    if (!l || m->bytes_all == m->arena_bytes) return false;
    for (uint32_t i = 0; i < tail->count; i++) {
        if (e[i].location != location) continue;
        const struct fdri_arena_tail_entry was = e[i];
        if (l->accounts_dropped || e[i].presented < presented) {
            e[i].presented = presented;
            e[i].completed = l->moving ? 0 : presented;
        } else if (e[i].completed > presented) {
            lower_tail_counts(m, l, &e[i], presented);
        }
        changed |= e[i].presented != was.presented || e[i].completed != was.completed;
    }
    return changed;
}

/* Settles all accounts once. *again: accounts or tail changed, so other records may count as kept. */
static bool settle_all(struct fdri_recover_image *m, bool first, bool *again)
{
    char message[128];
    *again = false;
    struct fdr_file *g;
    const struct fdr_ledger_row *rows;
    fdr_file_open_memory(m->bytes, m->bytes_all, &g, message, sizeof message);
    if (!g) return false;
    uint64_t presented = 0;
    size_t n = fdr_ledger(g, &rows);
    for (size_t i = 0; i < n; i++) {
        const struct fdr_ledger_row *r = &rows[i];
        uint64_t now = settle_account(m, g, r, first, again); /* sums of damaged words may overflow */
        presented = now > UINT64_MAX - presented ? UINT64_MAX : presented + now;
        if (i + 1 < n && rows[i + 1].location == r->location) continue;
        *again |= settle_tail(m, r->location, presented);
        presented = 0;
    }
    fdr_file_close(g);
    return true;
}

/* The tail entry of a location. If the tail is lost: as if the location had been quiet. If an intact tail lacks the
 * location, the entry is empty and is not written. */
static struct fdri_arena_tail_entry tail_entry(const struct fdr_file *f, const struct fdri_file_location *l)
{
    if (l->in_tail || (f->has_tail && !f->tail_bad)) {
        struct fdri_arena_tail_entry e = l->tail;
        if (e.completed > e.presented) e.completed = 0; /* one of the two is damaged, so they bound nothing */
        return e;
    }
    return (struct fdri_arena_tail_entry){.location = l->id,
                                          .presented = l->presented_before,
                                          .completed = l->presented_before,
                                          .cut_tick = l->raw.last_tick,
                                          .end_tick = l->raw.last_tick};
}

static void write_tail(struct fdri_recover_image *m)
{
    const struct fdr_file *f = m->file;
    struct fdri_arena_tail tail = {.magic = FDRI_ARENA_TAIL_MAGIC};
    uint8_t *to = m->bytes + m->arena_bytes;
    for (size_t i = 0; i < f->location_count && tail.count < FDRI_ARENA_TAIL_ENTRIES; i++) {
        const struct fdri_file_location *l = &f->location[i];
        struct fdri_arena_tail_entry e = tail_entry(f, l);
        if (!l->in_tail && !(e.presented && l->raw.flags & FDRI_ARENA_LOCATION_LIVE)) continue;
        memcpy(to + sizeof tail + tail.count++ * sizeof e, &e, sizeof e);
    }
    const struct fdri_arena_tail_entry gone = {.location = UINT32_MAX};
    for (uint64_t i = 0; i < f->info.threads_gone && tail.count < FDRI_ARENA_TAIL_ENTRIES; i++)
        memcpy(to + sizeof tail + tail.count++ * sizeof gone, &gone, sizeof gone);
    memcpy(to, &tail, sizeof tail);
    m->bytes_all = m->arena_bytes + sizeof tail + tail.count * sizeof(struct fdri_arena_tail_entry);
}

/* Copies a whole crash section, or the watchdog's section of all stacks; each has its own check. A bundle has no
 * tail. */
static void write_crash(struct fdri_recover_image *m)
{
    const struct fdr_file *f = m->file;
    struct fdri_arena_superblock *sb = fdri_recover_image_at(m, 0);
    struct fdri_arena_crash head;
    bool lost = f->sb.state == FDRI_ARENA_STATE_CRASHED && !(f->without_section && !f->sb.section_off);
    /* points to the end: a section was announced and is lost, not never begun */
    sb->section_off = lost && !f->bundle ? m->arena_bytes : 0;
    if (!f->bundle || (f->has_crash && m->bytes_all != m->arena_bytes)) return;
    uint64_t from = f->has_crash ? f->end : f->sb.section_off, to = (m->bytes_all + 7) & ~7ull;
    memcpy(&head, f->bytes + from, sizeof head);
    memcpy(m->bytes + to, f->bytes + from, head.bytes);
    m->bytes_all = to + head.bytes;
    if (!f->has_crash) sb->section_off = to;
}

/* ---- checks ---- */

/* Meta blocks in pieces of bins are found by their heads. */
static void add_pieces(const struct fdri_recover_image *m, struct fdri_arena_chunk_list *l)
{
    const struct fdri_arena_superblock *sb = fdri_recover_image_at(m, 0);
    uint64_t end = sb->bins_off + (sb->virgin & UINT32_MAX) * sb->bin_bytes;
    for (uint64_t off = sb->bins_off; off < end; off += FDRI_ARENA_BIN_MIN_BYTES) {
        const struct fdri_arena_meta_head *h = fdri_recover_image_at(m, off);
        if (h->magic == FDRI_ARENA_META_MAGIC && h->bytes <= sb->bin_bytes && off + h->bytes <= end)
            fdri_arena_chunks_add(l, off, off + h->bytes);
    }
}

static void write_checks(struct fdri_recover_image *m)
{
    struct fdri_arena_superblock *sb = fdri_recover_image_at(m, 0);
    uint32_t tail = (uint32_t)(m->bytes_all - m->arena_bytes);
    uint64_t off = (m->bytes_all + 7) & ~7ull;
    struct fdri_arena_chunk_list l = {
        .chunk = fdri_recover_image_at(m, off), .log2 = FDRI_ARENA_CHUNK_LOG2_LEAST, .most = FDRI_ARENA_CHUNKS_MOST};
    add_pieces(m, &l);
    fdri_arena_chunks_add(&l, (sb->virgin >> 32) * FDRI_ARENA_META_ALIGN, m->arena_bytes);
    for (uint32_t i = 0; i < l.count; i++)
        l.chunk[i].check = fdri_arena_check32(m->bytes + l.chunk[i].off,
                                              fdri_arena_chunk_bytes(l.chunk[i].off, l.log2, m->arena_bytes));
    /* without any check, a missing section would look like a cut-off one */
    if (!l.count && m->bytes_all == m->arena_bytes) sb->section_off = 0;
    uint32_t bytes = l.count * (uint32_t)sizeof l.chunk[0];
    struct fdri_arena_spare spare = {.tail_check = fdri_arena_check32(m->bytes + m->arena_bytes, tail),
                                     .tail_bytes = tail,
                                     .chunk_log2 = l.log2,
                                     .chunk_count = l.count,
                                     .chunks_check = fdri_arena_check32(l.chunk, bytes),
                                     .chunks_off = off};
    fdri_arena_spare_finish(m->bytes, &spare);
    m->bytes_all = off + bytes;
}

/* ---- the file ---- */

static int write_sparse(int fd, const uint8_t *bytes, uint64_t count)
{
    if (ftruncate(fd, (off_t)count)) return -errno;
    for (uint64_t at = 0; at < count;) {
        size_t n = count - at < 65536 ? (size_t)(count - at) : 65536;
        if (!all_zero(bytes + at, n)) {
            ssize_t done = pwrite(fd, bytes + at, n, (off_t)at);
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) return done < 0 ? -errno : -EIO;
            n = (size_t)done;
        }
        at += n;
    }
    return 0;
}

static int write_file(const struct fdri_recover_image *m, const char *path)
{
    struct fdri_file_whole n;
    int e = fdri_file_whole_begin(&n, path);
    return e ? e : fdri_file_whole_end(&n, path, write_sparse(n.fd, m->bytes, m->bytes_all), true);
}

static void summary(struct fdr_file *f, char *message, size_t message_bytes)
{
    uint64_t bad = 0, good = 0;
    for (size_t i = 0; i < f->location_count; i++)
        for (size_t j = 0; j < f->location[i].part_count; j++)
            for (uint32_t k = 0; k < f->location[i].part[j].bin_count; k++)
                *(f->location[i].part[j].bin[k].state == FDRI_FILE_BIN_BAD ? &bad : &good) += 1;
    snprintf(message, message_bytes, "%llu of %llu bins recovered, %zu findings", (unsigned long long)good,
             (unsigned long long)(good + bad), f->damage_count);
}

/* Builds the arena of the image; tail, section and checks follow later. */
static void build_arena(struct fdri_recover_image *m)
{
    const struct fdr_file *f = m->file;
    memcpy(m->bytes, f->bytes, f->end);
    lay_out(m);
    fdri_recover_definitions(m);
    fdri_recover_notes(m);
    fdri_recover_tallies(m);
    fdri_recover_locations(m);
    fdri_recover_unlisted(m);
    finish_superblock(m);
    m->bytes_all = m->arena_bytes;
}

enum { ROUNDS = 8 }; /* up to three were needed in practice */

static int settle_and_write(struct fdri_recover_image *m, const char *out_path)
{
    const struct fdr_file *f = m->file;
    if (fdri_file_memory_short(f)) return -ENOMEM;
    if (f->has_tail || f->sb.snapshot_number) write_tail(m);
    bool again = true, settled = true;
    for (int i = 0; i < ROUNDS && again && settled; i++) settled = settle_all(m, i == 0, &again);
    if (fdri_file_memory_short(f)) return -ENOMEM;
    if (!settled) return -EBADMSG;
    write_crash(m);
    write_checks(m);
    return write_file(m, out_path);
}

int fdr_file_recover(struct fdr_file *f, const char *out_path, char *message, size_t message_bytes)
{
    char none[1];
    if (!message || !message_bytes) message = none, message_bytes = sizeof none;
    fdr_file_verify(f);
    struct fdri_recover_image m = {.file = f, .arena_bytes = f->sb.arena_bytes, .grow_to = grow_to(f->sb.arena_bytes)};
    uint64_t room = m.grow_to + sizeof(struct fdri_arena_tail) +
                    FDRI_ARENA_TAIL_ENTRIES * sizeof(struct fdri_arena_tail_entry) + 16 +
                    FDRI_ARENA_CHUNKS_MOST * sizeof(struct fdri_arena_chunk) + FDRI_ARENA_CRASH_MAX_BYTES;
    m.bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m.bytes == MAP_FAILED) {
        snprintf(message, message_bytes, "out of memory");
        return -ENOMEM;
    }
    build_arena(&m);
    int result = m.short_of_room ? -ENOSPC : settle_and_write(&m, out_path);
    munmap(m.bytes, room);
    if (m.short_of_room)
        snprintf(message, message_bytes, "cannot write %s: its arena has no room for the rebuilt accounts", out_path);
    else if (result) snprintf(message, message_bytes, "cannot write %s: %s", out_path, strerror(-result));
    else summary(f, message, message_bytes);
    return result;
}
