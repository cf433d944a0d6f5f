/* SPDX-License-Identifier: MIT */
/* Compares the superblock with its spare, and everything that is no bin with a snapshot's checks (FORMAT.md, 3.1 and
 * 16). Bytes that fail are reported and suspect; the reader shows none of them as an event. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- the superblock ---- */

void fdri_file_spare(struct fdr_file *f)
{
    struct fdri_arena_spare s;
    memcpy(&s, f->bytes + FDRI_ARENA_SPARE_OFF, sizeof s);
    if (s.magic != FDRI_ARENA_SPARE_MAGIC || s.check != fdri_arena_spare_check(&s)) {
        fdri_file_damage(f, "superblock: its spare copy is damaged, nothing is checked against it");
        return;
    }
    f->spare = s;
    bool same = true;
    uint8_t *sb = (uint8_t *)&f->sb;
    if (s.chunk_count) {
        same = fdri_arena_check32(f->bytes, FDRI_ARENA_SPARE_OFF) == s.header_check;
        if (!same) memcpy(sb, s.copy, sizeof s.copy);
    } else {
        for (int i = 0; i < FDRI_ARENA_SPARE_FIXED; i++) {
            uint32_t from = fdri_arena_spare_fixed[i].from, bytes = fdri_arena_spare_fixed[i].to - from;
            same = same && memcmp(sb + from, s.copy + from, bytes) == 0;
            memcpy(sb + from, s.copy + from, bytes);
        }
    }
    if (!same) fdri_file_damage(f, "superblock: its check is wrong; the reader uses the spare copy");
}

/* ---- meta blocks and tail ---- */

static bool add_bad(struct fdr_file *f, uint64_t off, uint64_t end)
{
    if (!fdri_file_grow(&f->bad, f->bad_count, &f->bad_room, sizeof *f->bad)) return false;
    f->bad[f->bad_count++] = (struct fdri_file_bad){off, end};
    return true;
}

static int by_off(const void *a, const void *b)
{
    const struct fdri_file_bad *x = a, *y = b;
    return x->off < y->off ? -1 : x->off > y->off;
}

/* Sorts and joins the damaged stretches, whatever their order in the file. */
static void join_bad(struct fdr_file *f)
{
    size_t used = 0;
    if (!f->bad_count) return;
    qsort(f->bad, f->bad_count, sizeof *f->bad, by_off);
    for (size_t i = 1; i < f->bad_count; i++) {
        if (f->bad[i].off > f->bad[used].end) f->bad[++used] = f->bad[i];
        else f->bad[used].end = fdri_bits_max(f->bad[used].end, f->bad[i].end);
    }
    f->bad_count = used + 1;
}

static uint32_t bytes_of(const struct fdr_file *f, const struct fdri_arena_chunk *c)
{
    return fdri_arena_chunk_bytes(c->off, f->spare.chunk_log2, f->sb.arena_bytes);
}

/* The bytes of a chunk. NULL: they are cut off, which was reported, or its offset is impossible. */
static const void *chunk_at(const struct fdr_file *f, const struct fdri_arena_chunk *c)
{
    bool can_be = c->off % 64 == 0 && c->off >= f->sb.bins_off && c->off < f->end;
    return can_be ? fdri_file_at(f, c->off, bytes_of(f, c)) : NULL;
}

static bool chunk_matches(const struct fdr_file *f, const struct fdri_arena_chunk *c)
{
    const void *p = chunk_at(f, c);
    return p && fdri_arena_check32(p, bytes_of(f, c)) == c->check;
}

static void check_each(struct fdr_file *f, const struct fdri_arena_chunk *chunk)
{
    for (uint32_t i = 0; i < f->spare.chunk_count; i++) {
        if (!chunk_at(f, &chunk[i]) || chunk_matches(f, &chunk[i])) continue;
        if (!add_bad(f, chunk[i].off, chunk[i].off + bytes_of(f, &chunk[i]))) return;
    }
}

static bool most_chunks_match(const struct fdr_file *f, const struct fdri_arena_chunk *chunk)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < f->spare.chunk_count; i++) good += chunk_matches(f, &chunk[i]);
    return good > f->spare.chunk_count / 2;
}

/* For a damaged list of checks. A failed check may then concern good bytes, and an entry's offset may be wrong. So
 * everything between two passing entries in order is suspect if an entry between them fails, from the first meta
 * block on. If most entries fail, the list says nothing. */
static void check_between(struct fdr_file *f, const struct fdri_arena_chunk *chunk)
{
    uint64_t from = f->sb.bins_off, lowest = fdri_file_meta_lowest(f);
    bool any = false;
    for (uint32_t i = 0; i < f->spare.chunk_count; i++) {
        bool before = i + 1 == f->spare.chunk_count || chunk[i].off < chunk[i + 1].off;
        bool good = chunk[i].off >= from && before && chunk_matches(f, &chunk[i]);
        any |= !good;
        if (!good) continue;
        uint64_t doubted = fdri_bits_max(from, lowest);
        if (any && chunk[i].off > doubted && !add_bad(f, doubted, chunk[i].off)) return;
        from = chunk[i].off + bytes_of(f, &chunk[i]);
        any = false;
    }
    if (any && from < f->end) add_bad(f, from, f->end);
}

static void check_chunks(struct fdr_file *f, const struct fdri_arena_chunk *chunk, uint32_t chunks_bytes)
{
    bool good = fdri_arena_check32(chunk, chunks_bytes) == f->spare.chunks_check;
    if (!good) fdri_file_damage(f, "the checks of meta blocks are damaged");
    if (good) check_each(f, chunk);
    else if (most_chunks_match(f, chunk)) check_between(f, chunk);
    join_bad(f);
    for (size_t i = 0; i < f->bad_count; i++)
        fdri_file_damage(f, "bytes %llu to %llu (meta blocks) %s", (unsigned long long)f->bad[i].off,
                         (unsigned long long)f->bad[i].end - 1,
                         good ? "do not match their check" : "have only a damaged check");
}

void fdri_file_checks(struct fdr_file *f)
{
    const struct fdri_arena_spare *s = &f->spare;
    if (!s->chunk_count) return;
    if (f->has_tail && f->size - f->end >= s->tail_bytes &&
        fdri_arena_check32(f->bytes + f->end, s->tail_bytes) != s->tail_check) {
        fdri_file_damage(f, "the tail does not match its check");
        f->tail_bad = true;
    }
    uint64_t bytes = (uint64_t)s->chunk_count * sizeof(struct fdri_arena_chunk);
    if (s->chunk_log2 > 31 || s->chunk_count > FDRI_ARENA_TAIL_MAX_BYTES / sizeof(struct fdri_arena_chunk) ||
        s->chunks_off % 8 || s->chunks_off > f->size || f->size - s->chunks_off < bytes)
        fdri_file_damage(f, "cut off: the checks of meta blocks are not there");
    else check_chunks(f, (const void *)(f->bytes + s->chunks_off), (uint32_t)bytes);
}

bool fdri_file_is_suspect(const struct fdr_file *f, uint64_t off, uint64_t bytes)
{
    size_t low = 0, high = f->bad_count; /* the first stretch that ends after off */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->bad[middle].end > off) high = middle;
        else low = middle + 1;
    }
    return low < f->bad_count && f->bad[low].off < off + bytes;
}
