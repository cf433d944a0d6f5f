/* SPDX-License-Identifier: MIT */
#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "format/codec/encode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "format/codec/running_check.h"
#include "tests/support/arena_builder.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct built_location {
    uint32_t off;
    struct fdri_codec_point_table **table; /* by partition, in the order of creation */
    uint32_t table_count;
};
struct builder {
    uint8_t *base;
    uint64_t bytes;
    struct builder_options set;
    uint64_t bin_next, piece_next, piece_end; /* whole bins; the bin that is being split into pieces */
    uint64_t meta;
    struct built_location location[64];
    uint32_t location_count;
};

static void *at(struct builder *b, uint64_t off) { return b->base + off; }
static struct fdri_arena_superblock *super(struct builder *b) { return at(b, 0); }

static void set_virgin(struct builder *b)
{
    struct fdri_arena_superblock *s = super(b);
    uint64_t bins = (b->bin_next - s->bins_off) / s->bin_bytes;
    s->virgin = (b->meta / FDRI_ARENA_META_ALIGN) << 32 | bins;
}

static uint32_t meta(struct builder *b, enum fdri_arena_meta_kind kind, uint32_t bytes, uint32_t location)
{
    bytes = (bytes + 63) & ~63u;
    b->meta -= bytes;
    assert(b->meta > b->bin_next);
    struct fdri_arena_meta_head *h = at(b, b->meta);
    *h = (struct fdri_arena_meta_head){FDRI_ARENA_META_MAGIC, (uint16_t)kind, 0, bytes, location};
    set_virgin(b);
    return (uint32_t)b->meta;
}

struct builder *builder_new(const struct builder_options *options)
{
    struct builder *b = calloc(1, sizeof *b);
    b->set = *options;
    if (!b->set.arena_bytes) b->set.arena_bytes = 16u << 20;
    if (!b->set.bin_bytes) b->set.bin_bytes = 4096;
    for (int i = 0; i < 3; i++)
        if (!b->set.edge[i]) b->set.edge[i] = 64ull << 4 * i;
    if (!b->set.ticks_per_second) b->set.ticks_per_second = 1000000000;
    b->bytes = b->set.arena_bytes;
    b->base = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert(b->base != MAP_FAILED);
    struct fdri_arena_superblock *s = super(b);
    memcpy(s->magic, FDRI_ARENA_MAGIC, 8);
    s->format_version = FDRI_ARENA_FORMAT_VERSION;
    s->header_bytes = FDRI_ARENA_SUPERBLOCK_BYTES;
    s->arena_bytes = b->bytes;
    s->bin_bytes = b->set.bin_bytes;
    s->bins_off = s->bin_bytes > FDRI_ARENA_SUPERBLOCK_BYTES ? s->bin_bytes : FDRI_ARENA_SUPERBLOCK_BYTES;
    s->bins_total = (uint32_t)((b->bytes - s->bins_off) / s->bin_bytes);
    s->state = FDRI_ARENA_STATE_FINALIZED;
    s->clock_kind = b->set.tsc ? FDRI_ARENA_CLOCK_TSC : FDRI_ARENA_CLOCK_NS;
    s->shift = b->set.shift;
    s->ticks_per_second = b->set.ticks_per_second;
    s->clock_start = (struct fdri_arena_clock_pair){b->set.tsc ? 1000 : 0, b->set.tsc ? 5000000000u : 0, 7000000000u,
                                                    0};
    s->clock_last = s->clock_start;
    s->rank = -1;
    s->band_edge_count = 3;
    memcpy(s->band_edge, b->set.edge, sizeof s->band_edge);
    b->bin_next = b->piece_next = b->piece_end = s->bins_off;
    b->meta = b->bytes;
    set_virgin(b);
    return b;
}

void builder_free(struct builder *b)
{
    for (uint32_t i = 0; i < b->location_count; i++) {
        for (uint32_t j = 0; j < b->location[i].table_count; j++) free(b->location[i].table[j]);
        free(b->location[i].table);
    }
    munmap(b->base, b->bytes);
    free(b);
}

/* ---- definitions ---- */

static uint32_t define(struct builder *b, enum fdri_arena_def_kind kind, const char *name, const char *file,
                       uint32_t line, uint64_t address, uint64_t value2)
{
    struct fdri_arena_superblock *s = super(b);
    uint32_t text = ((uint32_t)(strlen(name) + strlen(file) + 2) + 7) & ~7u,
             bytes = (uint32_t)sizeof(struct fdri_arena_def) + text;
    struct fdri_arena_defs_block *block = s->defs_last ? at(b, s->defs_last) : NULL;
    if (!block || block->head.bytes - sizeof *block - block->used < bytes) {
        uint32_t off = meta(b, FDRI_ARENA_META_DEFS, 4096, UINT32_MAX);
        if (block) block->next = off;
        else s->defs_first = off;
        s->defs_last = off;
        block = at(b, off);
    }
    struct fdri_arena_def *d = (void *)((uint8_t *)(block + 1) + block->used);
    *d = (struct fdri_arena_def){.bytes = bytes,
                                 .kind = (uint16_t)kind,
                                 .id = ++s->def_count[kind],
                                 .line = line,
                                 .value = address,
                                 .value2 = value2,
                                 .name_bytes = (uint16_t)strlen(name),
                                 .file_bytes = (uint16_t)strlen(file)};
    strcpy((char *)(d + 1), name);
    strcpy((char *)(d + 1) + strlen(name) + 1, file);
    d->check = fdri_arena_check32(d, bytes);
    block->used += bytes;
    return d->id;
}

uint32_t builder_define(struct builder *b, enum fdri_arena_def_kind kind, const char *name, const char *file,
                        uint32_t line)
{
    return define(b, kind, name, file, line, 0, 0);
}

uint32_t builder_module(struct builder *b, const char *path, const char *build_id, uint64_t address, uint64_t bytes)
{
    return define(b, FDRI_ARENA_DEF_MODULE, path, build_id, 0, address, bytes);
}

uint32_t builder_function(struct builder *b, uint64_t address, uint32_t module)
{
    return define(b, FDRI_ARENA_DEF_REGION, "", "", 0, address, module);
}

/* ---- locations and levels ---- */

struct fdri_arena_location *builder_raw(struct builder *b, uint32_t location)
{
    return at(b, b->location[location].off);
}
uint32_t builder_depth(const struct builder *b, uint32_t location)
{
    return builder_raw((struct builder *)(uintptr_t)b, location)->depth;
}

uint32_t builder_location(struct builder *b, const char *name)
{
    struct fdri_arena_superblock *s = super(b);
    uint32_t id = s->location_count++;
    assert(b->location_count < 64);
    b->location[b->location_count++].off = meta(b, FDRI_ARENA_META_LOCATION, sizeof(struct fdri_arena_location), id);
    struct fdri_arena_location *l = builder_raw(b, id);
    l->id = id;
    l->next = s->location_first;
    l->parent = UINT32_MAX;
    l->flags = b->set.tsc ? 0 : FDRI_ARENA_LOCATION_NS;
    snprintf(l->name, sizeof l->name, "%s", name);
    l->level0_off = meta(b, FDRI_ARENA_META_LEVELS, fdri_arena_levels_bytes(1), id) + 64;
    ((struct fdri_arena_levels_block *)at(b, l->level0_off - 64))->index = UINT32_MAX;
    s->location_first = b->location[id].off;
    return id;
}

static struct fdri_arena_level *level(struct builder *b, uint32_t location, uint32_t depth)
{
    struct fdri_arena_location *l = builder_raw(b, location);
    if (depth == 0) return at(b, l->level0_off);
    while (fdri_arena_levels_in(l->level_blocks) < depth) {
        uint32_t off = meta(b, FDRI_ARENA_META_LEVELS, fdri_arena_levels_bytes(fdri_arena_levels_of(l->level_blocks)),
                            location);
        ((struct fdri_arena_levels_block *)at(b, off))->index = l->level_blocks;
        l->levels_off[l->level_blocks++] = off;
    }
    struct fdri_arena_levels_block *block = at(b, l->levels_off[fdri_arena_level_block(depth)]);
    return &block->level[fdri_arena_level_entry(depth)];
}

static struct fdri_arena_level_points *points(struct builder *b, uint32_t location, uint32_t depth)
{
    struct fdri_arena_level *v = level(b, location, depth);
    if (!v->points_off)
        v->points_off = meta(b, FDRI_ARENA_META_POINTS, sizeof(struct fdri_arena_level_points), location);
    return at(b, v->points_off);
}

/* ---- partitions and bins ---- */

struct fdri_arena_part *builder_part(struct builder *b, uint32_t location, uint32_t class_, uint32_t depth,
                                     uint32_t band)
{
    uint32_t *slot = class_ == FDRI_ARENA_CLASS_REGION ? &level(b, location, depth)->part[band]
                                                       : &points(b, location, depth)->by_class[class_].part;
    if (*slot) return at(b, *slot);
    struct fdri_arena_location *l = builder_raw(b, location);
    struct built_location *built = &b->location[location];
    *slot = meta(b, FDRI_ARENA_META_PART, sizeof(struct fdri_arena_part), location);
    struct fdri_arena_part *p = at(b, *slot);
    p->depth = (uint16_t)depth;
    p->class_ = (uint8_t)class_;
    p->band = (uint8_t)band;
    p->next = l->parts_first;
    l->parts_first = *slot;
    built->table = realloc(built->table, (built->table_count + 1) * sizeof *built->table);
    built->table[built->table_count] = calloc(1, sizeof **built->table);
    p->table_off = built->table_count++;
    return p;
}

/* Returns the place for a bin of this size: a whole bin, or the next piece of the bin being split. */
static uint32_t take(struct builder *b, uint32_t bytes)
{
    struct fdri_arena_superblock *s = super(b);
    uint64_t off = (b->piece_next + bytes - 1) / bytes * bytes;
    if (bytes == s->bin_bytes || off + bytes > b->piece_end) {
        off = b->bin_next;
        b->bin_next += s->bin_bytes;
        assert(b->bin_next < b->meta);
        set_virgin(b);
        if (bytes == s->bin_bytes) return (uint32_t)off;
        b->piece_end = b->bin_next;
    }
    b->piece_next = off + bytes;
    return (uint32_t)off;
}

static void open_bin(struct builder *b, uint32_t location, struct fdri_arena_part *p, uint32_t base_ordinal)
{
    struct fdri_arena_superblock *s = super(b);
    struct fdri_arena_bin *old = p->open_off ? at(b, p->open_off) : NULL;
    if (old) p->total = old->first_index + FDRI_ARENA_COMMIT_RECORDS(p->progress);
    uint32_t bytes = p->open_seq >= 7 ? s->bin_bytes : 512u << p->open_seq;
    if (bytes > s->bin_bytes) bytes = s->bin_bytes;
    uint32_t off = take(b, bytes),
             bits = p->class_ == FDRI_ARENA_CLASS_REGION ? FDRI_CODEC_CALL_BITS_MAX : FDRI_CODEC_POINT_BITS_MAX;
    struct fdri_arena_bin *h = at(b, off);
    *h = (struct fdri_arena_bin){.magic = FDRI_ARENA_BIN_MAGIC,
                                 .location = location,
                                 .seq = ++p->open_seq,
                                 .depth = p->depth,
                                 .class_ = p->class_,
                                 .band = p->band,
                                 .flags = b->set.tsc ? 0 : FDRI_ARENA_BIN_NS,
                                 .size_log2 = (uint8_t)__builtin_ctz(bytes),
                                 .base_ordinal = base_ordinal,
                                 .base_tick = p->last_tick,
                                 .first_index = p->total,
                                 .commit = FDRI_ARENA_COMMIT(0, 0, fdri_codec_check24(FDRI_CODEC_HASH_SEED)),
                                 .generation = 1};
    h->check = fdri_arena_check32((uint8_t *)h + 8, 40);
    p->open_off = off;
    p->size_log2 = h->size_log2;
    fdri_codec_encode_begin(p, &b->location[location].table[p->table_off]->t, (uint8_t *)(h + 1), bytes, bits);
    if (old) old->next = off;
    else p->list_head = (uint64_t)h->seq << 32 | off;
}

static struct fdri_arena_bin *room(struct builder *b, uint32_t location, struct fdri_arena_part *p)
{
    const struct fdri_arena_level *v = level(b, location, p->depth);
    if (!p->open_off || fdri_codec_encode_full(p))
        open_bin(b, location, p, v->zero_tick == p->last_tick ? v->zero_count : 0);
    return at(b, p->open_off);
}

/* ---- events ---- */

void builder_enter(struct builder *b, uint32_t location, uint32_t region, uint64_t tick)
{
    struct fdri_arena_location *l = builder_raw(b, location);
    struct fdri_arena_level *v = level(b, location, l->depth + 1);
    assert(tick >= l->last_tick);
    v->enter_tick = tick;
    v->region = region;
    v->flags = 0;
    v->presented++;
    l->depth++;
    l->last_tick = tick;
}

static struct fdri_codec_tie call_tie(struct builder *b, uint32_t location, uint32_t depth, uint64_t stored)
{
    struct fdri_codec_tie tie = {0};
    if (depth < 2) return tie;
    const struct fdri_arena_level *parent = level(b, location, depth - 1);
    tie.parent_in_tick = parent->enter_tick >> b->set.shift == stored;
    tie.parent = tie.parent_in_tick && parent->zero_tick == stored ? parent->zero_count : 0;
    return tie;
}

static void store_call(struct builder *b, uint32_t location, uint32_t depth, uint64_t enter, uint64_t leave)
{
    struct fdri_arena_level *v = level(b, location, depth);
    uint64_t duration = leave - enter;
    uint32_t band = 0;
    for (int i = 0; i < 3; i++) band += duration >= b->set.edge[i];
    struct fdri_arena_part *p = builder_part(b, location, FDRI_ARENA_CLASS_REGION, depth, band);
    struct fdri_arena_bin *h = room(b, location, p);
    struct fdri_codec_tie tie = call_tie(b, location, depth, leave);
    tie.has_ordinal = duration && v->flags & FDRI_ARENA_LEVEL_ORDINAL;
    tie.ordinal = v->zero_tick == enter ? v->zero_count : 0;
    fdri_codec_encode_call(p, &b->location[location].table[p->table_off]->t, (uint8_t *)(h + 1), v->region,
                           enter - p->last_tick, duration, &tie);
    if (!duration) {
        if (v->zero_tick != leave) v->zero_tick = leave, v->zero_count = 0;
        v->zero_count++;
    }
    p->last_tick = leave;
    h->commit = fdri_codec_commit_word(p);
}

static void leave_call(struct builder *b, uint32_t location, uint64_t tick, bool store)
{
    struct fdri_arena_location *l = builder_raw(b, location);
    struct fdri_arena_level *v = level(b, location, l->depth);
    assert(l->depth && tick >= l->last_tick);
    if (store) store_call(b, location, l->depth, v->enter_tick >> b->set.shift, tick >> b->set.shift);
    else v->lost++;
    l->depth--;
    l->last_tick = tick;
}
void builder_leave(struct builder *b, uint32_t location, uint64_t tick) { leave_call(b, location, tick, true); }
void builder_leave_lost(struct builder *b, uint32_t location, uint64_t tick) { leave_call(b, location, tick, false); }

void builder_point(struct builder *b, uint32_t location, uint32_t class_, uint32_t id, uint64_t tick,
                   const uint64_t *fields, uint32_t count)
{
    struct fdri_arena_location *l = builder_raw(b, location);
    uint64_t stored = tick >> b->set.shift;
    struct fdri_codec_standing place = {.not_first_in_tick = l->last_tick >> b->set.shift == stored};
    points(b, location, l->depth)->by_class[class_].presented++;
    if (place.not_first_in_tick) {
        const struct fdri_arena_level *below = level(b, location, l->depth + 1);
        for (uint32_t d = l->depth; d && place.links < FDRI_CODEC_LINKS_MAX; d--) {
            struct fdri_arena_level *v = level(b, location, d);
            if (v->enter_tick >> b->set.shift != stored) break;
            place.link[place.links++] = v->zero_tick == stored ? v->zero_count : 0;
            v->flags |= FDRI_ARENA_LEVEL_ORDINAL;
        }
        place.sibling = below->zero_tick == stored ? below->zero_count : 0;
        place.point = l->point_tick == stored ? l->point_count : 0;
    }
    if (l->point_tick != stored) l->point_tick = stored, l->point_count = 0;
    l->point_count++;
    struct fdri_arena_part *p = builder_part(b, location, class_, l->depth, 0);
    struct fdri_arena_bin *h = room(b, location, p);
    fdri_codec_encode_point(p, &b->location[location].table[p->table_off]->t, FDRI_CODEC_FIELDS_MAX, (uint8_t *)(h + 1),
                            id, stored - p->last_tick, &place, fields, count, class_ == FDRI_ARENA_CLASS_USER);
    p->last_tick = stored;
    h->commit = fdri_codec_commit_word(p);
    l->last_tick = tick;
}

/* ---- giving back ---- */

bool builder_give_back(struct builder *b, uint32_t location, uint32_t class_, uint32_t depth, uint32_t band)
{
    struct fdri_arena_part *p = builder_part(b, location, class_, depth, band);
    uint32_t off = (uint32_t)p->list_head;
    if (!off || off == p->open_off) return false;
    struct fdri_arena_bin *h = at(b, off), *next = at(b, h->next);
    p->floor_tick = next->base_tick;
    p->list_head = ((p->list_head >> 32) + 1) << 32 | h->next;
    h->generation++;
    return true;
}

uint32_t builder_reduce(struct builder *b, uint32_t location, uint32_t count)
{
    uint32_t done = 0, deepest = fdri_arena_levels_in(builder_raw(b, location)->level_blocks);
    for (uint32_t band = 0; band < FDRI_ARENA_BANDS; band++)
        for (uint32_t depth = deepest; depth > 0; depth--)
            while (done < count && level(b, location, depth)->part[band] &&
                   builder_give_back(b, location, FDRI_ARENA_CLASS_REGION, depth, band))
                done++;
    return done;
}

uint8_t *builder_image(struct builder *b, size_t *bytes)
{
    *bytes = b->bytes;
    fdri_arena_spare_begin(b->base);
    return b->base;
}
