/* SPDX-License-Identifier: MIT */
/* Reads the superblock: is it fdr's, is it readable, and what replaces each damaged field? */
#include "format/arena/arena.h"
#include "format/arena/crash_section.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ARENA_MOST ((uint64_t)1 << 32) /* offsets in the arena have 32 bits */

static bool pow2_between(uint64_t v, uint64_t low, uint64_t high)
{
    return v >= low && v <= high && (v & (v - 1)) == 0;
}

static bool sane_sizes(const struct fdri_arena_superblock *sb)
{
    return sb->header_bytes == FDRI_ARENA_SUPERBLOCK_BYTES &&
           pow2_between(sb->bin_bytes, FDRI_ARENA_BIN_MIN_BYTES, FDRI_ARENA_BIN_MAX_BYTES) &&
           sb->bins_off >= FDRI_ARENA_SUPERBLOCK_BYTES && sb->bins_off < sb->arena_bytes;
}

/* Is this an fdr recording, of a version that this build knows? */
static bool is_recording(const struct fdr_file *f, char *message, size_t message_bytes)
{
    const struct fdri_arena_superblock *sb = &f->sb;
    bool magic = memcmp(sb->magic, FDRI_ARENA_MAGIC, 8) == 0;
    bool readable = sb->format_version >= 1 && sb->format_version <= FDRI_ARENA_FORMAT_VERSION;
    if (!magic && !(readable && sane_sizes(sb))) {
        snprintf(message, message_bytes, "not an fdr recording");
        return false;
    }
    if (readable) return true;
    snprintf(message, message_bytes, "format version %u, but this reader knows versions 1 to %u only",
             sb->format_version, FDRI_ARENA_FORMAT_VERSION);
    return false;
}

static void end_texts(struct fdri_arena_superblock *sb)
{
    sb->host[sizeof sb->host - 1] = sb->exe[sizeof sb->exe - 1] = 0;
    sb->reason[sizeof sb->reason - 1] = sb->config[sizeof sb->config - 1] = 0;
    sb->trigger_name[sizeof sb->trigger_name - 1] = 0;
}

/* Finds the end of the arena in this file. */
static void find_end(struct fdr_file *f)
{
    struct fdri_arena_superblock *sb = &f->sb;
    struct fdri_arena_tail tail = {0};
    uint64_t said = sb->arena_bytes;
    if (sb->cut == FDRI_ARENA_TRUNCATED_DEADLINE)
        fdri_file_damage(f, "cut off: FDR_CRASH_DEADLINE passed before all was written");
    if (sb->cut == FDRI_ARENA_TRUNCATED_DISK)
        fdri_file_damage(f, "cut off: the disk or a quota was full, or RLIMIT_FSIZE reached, before all was written");
    f->cut_off = sb->cut != FDRI_ARENA_TRUNCATED_NOT;
    bool fits = said >= FDRI_ARENA_SUPERBLOCK_BYTES && said <= f->size && said % FDRI_ARENA_META_ALIGN == 0 &&
                said <= ARENA_MOST;
    if (fits && f->size - said >= sizeof tail) memcpy(&tail, f->bytes + said, sizeof tail);
    f->has_tail = tail.magic == FDRI_ARENA_TAIL_MAGIC;
    f->has_crash = tail.magic == FDRI_ARENA_CRASH_MAGIC;
    bool known = f->spare.magic; /* both copies of the superblock agree, so what follows is not of this recording */
    if (fits && (said == f->size || f->has_tail || f->has_crash || known)) {
        f->end = said;
    } else if (said < FDRI_ARENA_SUPERBLOCK_BYTES || said % FDRI_ARENA_META_ALIGN || said < f->size ||
               said > ARENA_MOST) {
        fdri_file_damage(f, "superblock: the arena size, %llu bytes, does not fit the file of %llu bytes",
                         (unsigned long long)said, (unsigned long long)f->size);
        f->end = sb->arena_bytes = f->size & ~(uint64_t)(FDRI_ARENA_META_ALIGN - 1);
    } else {
        fdri_file_damage(f, "cut off: %llu of %llu bytes are there", (unsigned long long)f->size,
                         (unsigned long long)said);
        f->end = f->size;
        f->cut_off = true;
    }
    f->tail_bad = f->has_tail && (f->size - f->end - sizeof tail) / sizeof(struct fdri_arena_tail_entry) < tail.count;
    if (f->tail_bad) fdri_file_damage(f, "cut off: the tail is not complete");
    else if (sb->snapshot_number && !f->has_tail && f->size >= sb->arena_bytes)
        fdri_file_damage(f, "cut off: the tail is missing");
    else if (sb->state == FDRI_ARENA_STATE_CRASHED && !f->has_tail && !f->has_crash && !sb->cut)
        f->without_section = f->spare.chunk_count ? !sb->section_off : f->size == said;
    if (f->without_section && sb->section_off)
        fdri_file_damage(f, "the crash section is missing: stacks, registers, memory map and messages of the death");
}

static void repair_sizes(struct fdr_file *f)
{
    struct fdri_arena_superblock *sb = &f->sb;
    if (memcmp(sb->magic, FDRI_ARENA_MAGIC, 8)) fdri_file_damage(f, "superblock: the magic is damaged");
    if (sb->header_bytes != FDRI_ARENA_SUPERBLOCK_BYTES)
        fdri_file_damage(f, "superblock: the header size, %u bytes, is wrong", sb->header_bytes);
    if (sb->bins_off < FDRI_ARENA_SUPERBLOCK_BYTES || sb->bins_off % FDRI_ARENA_BIN_MIN_BYTES ||
        sb->bins_off > sb->arena_bytes) {
        fdri_file_damage(f, "superblock: the offset of the bins, %llu, is impossible",
                         (unsigned long long)sb->bins_off);
        sb->bins_off = FDRI_ARENA_SUPERBLOCK_BYTES;
    }
    if (!pow2_between(sb->bin_bytes, FDRI_ARENA_BIN_MIN_BYTES, FDRI_ARENA_BIN_MAX_BYTES)) {
        fdri_file_damage(f, "superblock: the bin size, %u bytes, is impossible", sb->bin_bytes);
        sb->bin_bytes = fdri_file_scan_bin_bytes(f);
    }
}

/* Bins lie below bins_end, meta blocks from meta_first on. If the border is damaged, both may lie anywhere. */
static void find_bounds(struct fdr_file *f)
{
    const struct fdri_arena_superblock *sb = &f->sb;
    uint64_t low = sb->bins_off + (sb->virgin & UINT32_MAX) * sb->bin_bytes;
    uint64_t high = (sb->virgin >> 32) * FDRI_ARENA_META_ALIGN;
    if (low <= high && high <= sb->arena_bytes && high >= sb->bins_off) {
        f->bins_end = low;
        f->meta_first = high;
        return;
    }
    fdri_file_damage(f, "superblock: the border between bins and meta blocks is damaged");
    f->bins_end = sb->arena_bytes;
    f->meta_first = sb->bins_off;
}

static void repair_clock(struct fdr_file *f)
{
    struct fdri_arena_superblock *sb = &f->sb;
    if (sb->shift > 40) {
        fdri_file_damage(f, "superblock: the time unit is damaged, times are in stored ticks");
        sb->shift = 0;
    }
    if (sb->clock_kind > FDRI_ARENA_CLOCK_NS || !fdri_file_clock_init(&f->clock, sb)) {
        fdri_file_damage(f, "superblock: the clock is damaged, times are in ticks");
        fdri_file_clock_ns(&f->clock, sb->shift);
        sb->clock_kind = FDRI_ARENA_CLOCK_NS; /* matches the times shown; a recovered file says the same */
    }
    if (sb->band_edge_count > 3) sb->band_edge_count = 3;
    if (sb->state < FDRI_ARENA_STATE_RECORDING || sb->state > FDRI_ARENA_STATE_CRASHED) {
        fdri_file_damage(f, "superblock: the state, %u, is unknown", sb->state);
        sb->state = FDRI_ARENA_STATE_RECORDING;
    }
}

bool fdri_file_superblock(struct fdr_file *f, char *message, size_t message_bytes)
{
    if (f->size < 8 || memcmp(f->bytes, FDRI_ARENA_MAGIC, 8)) {
        if (f->size < FDRI_ARENA_SUPERBLOCK_BYTES) {
            snprintf(message, message_bytes, "not an fdr recording");
            return false;
        }
    }
    memcpy(&f->sb, f->bytes, f->size < sizeof f->sb ? f->size : sizeof f->sb);
    if (!is_recording(f, message, message_bytes)) return false;
    if (f->size < FDRI_ARENA_SUPERBLOCK_BYTES) {
        snprintf(message, message_bytes, "cut off inside the superblock: %llu bytes", (unsigned long long)f->size);
        return false;
    }
    fdri_file_spare(f);
    f->format = f->sb.format_version;
    if (f->format == 1) fdri_file_from_format1(f);
    end_texts(&f->sb);
    find_end(f);
    repair_sizes(f);
    find_bounds(f);
    repair_clock(f);
    fdri_file_checks(f);
    return true;
}
