/* SPDX-License-Identifier: MIT */
/* A snapshot of a process that does not help: it may hang, be stopped, or block every signal. The order of copying is
 * that of export/snapshot/arena_copy.c, for the same reasons (docs/FORMAT.md, section 14):
 *
 *   bounds, meta, notes, stacks (kept), bins, stacks (written), partitions, tail, superblock
 *
 * Each read is a system call, so reads happen in the order of the source. The bytes of one read come in any order.
 * Therefore bins are read three times: the commit word from the first reading, the payload from the second. If the
 * generation is the same in all three, the bin was not given away before its payload was read. Nothing is trusted:
 * offsets are checked, chains end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "reader/live/external_copy.h"
#include "reader/live/find_process.h"

bool fdri_live_external_get(struct copy *c, uint64_t off, void *to, size_t count)
{
    if (c->error || !c->reads_left) return false; /* a circular chain ends here */
    c->reads_left--;
    if (off > c->bytes || count > c->bytes - off) return false; /* a chain that leads out of the arena ends here */
    c->error = fdri_live_process_read(c->process, off, to, count);
    return !c->error;
}

void fdri_live_external_put(struct copy *c, uint64_t off, const void *from, size_t count)
{
    const uint8_t *p = from;
    while (count && !c->error) {
        ssize_t n = pwrite(c->fd, p, count, (off_t)off);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            c->error = n ? -errno : -EIO;
            return;
        }
        p += n;
        off += (uint64_t)n;
        count -= (size_t)n;
    }
}

/* ---- meta ---- */

static void copy_meta(struct copy *c)
{
    uint64_t end = c->bytes;
    for (int i = 0; i < 4 && GET_FIELD(c, 0, struct fdri_arena_superblock, virgin, &c->virgin); i++) {
        uint64_t low = (c->virgin >> 32) * FDRI_ARENA_META_ALIGN,
                 from = fdri_bits_max(low, FDRI_ARENA_SUPERBLOCK_BYTES);
        if (from >= end) break;
        for (uint64_t n; from < end && !c->error; from += n) {
            n = fdri_bits_min(end - from, BATCH);
            if (fdri_live_external_get(c, from, c->first, n)) fdri_live_external_put(c, from, c->first, n);
        }
        end = low;
    }
}

/* ---- bins, and meta blocks that lie in pieces of bins ---- */

/* Bytes of the bin that begins here; FDRI_ARENA_BIN_MIN_BYTES if none does. room: the rest of the whole bin. */
static uint32_t bin_at(const struct fdri_arena_bin *b, uint64_t off, uint32_t room, bool *good)
{
    uint32_t bytes = b->size_log2 >= 9 && b->size_log2 <= 16 ? 1u << b->size_log2 : FDRI_ARENA_BIN_MIN_BYTES;
    *good = b->magic == FDRI_ARENA_BIN_MAGIC && bytes <= room && !(off & (bytes - 1));
    return *good ? bytes : FDRI_ARENA_BIN_MIN_BYTES;
}

static uint32_t meta_piece_at(const void *at, uint32_t room)
{
    const struct fdri_arena_meta_head *m = at;
    bool good = m->magic == FDRI_ARENA_META_MAGIC && fdri_bits_is_pow2(m->bytes) &&
                m->bytes >= FDRI_ARENA_BIN_MIN_BYTES && m->bytes <= room;
    return good ? m->bytes : 0;
}

/* True if the second reading is complete up to the commit word of the first; then clears the rest. A rewind lowers the
 * commit word in place and leaves the bits before it, so the lower of the two counts. */
static bool take_bin(struct copy *c, uint32_t at, uint32_t bytes)
{
    const struct fdri_arena_bin *a = (const void *)(c->first + at);
    struct fdri_arena_bin *b = (void *)(c->second + at);
    if (!(a->generation & 1)) return false;
    if (a->generation != b->generation || a->check != b->check) {
        c->dropped++;
        return false;
    }
    if (FDRI_ARENA_COMMIT_BITS(a->commit) < FDRI_ARENA_COMMIT_BITS(b->commit)) b->commit = a->commit;
    uint32_t used = FDRI_ARENA_BIN_HEADER + (FDRI_ARENA_COMMIT_BITS(b->commit) + 7) / 8;
    if (used < bytes) memset(c->second + at + used, 0, bytes - used);
    return true;
}

/* A piece of a batch that goes into the copy: a bin, or a meta block in a piece of a bin. */
struct taken {
    uint32_t at, bytes;
    bool meta;
};

/* True if the place still has the same bin or block in the third reading. */
static bool unchanged(const struct copy *c, const struct taken *t)
{
    const struct fdri_arena_bin *now = (const void *)(c->first + t->at), *was = (const void *)(c->second + t->at);
    if (t->meta) return !memcmp(now, was, sizeof(struct fdri_arena_meta_head));
    return now->generation == was->generation && now->check == was->check;
}

/* Reads a third time and clears places that were given away meanwhile. If that read fails, clears all of them. */
static void drop_given(struct copy *c, uint64_t off, uint32_t bytes, const struct taken *taken, uint32_t count)
{
    bool known = count && fdri_live_external_get(c, off, c->first, bytes);
    for (uint32_t k = 0; k < count; k++) {
        if (known && unchanged(c, &taken[k])) continue;
        c->dropped += !taken[k].meta;
        memset(c->second + taken[k].at, 0, taken[k].bytes);
    }
}

static void copy_slots(struct copy *c, uint64_t off, uint32_t bytes)
{
    struct taken taken[BATCH / FDRI_ARENA_BIN_MIN_BYTES];
    uint32_t bin_bytes = c->super.bin_bytes, step, count = 0;
    bool good;
    if (!fdri_live_external_get(c, off, c->first, bytes) || !fdri_live_external_get(c, off, c->second, bytes)) return;
    for (uint32_t i = 0; i < bytes; i += step) {
        uint32_t room = bin_bytes - i % bin_bytes;
        bool meta = (step = meta_piece_at(c->first + i, room)) != 0;
        if (meta) fdri_arena_chunks_add(&c->chunk_list, off + i, off + i + step);
        else step = bin_at((const void *)(c->first + i), off - c->super.bins_off + i, room, &good);
        if (meta ? meta_piece_at(c->second + i, room) == step : good && take_bin(c, i, step))
            taken[count++] = (struct taken){i, step, meta};
        else memset(c->second + i, 0, step);
    }
    drop_given(c, off, bytes, taken, count);
    if (count) fdri_live_external_put(c, off, c->second, bytes); /* empty stretches stay holes */
}

static void copy_headers(struct copy *c, uint64_t off, uint32_t bytes)
{
    uint32_t bin_bytes = c->super.bin_bytes, step;
    struct fdri_arena_bin head;
    bool good;
    for (uint32_t i = 0; i < bytes && fdri_live_external_get(c, off + i, &head, sizeof head); i += step) {
        uint32_t room = bin_bytes - i % bin_bytes;
        if ((step = meta_piece_at(&head, room))) {
            if (fdri_live_external_get(c, off + i, c->first, step)) fdri_live_external_put(c, off + i, c->first, step);
            continue;
        }
        step = bin_at(&head, off - c->super.bins_off + i, room, &good);
        if (good && (head.generation & 1)) fdri_live_external_put(c, off + i, &head, sizeof head);
    }
}

/* Copies all bins handed out by now, behind the stacks: they hold the records older than a stack's copy. The end of the
 * meta blocks stays as it was copied. */
static void copy_bins(struct copy *c)
{
    uint64_t now;
    if (!GET_FIELD(c, 0, struct fdri_arena_superblock, virgin, &now)) return;
    c->virgin = (c->virgin & ~(uint64_t)UINT32_MAX) | (now & UINT32_MAX);
    uint64_t off = c->super.bins_off, end = off + (c->virgin & UINT32_MAX) * c->super.bin_bytes;
    if (end > c->bytes) end = c->bytes - (c->bytes - off) % c->super.bin_bytes;
    for (; off < end && !c->error; off += BATCH) {
        uint32_t n = (uint32_t)fdri_bits_min(end - off, BATCH);
        if (c->mode == FDRI_LIVE_EXTERNAL_HEADERS) copy_headers(c, off, n);
        else copy_slots(c, off, n);
    }
}

/* ---- superblock ---- */

/* A look gets the process's own spare, whose fields never change. */
static void put_superblock(struct copy *c, const char *reason)
{
    struct fdri_arena_superblock *s = &c->super;
    struct fdri_arena_spare spare = {0};
    uint8_t page[FDRI_ARENA_SUPERBLOCK_BYTES] = {0};
    struct fdri_clock_reading now = fdri_clock_read(s->clock_kind == FDRI_ARENA_CLOCK_TSC);
    s->clock_last = (struct fdri_arena_clock_pair){now.tick + s->clock_offset, now.monotonic_ns, now.realtime_ns, 0};
    s->virgin = c->virgin;
    s->snapshot_number = s->snapshots_taken + 1;
    s->dropped_bins = c->dropped;
    s->reason_kind = FDRI_ARENA_REASON_EXTERNAL;
    s->section_off = 0; /* of a process that is dying meanwhile: only its own file gets the section */
    s->over = s->over_error = 0;
    memset(s->reason, 0, sizeof s->reason);
    strncpy(s->reason, reason, sizeof s->reason - 1);
    memcpy(page, s, sizeof *s);
    if (c->mode == FDRI_LIVE_EXTERNAL_FILE) {
        fdri_live_external_put_checks(c, &spare);
        fdri_arena_spare_finish(page, &spare);
    } else {
        fdri_live_external_get(c, FDRI_ARENA_SPARE_OFF, page + FDRI_ARENA_SPARE_OFF, sizeof spare);
    }
    fdri_live_external_put(c, 0, page, sizeof page);
}

static bool make_room(struct copy *c)
{
    c->first = aligned_alloc(64, BATCH);
    c->second = aligned_alloc(64, BATCH);
    c->frames = calloc(STACK_MAX, sizeof *c->frames);
    c->frames_again = calloc(STACK_MAX, sizeof *c->frames_again);
    c->stacks = calloc(FDRI_ARENA_TAIL_ENTRIES, sizeof *c->stacks);
    return c->first && c->second && c->frames && c->frames_again && c->stacks;
}

static void give_room(struct copy *c)
{
    free(c->first);
    free(c->second);
    free(c->frames);
    free(c->frames_again);
    free(c->stacks);
    free(c->kept_frames);
    free(c);
}

int fdri_live_external_copy(const struct fdri_live_process *p, int fd, const char *reason,
                            enum fdri_live_external_mode mode)
{
    struct copy *c = calloc(1, sizeof *c);
    if (!c) return -ENOMEM;
    c->process = p;
    c->fd = fd;
    c->mode = mode;
    c->chunk_list = (struct fdri_arena_chunk_list){
        .chunk = c->chunks, .log2 = FDRI_ARENA_CHUNK_LOG2_LEAST, .most = FDRI_ARENA_CHUNKS_MOST};
    c->super = p->super; /* as it was found; read again below, with all that it counts */
    c->bytes = p->super.arena_bytes;
    c->reads_left = c->bytes / 8 + 65536; /* enough: separate reads are of more than 8 bytes, a few times each */
    if (!make_room(c)) c->error = -ENOMEM;
    fdri_live_external_get(c, 0, &c->super, sizeof c->super);
    if (!c->error && (c->super.arena_bytes != c->bytes || c->super.bin_bytes != p->super.bin_bytes ||
                      c->super.bins_off != p->super.bins_off))
        c->error = -ESTALE; /* the recording ended meanwhile */
    if (!c->error) {
        fdri_live_external_note_bounds(c);
        copy_meta(c);
        fdri_live_external_copy_notes(c);
        fdri_live_external_read_stacks(c);
        copy_bins(c);
        fdri_live_external_write_stacks(c);
        fdri_live_external_finish_locations(c);
        put_superblock(c, reason ? reason : "");
    }
    int e = c->error;
    give_room(c);
    return e;
}
