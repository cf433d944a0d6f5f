/* SPDX-License-Identifier: MIT */
/* ctest: label=stress timeout=300
 * Fair shares: who holds how much when threads come, work, sleep and end in one buffer. Threads take turns, so that
 * what they hold does not depend on the machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/shares.h"

#define BUFFER "2M"
enum { BYTES = 2 << 20, CALLS = 1500000 };
enum { MOST = 64 };
static struct turn w[MOST];
static uint64_t kept[MOST];
static uint32_t bins[MOST];

/* One thread fills all and sleeps. A second one gets half; a third one later a third, the sleeper never runs. */
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

/* One thread holds a tiny buffer, most of it in open bins and pieces, which nobody can claim. While it goes on recording, as many
 * others come as the buffer guarantees; each finds room for its first calls. */
static void P2_newcomers_in_a_tiny_buffer(void **state)
{
    (void)state;
    static const char *const strategy[] = {"telescope", "whole", "last"};
    for (int s = 0; s < 3; s++) {
        start(strategy[s], "256K");
        uint32_t sure = fdri_rec.arena.super->locations_sure, n = 1;
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
        assert_int_equal(fdri_rec.arena.super->lost_locations, 0);
        for (uint32_t i = 0; i < n; i++) end(&w[i]);
        fdr_finalize();
    }
}

/* Who found no room finds it soon after there is some, not 1,024 events later. */
static void P2_who_was_turned_away_looks_again(void **state)
{
    (void)state;
    uint32_t n = 0;
    start("telescope", "128K");
    for (; n < MOST && !fdri_rec.arena.super->lost_locations; n++) {
        begin(&w[n], n + 1);
        turn(&w[n], 30);
    }
    assert_true(n > 1 && n < MOST);
    for (uint32_t i = 0; i + 1 < n; i++) end(&w[i]);
    uint64_t before = fdri_rec.arena.super->lost_unattached;
    turn(&w[n - 1], 120); /* calls: 240 events */
    print_message("%u threads; %u events later the last one found room\n", n,
                  (unsigned)(fdri_rec.arena.super->lost_unattached - before));
    assert_true(fdri_rec.arena.super->lost_unattached - before < 200);
    end(&w[n - 1]);
    fdr_finalize();
}

/* A machine's worth of threads in the usual buffer is no crowd, also before they have used any of it. */
static void P4_a_few_threads_have_all_bands(void **state)
{
    (void)state;
    enum { FEW = 64 };
    static struct turn few[FEW];
    const struct fdri_arena *a = &fdri_rec.arena;
    start("telescope", "64M");
    for (int i = 0; i < FEW; i++) begin(&few[i], (uint64_t)i + 1);
    for (int i = 0; i < FEW; i++) turn(&few[i], 300);
    assert_false(fdri_crowded());
    for (uint32_t off = a->super->location_first, flags; off;
         off = ((const struct fdr_location *)fdri_at(a, off))->next) {
        flags = ((const struct fdr_location *)fdri_at(a, off))->flags;
        assert_int_equal(flags & (FDR_LOCATION_JOINED | FDR_LOCATION_JOINED_LONG | FDR_LOCATION_JOINED_ALL), 0);
    }
    for (int i = 0; i < FEW; i++) end(&few[i]);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P2_a_sleeper_does_not_starve_newcomers), cmocka_unit_test(P2_newcomers_in_a_tiny_buffer),
        cmocka_unit_test(P2_who_was_turned_away_looks_again), cmocka_unit_test(P4_a_few_threads_have_all_bands)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
