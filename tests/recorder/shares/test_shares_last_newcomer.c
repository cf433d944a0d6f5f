/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P2 without=tsan (its threads take turns)
 * P2: fair shares among threads so deep that their newest bins are nearly all they have. The last thread comes when
 * all others sleep. It must get as much as they keep, and the memory taken from them must be used. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "recorder/recording.h"
#include "tests/support/counted_clock.h"
#include "tests/support/fair_share_fixture.h"

enum { DEEP = 60, DEEP_CALLS = 60000, MOST = 40 };

static sem_t done, go;
static fdr_region level[DEEP];

static void *deep(void *unused)
{
    counted_ns = 40;
    for (uint32_t i = 0; i < DEEP_CALLS / DEEP; i++) {
        for (uint32_t d = 0; d < DEEP; d++) fdr_enter(level[d]);
        for (uint32_t d = DEEP; d-- > 0;) fdr_leave(level[d]);
    }
    sem_post(&done);
    sem_wait(&go);
    return unused;
}

/* Stored bytes by location. All memory that is neither accounts nor free must hold events. */
static void stored(uint64_t bytes, uint32_t threads, uint64_t *least, uint64_t *sum)
{
    const char *wrong = NULL;
    struct fdr_file *f = oracle_snapshot(bytes, &wrong);
    assert_null(wrong);
    *least = UINT64_MAX;
    *sum = 0;
    for (size_t i = 0; i < threads; i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        *least = fdri_bits_min(*least, l->bytes_stored);
        *sum += l->bytes_stored;
    }
    fdr_file_close(f);
}

static void one_after_another(const char *buffer, uint64_t bytes, uint32_t threads)
{
    pthread_t t[MOST];
    uint64_t kept[MOST], least, sum;
    uint32_t bins[MOST];
    char name[16];
    timer = "monotonic";
    /* From 2^46 ns to 2^49 ns on this clock, the 40th thread in 8M gets one bin (docs/LIMITS.md). */
    counted_first_most = 1ull << 45;
    start("telescope", buffer);
    for (uint32_t i = 0; i < DEEP; i++) {
        snprintf(name, sizeof name, "level%u", i);
        level[i] = fdr_region_define(name, "shares", i);
    }
    for (uint32_t i = 0; i < threads; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, deep, NULL), 0);
        sem_wait(&done);
        counted_pass(20000000); /* then it sleeps */
    }
    check(bytes, (uint64_t)threads * DEEP_CALLS, kept, bins, threads);
    stored(bytes, threads, &least, &sum);
    struct fdr_usage u = fdr_usage();
    uint64_t meta = fdri_atomic_load_relaxed(&fdri_life_recording.meta_in_bins) +
                    fdri_bins_meta_used(&fdri_life_recording.arena),
             history = bytes - fdri_bits_min(bytes, meta);
    print_message("%s: %u threads hold %llu KiB of %llu that are not accounts, the poorest %llu; %llu events lost\n",
                  buffer, threads, (unsigned long long)sum >> 10, (unsigned long long)history >> 10,
                  (unsigned long long)least >> 10, (unsigned long long)u.lost);
    assert_int_equal(u.lost, 0);
    assert_true(sum > history / 2);
    assert_true(least > sum / threads / 4);
    for (uint32_t i = 0; i < threads; i++) sem_post(&go);
    for (uint32_t i = 0; i < threads; i++) pthread_join(t[i], NULL);
    fdr_finalize();
}

static void P2_newcomer_beside_deep_sleepers(void **state)
{
    (void)state;
    sem_init(&done, 0, 0);
    sem_init(&go, 0, 0);
    one_after_another("1M", 1 << 20, 4);
    one_after_another("4M", 4 << 20, 9);
    one_after_another("4M", 4 << 20, 21);
    one_after_another("8M", 8 << 20, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_newcomer_beside_deep_sleepers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
