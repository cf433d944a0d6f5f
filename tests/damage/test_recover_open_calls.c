/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300 promise=P8
 * P8: the words for open calls change with every event and have no check in a live file. One flipped bit there costs
 * open calls at most, never the events inside. The recovered file shows the same as the damaged one. It is whole also
 * if one block begins inside of another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"

enum { MOST = 1 << 20, OPEN = 3, TURNS = SANITIZED ? 100 : 400 };
static uint8_t image[MOST], damaged[MOST];
static size_t bytes;
static uint64_t now;

static void calls(fdr_region outer, fdr_region inner, int count)
{
    for (int i = 0; i < count; i++) {
        fdr_enter_at(outer, now += 7);
        fdr_enter_at(inner, now += 3);
        fdr_leave_at(inner, now += 11);
        fdr_leave_at(outer, now += 5);
    }
}

/* Some calls first, then OPEN nested calls that stay open. Between their enters come many complete calls. */
static void present(void)
{
    fdr_region a = fdr_region_define("a", NULL, 0), b = fdr_region_define("b", NULL, 0);
    now = 1000;
    calls(a, b, 20);
    for (int i = 0; i < OPEN; i++) {
        char name[24];
        snprintf(name, sizeof name, "open %d", i);
        fdr_enter_at(fdr_region_define(name, NULL, 0), now += 10);
        calls(a, b, TURNS);
    }
}

static void load(const char *path)
{
    bytes = scratch_read(path, image, MOST);
    assert_true(bytes > 10000 && bytes < MOST);
}

/* `live`: the file as a kill leaves it; else a snapshot. */
static void record(bool live)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "256K",
                           .signal = "none",
                           .crash = "0",
                           .live_force = "1",
                           .dir = scratch,
                           .live_dir = scratch};
    assert_int_equal(fdr_init(&c), 0);
    present();
    if (live) {
        char pattern[64];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/*.live.fdr", scratch);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        assert_int_equal(found.gl_pathc, 1);
        load(found.gl_pathv[0]);
        globfree(&found);
    } else {
        assert_int_equal(fdr_snapshot("open"), 0);
        load(fdr_last_snapshot());
        unlink(fdr_last_snapshot());
    }
    fdr_finalize();
}

/* The number of shown events except made-up ones. */
static size_t shown_by(struct fdr_file *f)
{
    struct fdr_read_event e;
    size_t count = 0;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e)) count += !e.reduced && !e.repaired;
    fdr_iter_close(it);
    return count;
}

static size_t whole(void)
{
    char message[300] = "";
    struct fdr_file *f;
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_WHOLE);
    size_t count = shown_by(f);
    fdr_file_close(f);
    assert_int_equal(count, 20 * 4 + OPEN * (1 + TURNS * 4));
    return count;
}

/* The number of events that `damaged` shows. SIZE_MAX: the recovered file shows others or is not whole. */
static size_t recovered(void)
{
    char path[64], message[300] = "";
    struct fdr_file *f, *g;
    snprintf(path, sizeof path, "%s/recovered.fdr", scratch);
    if (fdr_file_open_memory(damaged, bytes, &f, message, sizeof message) == FDR_UNREADABLE) fail_msg("%s", message);
    size_t count = shown_by(f);
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    fdr_file_close(f);
    enum fdr_verdict verdict = fdr_file_open(path, &g, message, sizeof message);
    if (verdict != FDR_WHOLE) print_message("recovered: %s\n", message);
    assert_int_not_equal(verdict, FDR_UNREADABLE);
    size_t is = shown_by(g);
    fdr_file_close(g);
    unlink(path);
    if (is != count) print_message("%zu shown, %zu recovered\n", count, is);
    return verdict == FDR_WHOLE && is == count ? count : SIZE_MAX;
}

/* The next block of this kind from *off on, or NULL. */
static struct fdri_arena_meta_head *next_block(size_t *off, uint32_t kind)
{
    uint64_t virgin;
    memcpy(&virgin, image + offsetof(struct fdri_arena_superblock, virgin), sizeof virgin);
    if (*off < (virgin >> 32) * 64) *off = (virgin >> 32) * 64;
    for (; *off + sizeof(struct fdri_arena_meta_head) <= bytes; *off += FDRI_ARENA_META_ALIGN) {
        struct fdri_arena_meta_head *h = (void *)(image + *off);
        if (h->magic == FDRI_ARENA_META_MAGIC && h->kind == kind) return h;
    }
    return NULL;
}

/* Flips one bit of each byte of the levels. Returns the number of flips that cost more than the open calls. */
static unsigned flip_levels(size_t was)
{
    unsigned flips = 0, bad = 0;
    const struct fdri_arena_levels_block *block;
    for (size_t off = 0; (block = (void *)next_block(&off, FDRI_ARENA_META_LEVELS)); off += FDRI_ARENA_META_ALIGN) {
        if (block->index != 0) continue;
        for (size_t i = 0; i < (OPEN + 1) * sizeof block->level[0]; i++, flips++) {
            size_t at = off + offsetof(struct fdri_arena_levels_block, level) + i;
            memcpy(damaged, image, bytes);
            damaged[at] ^= (uint8_t)(1u << (i * 5 % 8));
            size_t is = recovered();
            if (is != SIZE_MAX && is + OPEN >= was) continue;
            print_message("byte %zu of the levels: %zu of %zu events\n", i, is, was);
            bad++;
        }
    }
    assert_true(flips >= (OPEN + 1) * sizeof block->level[0]);
    return bad;
}

static void P8_open_calls_of_a_snapshot(void **state)
{
    (void)state;
    record(false);
    assert_int_equal(flip_levels(whole()), 0);
}

static void P8_open_calls_of_a_live_file(void **state)
{
    (void)state;
    record(true);
    assert_int_equal(flip_levels(whole()), 0);
}

/* Flips bits of the number of open calls. */
static void P8_depth_of_a_live_file(void **state)
{
    (void)state;
    record(true);
    size_t was = whole(), off = 0;
    assert_non_null(next_block(&off, FDRI_ARENA_META_LOCATION));
    for (unsigned bit = 0; bit < 32; bit++) {
        memcpy(damaged, image, bytes);
        damaged[off + offsetof(struct fdri_arena_location, depth) + bit / 8] ^= (uint8_t)(1u << (bit % 8));
        size_t is = recovered();
        if (is == SIZE_MAX || is + OPEN < was) fail_msg("bit %u of the depth: %zu of %zu events", bit, is, was);
    }
}

/* The account of events outside of all calls is missing. The recovered file has one. */
static void P8_missing_level_0_is_made_anew(void **state)
{
    (void)state;
    record(true);
    size_t was = whole(), off = 0;
    assert_non_null(next_block(&off, FDRI_ARENA_META_LOCATION));
    memcpy(damaged, image, bytes);
    memset(damaged + off + offsetof(struct fdri_arena_location, level0_off), 0, sizeof(uint32_t));
    assert_int_equal(recovered(), was);
}

/* The first half of each partition's block is written over the second half of each other's. The chain is broken, so
 * that the reader searches for blocks. */
static void P8_a_block_inside_of_a_block(void **state)
{
    (void)state;
    record(false);
    unsigned pairs = 0;
    size_t location = 0;
    assert_non_null(next_block(&location, FDRI_ARENA_META_LOCATION));
    for (size_t to = 0; next_block(&to, FDRI_ARENA_META_PART); to += FDRI_ARENA_META_ALIGN)
        for (size_t from = 0; next_block(&from, FDRI_ARENA_META_PART); from += FDRI_ARENA_META_ALIGN, pairs++) {
            memcpy(damaged, image, bytes);
            memcpy(damaged + to + 64, image + from, 64);
            memset(damaged + location + offsetof(struct fdri_arena_location, parts_first), 0x55, sizeof(uint32_t));
            if (recovered() == SIZE_MAX) fail_msg("the block at %zu inside of that at %zu", from, to);
        }
    assert_true(pairs >= 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P8_open_calls_of_a_snapshot),  cmocka_unit_test(P8_open_calls_of_a_live_file),
        cmocka_unit_test(P8_depth_of_a_live_file),      cmocka_unit_test(P8_missing_level_0_is_made_anew),
        cmocka_unit_test(P8_a_block_inside_of_a_block),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
