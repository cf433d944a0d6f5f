/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P3 wrap=fdri_memory_meta
 * P3: the buffer is full when a mark is set for the first time, or needs more places than before. Marks find room
 * in pieces of bins, as accounts do, even with the smallest bins. If there is none, the rewind does nothing, and
 * the next mark tries again. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { THREADS = 6, REGIONS = 16, DEPTH = 30, ENDED = 20, EVENTS_MIB = 400000, SECONDS_BAND = 22 };
static fdr_region region[REGIONS];
static pthread_barrier_t full;
static uint64_t events;
static uint32_t open_calls;

/* Calls of all durations, so that partitions of all bands exist. */
static uint64_t fill(uint64_t seed)
{
    uint64_t now = 1000;
    for (uint64_t i = 0; i < events; i++) {
        uint32_t depth = fdri_record_self.loc ? fdri_record_self.loc->depth : 0;
        now += 1 + rnd(&seed, 1ull << rnd(&seed, SECONDS_BAND));
        if (!depth || (depth < DEPTH && rnd(&seed, 100) > 46)) fdr_enter_at(region[rnd(&seed, REGIONS)], now);
        else fdr_leave_at(fdri_record_self.top->region, now);
    }
    while (fdri_record_self.loc->depth) fdr_leave_at(fdri_record_self.top->region, ++now);
    return now;
}

/* Rewinds one call. `ended` calls that were open at the mark have ended by then, and stay. */
static uint64_t forget_one(uint64_t now, uint32_t ended)
{
    fdr_rewind_mark();
    while (ended--) fdr_leave_at(fdri_record_self.top->region, now += 100);
    fdr_enter_at(region[0], now += 100);
    fdr_leave_at(region[0], now += 100);
    fdr_rewind();
    return now;
}

static void *worker(void *number)
{
    uint64_t now = fill((uintptr_t)number * 7919 + 88172645463325252u);
    pthread_barrier_wait(&full);
    now = forget_one(now, 0);
    for (uint32_t i = 0; i < open_calls; i++) fdr_enter_at(region[i % REGIONS], now += 100);
    now = forget_one(now, 0);
    now = forget_one(now, ENDED);
    while (fdri_record_self.loc->depth) fdr_leave_at(fdri_record_self.top->region, now += 100);
    pthread_barrier_wait(&full);
    pthread_barrier_wait(&full); /* until the snapshot is taken */
    return NULL;
}

static void one(const char *strategy, const char *buffer, const char *bin, uint32_t open)
{
    pthread_t thread[THREADS];
    begin(&(struct fdr_config){.strategy = strategy, .buffer = buffer, .bin = bin});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "rewind_room.c", 1);
    open_calls = open;
    events = (uint64_t)atoi(buffer) * EVENTS_MIB / THREADS;
    pthread_barrier_init(&full, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, worker, (void *)(i + 1)), 0);
    for (int i = 0; i < 2; i++) pthread_barrier_wait(&full);
    struct fdr_usage u = fdr_usage();
    struct fdr_file *f = take();
    print_message("%s %s, bins of %s: %llu given back, %llu lost, %llu forgotten\n", strategy, buffer, bin,
                  (unsigned long long)u.reduced, (unsigned long long)u.lost, (unsigned long long)u.filtered);
    assert_true(u.reduced > u.presented / 4);
    assert_int_equal(u.lost, 0);
    assert_int_equal(u.filtered, 3 * THREADS);
    balance(f);
    pthread_barrier_wait(&full);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&full);
    end(f);
}

static void P3_a_mark_in_a_full_buffer(void **state)
{
    (void)state;
    one("telescope", "2M", "4K", 2 * DEPTH);  /* twice as deep, so that new levels are needed, too */
    one("telescope", "4M", "512", DEPTH - 1); /* levels fit none of these bins */
    one("last", "4M", "4K", 2 * DEPTH);
}

static bool no_room;
uint32_t __real_fdri_memory_meta(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes);
uint32_t __wrap_fdri_memory_meta(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes);
uint32_t __wrap_fdri_memory_meta(struct fdri_thread *t, enum fdri_arena_meta_kind kind, uint32_t bytes)
{
    return no_room ? 0 : __real_fdri_memory_meta(t, kind, bytes);
}

/* Ten calls after a mark, then a rewind. Returns the number of calls dropped so far. */
static uint64_t ten(uint64_t *now)
{
    no_room = *now >= 2000 && *now < 4000;
    fdr_rewind_mark();
    no_room = false;
    for (int i = 0; i < 10; i++) fdr_enter_at(1, *now += 5), fdr_leave_at(1, *now += 5);
    fdr_rewind();
    return fdr_usage().filtered;
}

static void P3_a_mark_without_room(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) { /* the first mark of all, or one that needs more places */
        uint64_t forgotten = first ? 0 : 10, now = 1000;
        begin(&(struct fdr_config){.buffer = "1M"});
        if (!first) assert_int_equal(ten(&now), 10);
        for (now = 2000; now < 2600; now += 10) fdr_enter_at(2, now);
        assert_int_equal(ten(&now), forgotten);
        now = 4000;
        assert_int_equal(ten(&now), forgotten + 10);
        for (int i = 0; i < 60; i++) fdr_leave_at(2, now += 10);
        struct fdr_file *f = take();
        assert_int_equal(row(f, 0, FDR_IN_REGION, 61)->kept, 10);
        balance(f);
        end(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_a_mark_in_a_full_buffer),
                                       cmocka_unit_test(P3_a_mark_without_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
