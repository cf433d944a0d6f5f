/* SPDX-License-Identifier: MIT */
/* Recovers everything but bins and totals: relinks chains, leaves unreadable blocks out, makes missing blocks. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/events/sample_events.h"
#include "reader/file/file.h"
#include "reader/recover/recover_image.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A long-used arena is full of bins and meta blocks. Then new blocks lie after its old end. Otherwise good bins
 * would have no accounts, or no location. */
static uint64_t grow(struct fdri_recover_image *m, uint64_t bytes)
{
    uint64_t off = fdri_bits_align_up(m->arena_bytes, FDRI_ARENA_META_ALIGN);
    if (off > m->grow_to || bytes > m->grow_to - off) {
        m->short_of_room = true;
        return 0;
    }
    m->arena_bytes = off + bytes;
    return off;
}

static uint64_t find_room(struct fdri_recover_image *m, uint64_t bytes)
{
    for (int i = 0; i < 2; i++) {
        if (m->room[i].high < m->room[i].low || m->room[i].high - m->room[i].low < bytes) continue;
        uint64_t off = m->room[i].high -= bytes;
        if (off < m->meta_first) m->meta_first = off;
        return off;
    }
    return grow(m, bytes);
}

uint32_t fdri_recover_image_meta(struct fdri_recover_image *m, enum fdri_arena_meta_kind kind, uint64_t bytes,
                                 uint32_t location)
{
    bytes = fdri_bits_align_up(bytes, FDRI_ARENA_META_ALIGN);
    uint64_t off = find_room(m, bytes);
    if (!off) return 0;
    struct fdri_arena_meta_head *h = fdri_recover_image_at(m, off);
    memset(h, 0, bytes);
    *h = (struct fdri_arena_meta_head){FDRI_ARENA_META_MAGIC, (uint16_t)kind, 0, (uint32_t)bytes, location};
    return (uint32_t)off;
}

/* ---- definitions ---- */

/* Is this a block's head? A name in a definition may begin like one. */
static bool is_head(const struct fdri_recover_image *m, const struct fdri_arena_meta_head *h)
{
    return h->magic == FDRI_ARENA_META_MAGIC && h->kind && h->kind <= FDRI_ARENA_META_TALLIES && !h->units_log2 &&
           h->bytes && h->bytes % FDRI_ARENA_META_ALIGN == 0 && h->bytes <= m->arena_bytes;
}

/* The bytes of a definitions block that are its own: a damaged length may reach into other blocks. If checks confirm
 * the length, a head inside of the block is only damage. */
static uint32_t own_bytes(const struct fdri_recover_image *m, const struct fdri_file_defs *b)
{
    bool checked = m->file->bad_count > 0;
    if (checked && !fdri_file_is_suspect(m->file, b->off, sizeof(struct fdri_arena_defs_block))) return b->used;
    uint32_t at = (sizeof(struct fdri_arena_defs_block) + FDRI_ARENA_META_ALIGN - 1) & ~(FDRI_ARENA_META_ALIGN - 1u);
    for (; !m->file->sound && at < sizeof(struct fdri_arena_defs_block) + b->used; at += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_meta_head *h = fdri_recover_image_at(m, b->off + at);
        if (is_head(m, h)) return at - (uint32_t)sizeof(struct fdri_arena_defs_block);
    }
    return b->used;
}

/* Moves the good records of a block together and counts them. */
static void compact_definitions(struct fdri_recover_image *m, const struct fdri_file_defs *from, uint64_t *vain,
                                uint32_t *count)
{
    struct fdri_arena_defs_block *b = fdri_recover_image_at(m, from->off);
    uint8_t *to = (uint8_t *)(b + 1);
    uint32_t used = 0, all = own_bytes(m, from);
    for (uint32_t at = 0; at < all;) {
        uint32_t bytes = fdri_file_def_bytes(to + at, all - at, vain);
        if (bytes) {
            memmove(to + used, to + at, bytes);
            uint32_t kind = ((const struct fdri_arena_def *)(to + used))->kind;
            if (kind < FDRI_FILE_KINDS) count[kind]++;
            used += bytes;
        }
        at += bytes ? bytes : 8;
    }
    memset(to + used, 0, all - used);
    b->used = used;
    b->head.bytes = (uint32_t)(sizeof *b + used + 63) & ~63u; /* the same value as after another recovery */
}

void fdri_recover_definitions(struct fdri_recover_image *m)
{
    const struct fdr_file *f = m->file;
    struct fdri_arena_superblock *sb = fdri_recover_image_at(m, 0);
    uint32_t *link = &sb->defs_first;
    uint32_t kept[FDRI_FILE_KINDS] = {0};
    uint64_t vain = 0;
    sb->defs_last = 0;
    for (size_t i = 0; i < f->defs_count; i++) {
        compact_definitions(m, &f->defs[i], &vain, kept);
        *link = sb->defs_last = (uint32_t)f->defs[i].off;
        link = &((struct fdri_arena_defs_block *)fdri_recover_image_at(m, f->defs[i].off))->next;
    }
    *link = 0;
    for (uint32_t kind = 1; kind < FDRI_FILE_KINDS; kind++) /* definitions of equal id count once */
        sb->def_count[kind] = (uint32_t)fdri_bits_min(f->definitions[kind].count, kept[kind]);
}

/* ---- notes ---- */

/* Ends the chain before the first missing block. */
void fdri_recover_notes(struct fdri_recover_image *m)
{
    uint32_t *link = &((struct fdri_arena_superblock *)fdri_recover_image_at(m, 0))->notes_off;
    struct fdri_file_chain chain = {0};
    while (*link && !fdri_file_goes_round(&chain, *link)) {
        if (!fdri_file_meta_at(m->file, *link, FDRI_ARENA_META_NOTES, UINT32_MAX,
                               sizeof(struct fdri_arena_notes_block)))
            break;
        link = &((struct fdri_arena_notes_block *)fdri_recover_image_at(m, *link))->next;
    }
    *link = 0;
}

/* ---- locations ---- */

static void fix_level(struct fdri_recover_image *m, struct fdri_file_location *l, struct fdri_arena_location *raw,
                      uint32_t block)
{
    raw->levels_off[block] = (uint32_t)l->levels_off[block];
    if (raw->levels_off[block]) return;
    l->accounts_dropped = true;
    uint32_t bytes = fdri_arena_levels_bytes(fdri_arena_levels_of(block));
    uint32_t off = fdri_recover_image_meta(m, FDRI_ARENA_META_LEVELS, bytes, l->id);
    if (off) ((struct fdri_arena_levels_block *)fdri_recover_image_at(m, off))->index = block;
    raw->levels_off[block] = off;
}

/* Does the class have its accounts in the levels? Samples have their own accounts and no level. */
static bool of_levels(const struct fdri_recover_image *m, const struct fdri_file_location *l,
                      const struct fdri_file_part *p)
{
    return p->class_ != FDRI_ARENA_CLASS_SAMPLE || !fdri_events_samples(m->file, l);
}

static void fix_levels(struct fdri_recover_image *m, struct fdri_file_location *l, struct fdri_arena_location *raw)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < l->part_count; i++)
        if (l->part[i].depth > deepest && of_levels(m, l, &l->part[i])) deepest = l->part[i].depth;
    uint32_t blocks = deepest ? fdri_arena_level_block(deepest) + 1 : 0;
    raw->level_blocks = l->raw.level_blocks > blocks ? l->raw.level_blocks : blocks;
    for (uint32_t i = 0; i < raw->level_blocks; i++) {
        fix_level(m, l, raw, i);
        if (!raw->levels_off[i]) raw->level_blocks = i;
    }
    if (!fdri_file_level(m->file, l, 0)) {
        l->accounts_dropped = true;
        uint32_t off = fdri_recover_image_meta(m, FDRI_ARENA_META_LEVELS, fdri_arena_levels_bytes(1), l->id);
        if (off) ((struct fdri_arena_levels_block *)fdri_recover_image_at(m, off))->index = UINT32_MAX;
        raw->level0_off = off ? off + (uint32_t)offsetof(struct fdri_arena_levels_block, level) : 0;
    }
    bool went_on = l->moving && !l->stopped; /* some of the frames were over at the cut */
    raw->depth = went_on ? (uint32_t)fdri_bits_min(l->frame_count, l->live_count) : l->live_count;
    if (!l->stopped) raw->frozen_off = 0;
}

/* Clears the offsets that lead to no points block. */
static void clear_points(struct fdri_recover_image *m, struct fdri_file_location *l,
                         const struct fdri_arena_location *raw)
{
    for (uint32_t d = 0; d <= fdri_arena_levels_in(raw->level_blocks); d++) {
        const struct fdri_arena_level *v = fdri_file_level(m->file, l, d);
        if (!v || !v->points_off || fdri_file_points(m->file, l, d)) continue;
        uint64_t off = (uint64_t)((const uint8_t *)v - m->file->bytes);
        ((struct fdri_arena_level *)fdri_recover_image_at(m, off))->points_off = 0;
        l->accounts_dropped = true;
    }
}

/* Makes a points block for every depth with points, so that they have accounts. clear_points must have run. */
static void fix_points(struct fdri_recover_image *m, struct fdri_file_location *l,
                       const struct fdri_arena_location *raw)
{
    for (size_t i = 0; i < l->part_count; i++) {
        const struct fdri_file_part *p = &l->part[i];
        uint32_t block = p->depth ? fdri_arena_level_block(p->depth) : 0;
        if (p->class_ == FDRI_ARENA_CLASS_REGION || fdri_file_points(m->file, l, p->depth)) continue;
        if (p->depth ? block >= raw->level_blocks : !raw->level0_off) continue;
        struct fdri_arena_levels_block *levels = p->depth ? fdri_recover_image_at(m, raw->levels_off[block]) : NULL;
        struct fdri_arena_level *v = levels ? &levels->level[fdri_arena_level_entry(p->depth)]
                                            : fdri_recover_image_at(m, raw->level0_off);
        if (!v->points_off)
            v->points_off = fdri_recover_image_meta(m, FDRI_ARENA_META_POINTS, sizeof(struct fdri_arena_level_points),
                                                    l->id);
    }
}

static void drop_accounts_of_samples(struct fdri_recover_image *m, struct fdri_file_location *l)
{
    const struct fdri_arena_samples *s = fdri_events_samples(m->file, l);
    uint64_t off = s ? (uint64_t)((const uint8_t *)s - m->file->bytes) : 0;
    struct fdri_arena_samples *w = fdri_recover_image_at(m, off);
    for (uint32_t i = 0; s && i < FDRI_ARENA_SAMPLE_LEVELS; i++) {
        uint64_t at = off + (uint64_t)((const uint8_t *)&s->level[i] - (const uint8_t *)s);
        if (!fdri_file_is_suspect(m->file, at, sizeof s->level[i])) continue;
        w->level[i].presented = w->level[i].filtered = w->level[i].reduced_gate = w->level[i].lost = 0;
        l->accounts_dropped = true;
    }
}

/* Zeroes damaged accounts. recover_file.c settles them anew from the kept records. */
static void drop_accounts(struct fdri_recover_image *m, struct fdri_file_location *l, struct fdri_arena_location *raw)
{
    const uint8_t *base = m->file->bytes;
    /* raw->level_blocks is not repaired yet */
    for (uint32_t d = 0; d <= fdri_arena_levels_in(l->raw.level_blocks); d++) {
        const struct fdri_arena_level *v = fdri_file_level(m->file, l, d);
        const struct fdri_arena_level_points *p = fdri_file_points(m->file, l, d);
        if (v && fdri_file_is_suspect(m->file, (uint64_t)((const uint8_t *)v - base), sizeof *v)) {
            struct fdri_arena_level *w = fdri_recover_image_at(m, (uint64_t)((const uint8_t *)v - base));
            w->presented = w->filtered = w->reduced_gate = w->lost = 0;
            l->accounts_dropped = true;
        }
        if (p && fdri_file_is_suspect(m->file, (uint64_t)((const uint8_t *)p - base), sizeof *p)) {
            struct fdri_arena_level_points *w = fdri_recover_image_at(m, (uint64_t)((const uint8_t *)p - base));
            memset(w->by_class, 0, sizeof w->by_class);
            l->accounts_dropped = true;
        }
    }
    drop_accounts_of_samples(m, l);
    if (!l->block_damaged) return;
    raw->lost_overflow = raw->presented_overflow = 0;
    raw->floor_tick = 0;
    raw->reductions_dropped_events = raw->reductions_dropped_bytes = 0;
    if (!fdri_file_meta_at(m->file, raw->epochs_off, FDRI_ARENA_META_EPOCHS, l->id, sizeof(struct fdri_arena_epochs)))
        raw->epochs_off = 0;
    l->accounts_dropped = true;
}

size_t fdri_recover_first_of(const void *rows, size_t count, size_t bytes, size_t at, uint32_t location)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t half = low + (high - low) / 2;
        uint32_t here;
        memcpy(&here, (const uint8_t *)rows + half * bytes + at, sizeof here);
        if (here < location) low = half + 1;
        else high = half;
    }
    return low;
}

/* Does another block begin inside of these bytes? Then one of the two was written to a wrong place. */
static bool holds_another(struct fdr_file *f, uint64_t off, uint64_t bytes)
{
    size_t count;
    fdri_file_meta_scan(f, FDRI_ARENA_META_PART, UINT32_MAX, &count); /* scans for blocks of all kinds */
    for (size_t i = 0; i < f->meta_count; i++)
        if (f->meta[i].off > off && f->meta[i].off - off < bytes) return true;
    return false;
}

/* Drops the lines that the reader does not show. If another block lies in these bytes, all lines go. No account
 * depends on lines. */
static void fix_reductions(struct fdri_recover_image *m, const struct fdri_file_location *l,
                           struct fdri_arena_location *raw)
{
    struct fdri_arena_reductions_block *w = fdri_recover_image_at(m, raw->reductions_off);
    const struct fdri_arena_reductions_block *b = (const void *)fdri_file_meta_at(
        m->file, raw->reductions_off, FDRI_ARENA_META_REDUCTIONS, l->id, sizeof *b);
    uint32_t count = raw->reduction_count, kept = 0;
    uint32_t first = count > FDRI_ARENA_REDUCTION_LINES ? count - FDRI_ARENA_REDUCTION_LINES : 0;
    struct fdri_arena_reduction line[FDRI_ARENA_REDUCTION_LINES];
    for (uint32_t i = first; b && i < count; i++) {
        const struct fdri_arena_reduction *r = &b->line[i % FDRI_ARENA_REDUCTION_LINES];
        if (fdri_account_reduction_good(m->file, r)) line[kept++] = *r;
    }
    if (b && kept == count - first) return;
    if (b && holds_another(m->file, raw->reductions_off, sizeof *b)) kept = 0;
    raw->reduction_count = kept;
    if (kept) memcpy(w->line, line, kept * sizeof line[0]);
    else raw->reductions_off = 0;
}

static void recover_location(struct fdri_recover_image *m, struct fdri_file_location *l, uint32_t **link)
{
    const uint32_t of_bins = FDRI_ARENA_LOCATION_NS | FDRI_ARENA_LOCATION_READINGS; /* flags that the bins confirm */
    uint32_t off = (uint32_t)l->off;
    if (!off) off = fdri_recover_image_meta(m, FDRI_ARENA_META_LOCATION, sizeof(struct fdri_arena_location), l->id);
    if (!off) return;
    struct fdri_arena_location *raw = fdri_recover_image_at(m, off);
    raw->id = raw->head.location = l->id;
    if (!l->off) {
        raw->parent = UINT32_MAX;
        raw->start_tick = l->from_tick;
    }
    raw->busy = 0;
    raw->flags = (raw->flags & ~of_bins) | (l->raw.flags & of_bins);
    if (l->off) drop_accounts(m, l, raw);
    fix_levels(m, l, raw);
    clear_points(m, l, raw);
    fix_points(m, l, raw);
    fdri_recover_epochs(m, l, raw);
    fix_reductions(m, l, raw);
    fdri_recover_totals(m, l, raw);
    fdri_recover_parts(m, l, raw);
    if (!l->off || l->accounts_dropped) raw->flags |= FDRI_ARENA_LOCATION_ANEW;
    if (l->parts_lost) raw->flags |= FDRI_ARENA_LOCATION_PARTS_LOST;
    **link = off;
    *link = &raw->next;
    ((struct fdri_arena_superblock *)fdri_recover_image_at(m, 0))->location_count++;
}

void fdri_recover_locations(struct fdri_recover_image *m)
{
    struct fdri_arena_superblock *sb = fdri_recover_image_at(m, 0);
    uint32_t *link = &sb->location_first;
    sb->location_count = 0;
    sb->fold_off = 0; /* opening the file undid an interrupted fold */
    for (size_t i = 0; i < m->file->location_count; i++) recover_location(m, &m->file->location[i], &link);
    *link = 0;
}
