/* SPDX-License-Identifier: MIT */
/* Recovers partitions. A bad bin stays in its list as an empty one, so that the floor keeps its time. The records of
 * the bins after it are numbered anew. Bins that no list holds lose their header. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/codec/encode.h"
#include "format/codec/running_check.h"
#include "reader/file/file.h"
#include "reader/recover/recover_image.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static void relink(struct fdri_recover_image *m, const struct fdri_file_location *l, const struct fdri_file_part *p,
                   struct fdri_arena_part *raw)
{
    uint64_t index = p->given_back;
    uint32_t seq = p->bin_count ? p->bin[0].seq : (uint32_t)(raw->list_head >> 32);
    raw->list_head = (uint64_t)seq << 32 | (p->bin_count ? p->bin[0].off : 0);
    raw->open_off = 0;
    /* otherwise the reader would look for bins of the other partition of this identity */
    if (!p->bin_count) raw->open_seq = seq ? seq - 1 : 0;
    raw->bins = p->bin_count;
    raw->bytes = 0;
    raw->total = index;
    uint64_t newest = 0;
    for (uint32_t i = 0; i < p->bin_count; i++) {
        const struct fdri_file_bin *b = &p->bin[i];
        struct fdri_arena_bin *h = fdri_recover_image_at(m, b->off);
        h->seq = seq + i;
        h->first_index = index;
        h->location = l->id;
        /* damaged bins may disagree; all times are in the unit found for the location */
        bool gap = b->gap || (i && b[-1].state == FDRI_FILE_BIN_BAD);
        h->flags = (uint8_t)((l->raw.flags & FDRI_ARENA_LOCATION_NS ? FDRI_ARENA_BIN_NS : 0) |
                             (gap ? FDRI_ARENA_BIN_GAP : 0));
        if (b->state == FDRI_FILE_BIN_BAD) h->base_tick = fdri_bits_max(h->base_tick, newest);
        newest = h->base_tick;
        h->check = fdri_arena_check32((const uint8_t *)h + 8, 40);
        h->next = i + 1 < p->bin_count ? p->bin[i + 1].off : 0;
        h->generation |= 1;
        if (b->state == FDRI_FILE_BIN_BAD)
            h->commit = FDRI_ARENA_COMMIT(0, 0, fdri_codec_check24(FDRI_CODEC_HASH_SEED));
        raw->open_off = b->off;
        raw->open_seq = h->seq;
        raw->total = index;
        raw->bytes += 1u << (b->size_log2 - 9);
        index += FDRI_ARENA_COMMIT_RECORDS(h->commit);
    }
    raw->total = index;
    fdri_codec_encode_close(raw);
    raw->floor_tick = p->floor;
    bool cut = p->tail_gap || (p->bin_count && p->bin[p->bin_count - 1].state == FDRI_FILE_BIN_BAD);
    raw->flags &= (uint8_t) ~(FDRI_ARENA_PART_UNACCOUNTED | FDRI_ARENA_PART_SHORT);
    if (cut) raw->flags |= FDRI_ARENA_PART_SHORT;
    /* the floor is earlier than the oldest bin's begin: records between are damaged, not given back, and hide no
     * calls */
    bool earlier = p->bin_count && p->floor < fdri_file_floor_of_bin(&p->bin[0], p->given_back);
    if (p->floor_unknown || earlier) raw->flags |= FDRI_ARENA_PART_UNACCOUNTED;
    raw->last_tick = p->any ? p->last_tick : p->floor;
}

void fdri_recover_parts(struct fdri_recover_image *m, struct fdri_file_location *l, struct fdri_arena_location *raw)
{
    uint32_t *link = &raw->parts_first;
    for (size_t i = 0; i < l->part_count; i++) {
        struct fdri_file_part *p = &l->part[i];
        uint32_t off = (uint32_t)p->off;
        if (!off) off = fdri_recover_image_meta(m, FDRI_ARENA_META_PART, sizeof(struct fdri_arena_part), l->id);
        if (!off) continue;
        struct fdri_arena_part *part = fdri_recover_image_at(m, off);
        part->depth = p->depth;
        part->class_ = p->class_;
        part->band = p->band;
        if (p->pinned) part->flags |= FDRI_ARENA_PART_PINNED;
        relink(m, l, p, part);
        *link = off;
        link = &part->next;
    }
    *link = 0;
}

/* Does the offset lie within a listed bin? */
static bool is_in_listed_bin(const struct fdr_file *f, uint64_t off)
{
    struct fdri_arena_bin h;
    for (size_t i = 0; i < f->found_count; i++)
        if (f->found[i].listed && f->found[i].off < off && fdri_file_bin_header(f, f->found[i].off, &h) &&
            off - f->found[i].off < 1ull << h.size_log2)
            return true;
    return false;
}

void fdri_recover_unlisted(struct fdri_recover_image *m)
{
    const struct fdr_file *f = m->file;
    for (size_t i = 0; i < f->found_count; i++)
        if (!f->found[i].listed) memset(fdri_recover_image_at(m, f->found[i].off), 0, FDRI_ARENA_BIN_HEADER);
    /* the file may end within a header whose missing bytes were zero */
    uint64_t last = f->end & ~(uint64_t)(FDRI_ARENA_BIN_MIN_BYTES - 1), there = f->end - last;
    const uint32_t magic = FDRI_ARENA_BIN_MAGIC;
    if (there >= sizeof magic && there < FDRI_ARENA_BIN_HEADER && !memcmp(f->bytes + last, &magic, sizeof magic) &&
        !is_in_listed_bin(f, last))
        memset(fdri_recover_image_at(m, last), 0, there);
}
