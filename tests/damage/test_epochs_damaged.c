/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P5,P8
 * P5, P8: a bin is damaged or missing. The epochs that the bin belongs to no longer count as complete; all others do.
 * The calls of each epoch are the sum of its rows and its rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"
#include "tests/support/scratch_directory.h"

enum { MOST = 4 << 20, CALLS = 100000, BATCHES = 20 };
static uint8_t image[MOST], damaged[MOST];
static size_t bytes;

/* Batches of calls, a minute apart, so that there are epochs and each bin lies in one or two of them. */
static void record(void)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "2M",
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .dir = scratch,
                           .live_dir = scratch};
    uint64_t now = 1000;
    assert_int_equal(fdr_init(&c), 0);
    fdr_region a = fdr_region_define("a", NULL, 0), b = fdr_region_define("b", NULL, 0);
    for (int batch = 0; batch < BATCHES; batch++, now += 60000000000u)
        for (int i = 0; i < CALLS / BATCHES; i++) {
            fdr_enter_at(a, now += 10);
            fdr_enter_at(b, now += 10);
            fdr_leave_at(b, now += 7 + (uint64_t)i % 5);
            fdr_leave_at(a, now += 10);
        }
    assert_int_equal(fdr_snapshot("epochs"), 0);
    bytes = scratch_read(fdr_last_snapshot(), image, MOST);
    assert_true(bytes > 10000 && bytes < MOST);
    unlink(fdr_last_snapshot());
    fdr_finalize();
}

/* The number of epochs that are not complete down to `depth`. *count gets the number of all epochs. */
static size_t incomplete(const uint8_t *from, uint32_t depth, size_t *count)
{
    char message[300] = "";
    struct fdr_file *f;
    const struct fdr_epoch_info *e;
    size_t n = 0;
    assert_int_not_equal(fdr_file_open_memory(from, bytes, &f, message, sizeof message), FDR_UNREADABLE);
    *count = fdr_epochs(f, &e);
    for (size_t i = 0; i < *count; i++) n += e[i].complete_depth[0] < depth;
    fdr_file_close(f);
    return n;
}

static void P8_epochs_with_a_damaged_bin_are_incomplete(void **state)
{
    (void)state;
    size_t epochs, bins = 0;
    record();
    assert_int_equal(incomplete(image, 2, &epochs), 0);
    assert_true(epochs > 4);
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + FDRI_ARENA_BIN_MIN_BYTES <= bytes;
         off += FDRI_ARENA_BIN_MIN_BYTES) {
        const struct fdri_arena_bin *b = (const void *)(image + off);
        if (b->magic != FDRI_ARENA_BIN_MAGIC || !(b->generation & 1) || b->class_ != FDRI_ARENA_CLASS_REGION) continue;
        uint32_t used = FDRI_ARENA_COMMIT_BITS(b->commit) / 8;
        if (used < 100) continue;
        memcpy(damaged, image, bytes);
        damaged[off + FDRI_ARENA_BIN_HEADER + used / 2] ^= 0x10;
        size_t now, hit = incomplete(damaged, b->depth, &now);
        if (now != epochs || hit == 0 || hit == epochs)
            fail_msg("the bin at %zu, depth %u: %zu of %zu epochs lack a call", off, b->depth, hit, now);
        /* with a damaged header the bin is missing */
        memset(damaged + off, 0x5a, FDRI_ARENA_BIN_HEADER);
        hit = incomplete(damaged, b->depth, &now);
        if (hit == 0) fail_msg("without the bin at %zu, depth %u: %zu epochs lack a call", off, b->depth, hit);
        bins++;
    }
    print_message("%zu bins, %zu epochs\n", bins, epochs);
    assert_true(bins > 20);
}

/* The reader has no checks here, so damaged words of an epoch look valid. Its calls must still be the sum of its
 * rows. */
static void P8_sums_are_those_of_rows(void **state)
{
    char message[300] = "";
    struct fdr_file *f;
    const struct fdr_epoch_info *e;
    const struct fdr_epoch_total *t;
    const struct fdri_arena_spare *spare = (const void *)(image + FDRI_ARENA_SPARE_OFF);
    size_t tables = 0;
    (void)state;
    record();
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + sizeof(struct fdri_arena_epochs) <= bytes;
         off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_epochs *is = (const void *)(image + off);
        if (is->head.magic != FDRI_ARENA_META_MAGIC || is->head.kind != FDRI_ARENA_META_EPOCHS || !is->count) continue;
        tables++;
        for (uint32_t i = 0; i < is->count; i++) {
            memcpy(damaged, image, bytes);
            memset(damaged + spare->chunks_off, 0, spare->chunk_count * sizeof(struct fdri_arena_chunk));
            ((struct fdri_arena_epochs *)(damaged + off))->epoch[i].calls ^= 1ull << 40;
            assert_int_not_equal(fdr_file_open_memory(damaged, bytes, &f, message, sizeof message), FDR_UNREADABLE);
            size_t n = fdr_epochs(f, &e), all = fdr_epoch_totals(f, &t);
            for (size_t k = 0; k < n; k++) {
                uint64_t calls = 0;
                for (size_t j = 0; j < all; j++)
                    if (t[j].location == e[k].location && t[j].epoch == e[k].index) calls += t[j].calls;
                assert_int_equal(calls, e[k].calls);
            }
            fdr_file_close(f);
        }
    }
    assert_true(tables > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_epochs_with_a_damaged_bin_are_incomplete),
                                       cmocka_unit_test(P8_sums_are_those_of_rows)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
