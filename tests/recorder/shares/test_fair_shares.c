/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 promise=P2,P4 without=tsan (its threads take turns)
 * P2, P4: fair shares. Threads come, work, sleep and end in one buffer, and the test checks how many bins each one
 * holds. The threads take turns, so that the result does not depend on the machine's load. */
#include <fdr/fdr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bits.h"
#include "bins/bins.h"
#include "bins/pieces.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/memory/memory.h"
#include "recorder/shares/shares.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/fair_share_fixture.h"

#define BUFFER "2M"
enum { BYTES = 2 << 20, CALLS = 1500000 };
enum { MOST = 64 };
static struct turn w[MOST];
static uint64_t kept[MOST];
static uint32_t bins[MOST];

/* One thread fills the buffer and sleeps. A second thread gets half of it, and a third one later a third, although
 * the sleeper never runs. */
static void P2_a_sleeper_does_not_starve_newcomers(void **state)
{
    (void)state;
    static const char *const strategy[] = {"whole", "last"};
    for (int s = 0; s < 2; s++) {
        start(strategy[s], BUFFER);
        begin(&w[0], 1);
        turn(&w[0], CALLS);
        uint32_t before;
        check(BYTES, w[0].presented, kept, bins, MOST);
        before = bins[0];
        begin(&w[1], 2);
        turn(&w[1], CALLS);
        check(BYTES, w[0].presented + w[1].presented, kept, bins, MOST);
        print_message("%s: alone %u bins; with a busy one %u and %u\n", strategy[s], before, bins[0], bins[1]);
        assert_true(bins[1] >= before * 2 / 5 && bins[0] >= before * 2 / 5);
        begin(&w[2], 3);
        turn(&w[2], CALLS);
        check(BYTES, w[0].presented + w[1].presented + w[2].presented, kept, bins, MOST);
        print_message("%s: three: %u, %u, %u bins\n", strategy[s], bins[0], bins[1], bins[2]);
        for (int i = 0; i < 3; i++) assert_true(bins[i] >= before / 4 && kept[i] > 1000);
        for (int i = 0; i < 3; i++) end(&w[i]);
        fdr_finalize();
    }
}

/* One thread holds a tiny buffer, most of it in open bins and pieces, which no other thread can claim. While it
 * records, other threads come, up to the guaranteed number. Each of them finds room for its first calls. */
static void P2_newcomers_in_a_tiny_buffer(void **state)
{
    (void)state;
    static const char *const strategy[] = {"telescope", "whole", "last"};
    for (int s = 0; s < 3; s++) {
        start(strategy[s], "256K");
        uint32_t sure = fdri_life_recording.arena.super->locations_sure, n = 1;
        uint64_t sum;
        begin(&w[0], 1);
        turn(&w[0], 300000);
        for (; n < sure && n < MOST; n++) {
            begin(&w[n], n + 1);
            turn(&w[n], 30);
            turn(&w[0], 30000);
        }
        sum = w[0].presented;
        for (uint32_t i = 1; i < n; i++) sum += w[i].presented;
        check(256 << 10, sum, kept, bins, MOST);
        for (uint32_t i = 0; i < n; i++)
            print_message("%s: %u keeps %llu in %u bins\n", strategy[s], i, (unsigned long long)kept[i], bins[i]);
        for (uint32_t i = 0; i < n; i++) assert_true(kept[i] > 0);
        assert_int_equal(fdri_life_recording.arena.super->lost_locations, 0);
        for (uint32_t i = 0; i < n; i++) end(&w[i]);
        fdr_finalize();
    }
}

/* A thread that found no room finds it within 200 events after there is some, and not only after 1,024. */
static void P2_refused_thread_looks_again(void **state)
{
    (void)state;
    uint32_t n = 0;
    start("telescope", "128K");
    for (; n < MOST && !fdri_life_recording.arena.super->lost_locations; n++) {
        begin(&w[n], n + 1);
        turn(&w[n], 30);
    }
    assert_true(n > 1 && n < MOST);
    for (uint32_t i = 0; i + 1 < n; i++) end(&w[i]);
    uint64_t before = fdri_life_recording.arena.super->lost_unattached;
    turn(&w[n - 1], 120); /* 120 calls are 240 events */
    print_message("%u threads; %u events later the last one found room\n", n,
                  (unsigned)(fdri_life_recording.arena.super->lost_unattached - before));
    assert_true(fdri_life_recording.arena.super->lost_unattached - before < 200);
    end(&w[n - 1]);
    fdr_finalize();
}

/* 64 threads in a buffer of 64 MiB are no crowd, even before they have used any of it. So no bands are joined. */
static void P4_a_few_threads_have_all_bands(void **state)
{
    (void)state;
    enum { FEW = 64 };
    static struct turn few[FEW];
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    start("telescope", "64M");
    for (int i = 0; i < FEW; i++) begin(&few[i], (uint64_t)i + 1);
    for (int i = 0; i < FEW; i++) turn(&few[i], 300);
    assert_false(fdri_shares_crowded());
    for (uint32_t off = a->super->location_first, flags; off;
         off = ((const struct fdri_arena_location *)fdri_bins_at(a, off))->next) {
        flags = ((const struct fdri_arena_location *)fdri_bins_at(a, off))->flags;
        assert_int_equal(
            flags & (FDRI_ARENA_LOCATION_JOINED | FDRI_ARENA_LOCATION_JOINED_LONG | FDRI_ARENA_LOCATION_JOINED_ALL), 0);
    }
    for (int i = 0; i < FEW; i++) end(&few[i]);
    fdr_finalize();
}

/* Sets up a crowd that is short of bins. The free pieces of the running thread are used up, so that only pieces
 * returned to it and to another location are left. Returns the other location. */
static struct fdri_arena_location *all_is_returned(const char *bin)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.strategy = "telescope";
    c.buffer = "4M";
    c.bin = bin;
    c.timer = NULL;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < 8; i++) region[i] = fdr_region_define("r", "shares", (unsigned)i);
    fdr_enter(region[0]);
    fdr_leave(region[0]);
    begin(&w[0], 1);
    turn(&w[0], 3);
    fdri_life_recording.shares.live = fdri_life_recording.arena.super->bins_total;
    fdri_life_recording.bin_reserve = UINT32_MAX;
    struct fdri_arena_location *other = fdri_bins_at(&fdri_life_recording.arena,
                                                     fdri_life_recording.arena.super->location_first);
    while (fdri_bins_piece_own(&fdri_life_recording.arena, fdri_record_self.loc, 9)) continue;
    assert_true(fdri_shares_crowded() && fdri_shares_poor(&fdri_record_self) && other != fdri_record_self.loc);
    return other;
}

/* After its own sleep, a thread first takes back the pieces taken from its own lists. It takes pieces of another
 * location only after these. */
static void P2_own_pieces_come_first(void **state)
{
    (void)state;
    struct fdri_arena_location *other = all_is_returned("4K"), *own = fdri_record_self.loc;
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t its = fdri_bins_piece_take(a, other, 10), mine = fdri_bins_piece_take(a, own, 10);
    while (fdri_bins_piece_own(a, own, 9)) continue;
    fdri_piece_return(a, other, its);
    fdri_piece_return(a, own, mine);
    assert_int_equal(fdri_memory_take_free(&fdri_record_self, 10), mine);
    assert_int_equal(fdri_strewn_count(a), 0);
    assert_int_equal(fdri_memory_take_free(&fdri_record_self, 10), its);
    assert_int_equal(fdri_strewn_count(a), 1);
    fdri_bins_piece_give(a, own, its, 10);
    fdri_bins_piece_leave(a, own);
    assert_int_equal(a->given_eighths, 2);
    /* no location owns it by then, and in the end no strewn bins are left */
    assert_int_equal(fdri_memory_take_free(&fdri_record_self, 10), its);
    assert_int_equal(a->given_eighths, 0);
    end(&w[0]);
    fdr_finalize();
}

/* Of large bins, no piece smaller than an eighth changes hands. A thread that needs less gets the rest of the
 * eighth, too. */
static void P2_pieces_of_large_bins(void **state)
{
    (void)state;
    static const char *const bin[] = {"1K", "2K", "4K", "8K", "16K", "64K"};
    for (size_t i = 0; i < sizeof bin / sizeof bin[0]; i++) {
        struct fdri_arena_location *other = all_is_returned(bin[i]), *own = fdri_record_self.loc;
        struct fdri_bins_arena *a = &fdri_life_recording.arena;
        uint32_t log2 = (uint32_t)fdri_bits_max(a->bin_log2 - 3, 9), its = fdri_bins_piece_take(a, other, log2);
        char text[128];
        fdri_piece_return(a, other, its);
        assert_int_equal(fdri_memory_take_free(&fdri_record_self, 9), its);
        assert_int_equal(own->strewn_units, 1u << (log2 - 9));
        assert_int_equal(own->piece_units, (1u << (log2 - 9)) - 1);
        assert_null(fdri_bins_check(a, text, sizeof text));
        end(&w[0]);
        fdr_finalize();
    }
}

/* While two threads adopt pieces of one bin, the owner's count may fall below 0 for a moment. If a longjmp leaves
 * one of them, it stays there. A count below 0 must read as few bins, not as very many. */
static void P2_negative_count_reads_as_few_bins(void **state)
{
    (void)state;
    all_is_returned("4K");
    uint32_t held = fdri_shares_bins_of(fdri_record_self.loc);
    fdri_record_self.loc->strewn_units -= 1;
    assert_int_equal(fdri_shares_bins_of(fdri_record_self.loc), held);
    assert_true(fdri_shares_poor(&fdri_record_self));
    fdri_record_self.loc->strewn_units += 1;
    end(&w[0]);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_a_sleeper_does_not_starve_newcomers),
                                       cmocka_unit_test(P2_newcomers_in_a_tiny_buffer),
                                       cmocka_unit_test(P2_refused_thread_looks_again),
                                       cmocka_unit_test(P4_a_few_threads_have_all_bands),
                                       cmocka_unit_test(P2_own_pieces_come_first),
                                       cmocka_unit_test(P2_pieces_of_large_bins),
                                       cmocka_unit_test(P2_negative_count_reads_as_few_bins)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
