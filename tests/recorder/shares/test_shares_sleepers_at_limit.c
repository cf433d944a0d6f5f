/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=300 promise=P2
 * P2: the guaranteed number of threads, each of which calls five deep and then sleeps, so that together they just
 * fill the buffer. A busy thread never stops. Each new thread must find room, although the sleepers hold only
 * accounts and a few newest bins, hardly any of them whole. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/fair_share_fixture.h"
#include "tests/support/sanitized.h"

enum { SLOWER = SANITIZED ? 20 : 1, CALLS = 1000, DEEPEST = 5, BYTES = 64 << 20 };

static sem_t done, go;
static bool stop;
static uint64_t presented; /* atomic */

static uint64_t deep_calls(uint64_t *seed, uint64_t calls)
{
    uint64_t made = 0;
    while (made < calls) {
        uint64_t deep = 1 + rnd(seed, DEEPEST);
        for (uint64_t d = 0; d < deep; d++) fdr_enter(region[rnd(seed, 8)]);
        while (fdri_record_self.loc && fdri_record_self.loc->depth) {
            for (volatile uint64_t work = rnd(seed, 64); work; work--) continue;
            fdr_leave(fdri_record_self.top->region);
        }
        made += deep;
    }
    return made;
}

static void *sleeper(void *number)
{
    uint64_t seed = (uintptr_t)number * 7919 + 88172645463325252u, made = deep_calls(&seed, CALLS);
    __atomic_fetch_add(&presented, made, __ATOMIC_RELAXED);
    sem_post(&done);
    sem_wait(&go);
    return NULL;
}

static void *busy(void *unused)
{
    uint64_t seed = 7, made = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) made += deep_calls(&seed, CALLS);
    __atomic_fetch_add(&presented, made, __ATOMIC_RELAXED);
    return unused;
}

static void P2_newcomer_finds_room(void **state)
{
    (void)state;
    start("telescope", "64M");
    uint32_t threads = fdri_life_recording.arena.super->locations_sure / SLOWER;
    pthread_t *t = calloc(threads, sizeof *t), never_stops;
    uint64_t *kept = calloc(threads + 8, sizeof *kept);
    uint32_t *bins = calloc(threads + 8, sizeof *bins);
    pthread_attr_t a;
    sem_init(&done, 0, 0);
    sem_init(&go, 0, 0);
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 128 * 1024);
    assert_int_equal(pthread_create(&never_stops, NULL, busy, NULL), 0);
    for (uint32_t i = 0; i + 1 < threads; i++)
        assert_int_equal(pthread_create(&t[i], &a, sleeper, (void *)(uintptr_t)(i + 1)), 0);
    for (uint32_t i = 0; i + 1 < threads; i++) sem_wait(&done);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(never_stops, NULL);
    const struct fdri_arena_superblock *super = fdri_life_recording.arena.super;
    uint64_t away = super->lost_locations, lost = super->lost_unattached;
    print_message("%u threads: %llu turned away, %llu events nowhere\n", threads, (unsigned long long)away,
                  (unsigned long long)lost);
    for (uint32_t i = 0; i + 1 < threads; i++) sem_post(&go);
    for (uint32_t i = 0; i + 1 < threads; i++) pthread_join(t[i], NULL);
    assert_true(away <= threads / 100);
    if (!away && !lost) check(BYTES, presented, kept, bins, threads);
    fdr_finalize();
    pthread_attr_destroy(&a);
    free(t);
    free(kept);
    free(bins);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_newcomer_finds_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
