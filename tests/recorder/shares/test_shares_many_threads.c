/* SPDX-License-Identifier: MIT */
/* ctest: label=threads,slow timeout=600 promise=P1,P2,P3,P5
 * P1, P2, P3, P5: many threads in one buffer. A hundred thousand short ones run one after another. The guaranteed
 * number of threads sleeps at once, and as many record at once. No event may be lost, every count is exact, and
 * memory is reused. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/fair_share_fixture.h"
#include "tests/support/sanitized.h"

enum { SLOWER = SANITIZED ? 80 : 1, BATCH = 32 };

static uint64_t presented;
static uint64_t *kept;
static uint32_t *bins;

static void *brief(void *seed)
{
    struct turn w = {.calls = 90, .seed = (uintptr_t)seed * 7919 + 88172645463325252u};
    work(&w);
    __atomic_fetch_add(&presented, w.presented, __ATOMIC_RELAXED);
    return NULL;
}

static void churn(uint32_t threads)
{
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 128 * 1024);
    for (uint32_t n = 0; n < threads; n += BATCH) {
        pthread_t t[BATCH];
        for (uint32_t i = 0; i < BATCH; i++)
            assert_int_equal(pthread_create(&t[i], &a, brief, (void *)(uintptr_t)(n + i + 1)), 0);
        for (int i = 0; i < BATCH; i++) pthread_join(t[i], NULL);
    }
    pthread_attr_destroy(&a);
}

static void one_churn(const char *strategy, const char *buffer, uint64_t bytes, uint32_t threads)
{
    start(strategy, buffer);
    presented = 0;
    churn(threads / SLOWER);
    struct fdr_usage u = fdr_usage();
    print_message(
        "%s %s: %u threads, %llu locations, %llu presented, %llu stored, %llu reduced, %llu lost, meta %llu K\n",
        strategy, buffer, threads / SLOWER, (unsigned long long)u.locations, (unsigned long long)u.presented,
        (unsigned long long)u.stored, (unsigned long long)u.reduced, (unsigned long long)u.lost,
        (unsigned long long)u.meta_bytes >> 10);
    assert_int_equal(u.presented, presented);
    check(bytes, presented, kept, bins, 1);
    assert_int_equal(fdri_life_recording.arena.super->lost_locations, 0);
    fdr_finalize();
}

static void P1_P3_P5_short_threads_in_a_small_buffer(void **state)
{
    (void)state;
    one_churn("whole", "1M", 1 << 20, 10000);
    one_churn("last", "4M", 4 << 20, 10000);
}

static void P1_P3_P5_a_hundred_thousand_short_threads(void **state)
{
    (void)state;
    enum { MIB = SANITIZED ? 8 : 64 }; /* they look at each byte of it */
    one_churn("whole", SANITIZED ? "8M" : "64M", MIB << 20, 30000);
    one_churn("telescope", SANITIZED ? "8M" : "64M", MIB << 20, 100000);
}

/* The guaranteed number of threads at once, after one thread has filled the buffer. After a few calls, each finds
 * room and keeps its last calls. After many calls they need more than the buffer. A few in a hundred may then lose
 * an event, or lose all stored events to others. */
static struct turn busy;
static void P2_sleepers_as_many_as_guaranteed(const char *buffer, uint64_t bytes, uint64_t calls, uint32_t in_a_hundred)
{
    start("telescope", buffer);
    uint32_t threads = fdri_life_recording.arena.super->locations_sure / SLOWER;
    struct turn *all = calloc(threads, sizeof *all);
    kept = realloc(kept, (threads + 8) * sizeof *kept);
    bins = realloc(bins, (threads + 8) * sizeof *bins);
    begin(&busy, 1);
    turn(&busy, bytes / 2); /* two bytes a call: several times the buffer */
    for (uint32_t i = 0; i < threads - 1; i++) begin(&all[i], i + 2);
    for (uint32_t i = 0; i < threads - 1; i++) turn(&all[i], calls); /* and then it sleeps */
    const struct fdri_arena_superblock *super = fdri_life_recording.arena.super;
    uint64_t sum = busy.presented, least = UINT64_MAX, away = super->lost_locations, lost = super->lost_unattached;
    for (uint32_t i = 0; i < threads - 1; i++) sum += all[i].presented;
    check(bytes, sum - lost, kept, bins, threads);
    uint32_t without = 0, few = threads * in_a_hundred / 100;
    for (uint32_t i = 1; i < threads; i++) {
        without += !kept[i];
        if (kept[i] && kept[i] < least) least = kept[i];
    }
    print_message("%s: %u threads sleep after %llu calls; %llu were turned away and lost %llu events; %u keep nothing, "
                  "the others %llu and "
                  "more; the busy one has %u bins, %u are strewn\n",
                  buffer, threads - 1, (unsigned long long)calls, (unsigned long long)away, (unsigned long long)lost,
                  without, (unsigned long long)least, bins[0], fdri_strewn_count(&fdri_life_recording.arena));
    assert_true(away <= few && lost <= few && without <= few);
    assert_true(few || least >= 100);
    end(&busy);
    for (uint32_t i = 0; i < threads - 1; i++) end(&all[i]);
    free(all);
    fdr_finalize();
}
static void P2_four_thousand_sleepers(void **state)
{
    (void)state;
    P2_sleepers_as_many_as_guaranteed("4M", 4 << 20, 300, 0);
    if (SANITIZED) return; /* more memory and more calls take the same paths */
    P2_sleepers_as_many_as_guaranteed("64M", 64 << 20, 300, 0);
    P2_sleepers_as_many_as_guaranteed("4M", 4 << 20, 3000, 10);
    P2_sleepers_as_many_as_guaranteed("64M", 64 << 20, 3000, 10);
}

/* The guaranteed number of threads, all alive and recording at once. Each yields the processor again and again in
 * the middle of its calls. All find room, and all their calls are kept, as for sleeping threads. */
enum { PIECES = 10 };
static pthread_barrier_t all_there;
static void *at_once(void *argument)
{
    struct turn *w = argument;
    pthread_barrier_wait(&all_there); /* all threads are alive, none has recorded */
    for (int i = 0; i < PIECES; i++) {
        work(w);
        sched_yield();
    }
    pthread_barrier_wait(&all_there); /* no thread ends before all have recorded */
    pthread_barrier_wait(&all_there); /* nor before the test has looked at the recording */
    return NULL;
}
static void record_at_once(const char *strategy, const char *buffer, uint64_t bytes, uint64_t calls)
{
    start(strategy, buffer);
    const struct fdri_arena_superblock *super = fdri_life_recording.arena.super;
    uint32_t threads = super->locations_sure / SLOWER;
    struct turn *all = calloc(threads, sizeof *all);
    kept = realloc(kept, (threads + 8) * sizeof *kept);
    bins = realloc(bins, (threads + 8) * sizeof *bins);
    pthread_barrier_init(&all_there, NULL, threads + 1);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 128 * 1024);
    for (uint32_t i = 0; i < threads; i++) {
        all[i] = (struct turn){.calls = calls / PIECES, .seed = (i + 1) * 7919 + 88172645463325252u};
        assert_int_equal(pthread_create(&all[i].thread, &a, at_once, &all[i]), 0);
    }
    pthread_attr_destroy(&a);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    uint64_t sum = 0, least = UINT64_MAX;
    for (uint32_t i = 0; i < threads; i++) sum += all[i].presented;
    struct fdr_usage u = fdr_usage();
    uint64_t away = super->lost_locations, lost = super->lost_unattached;
    print_message("%s %s: %u threads alive, %llu calls each at once: %llu turned away, %llu lost, %llu stored, "
                  "%llu reduced\n",
                  strategy, buffer, threads, (unsigned long long)calls, (unsigned long long)away,
                  (unsigned long long)lost, (unsigned long long)u.stored, (unsigned long long)u.reduced);
    assert_int_equal(away, 0);
    assert_int_equal(lost, 0);
    assert_int_equal(u.lost, 0);
    assert_int_equal(u.presented, sum);
    check(bytes, sum, kept, bins, threads);
    for (uint32_t i = 0; i < threads; i++)
        if (kept[i] < least) least = kept[i];
    print_message("each keeps %llu and more\n", (unsigned long long)least);
    assert_int_equal(least, calls); /* docs/CAPACITY.md, "Many threads" */
    pthread_barrier_wait(&all_there);
    for (uint32_t i = 0; i < threads; i++) pthread_join(all[i].thread, NULL);
    pthread_barrier_destroy(&all_there);
    /* the accounts are the same after all threads have ended */
    check(bytes, sum, kept, bins, threads);
    assert_int_equal(super->lost_locations, 0);
    free(all);
    fdr_finalize();
}
static void P2_P3_P5_four_thousand_record_at_once(void **state)
{
    (void)state;
    record_at_once("telescope", "64M", 64 << 20, 300);
}

int main(void)
{
    kept = calloc(1, sizeof *kept);
    bins = calloc(1, sizeof *bins);
    const struct CMUnitTest tests[] = {cmocka_unit_test(P1_P3_P5_short_threads_in_a_small_buffer),
                                       cmocka_unit_test(P1_P3_P5_a_hundred_thousand_short_threads),
                                       cmocka_unit_test(P2_four_thousand_sleepers),
                                       cmocka_unit_test(P2_P3_P5_four_thousand_record_at_once)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
