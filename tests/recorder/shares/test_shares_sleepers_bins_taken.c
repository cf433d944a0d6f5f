/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=300 promise=P2,P3,P4
 * P2, P3, P4: threads record much and then sleep. Other threads take their bins, in the end even the open ones. The
 * sleepers' accounts must be exact meanwhile, after they wake up, and if they wake up while a bin is taken. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "bins/bins.h"
#include "bins/pressure/bins_pressure.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread.h"
#include "tests/support/fair_share_fixture.h"
#include "tests/support/sanitized.h"

enum { SLEEPERS = 60, CALLS = 12000, MORE = 80, BUFFER = 4 << 20 };

static struct turn sleeper[SLEEPERS], more[MORE];
static uint64_t kept[SLEEPERS + MORE + 8];
static uint32_t bins[SLEEPERS + MORE + 8];

/* Number of partitions whose newest bin was taken and whose owner has not seen that yet. */
static uint32_t taken(void)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t count = 0;
    for (uint32_t off = a->super->location_first; off;
         off = ((const struct fdri_arena_location *)fdri_bins_at(a, off))->next) {
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        for (uint32_t part = l->parts_first; part;) {
            const struct fdri_arena_part *p = fdri_bins_at(a, part);
            count += p->open_off && !(uint32_t)p->list_head;
            part = p->next;
        }
    }
    return count;
}

/* Number of times a location was taken for asleep, woke up, or had a bin taken. */
static uint64_t changes(void)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint64_t n = 0;
    for (uint32_t off = a->super->location_first; off;
         off = ((const struct fdri_arena_location *)fdri_bins_at(a, off))->next)
        n += ((const struct fdri_arena_location *)fdri_bins_at(a, off))->asleep >> 32;
    return n;
}

static uint64_t sum(void)
{
    uint64_t n = 0;
    for (int i = 0; i < SLEEPERS; i++) n += sleeper[i].presented;
    for (int i = 0; i < MORE; i++) n += more[i].presented;
    return n;
}

static void check_all(void)
{
    /* on a slow machine some threads may find no room */
    uint64_t unattached = fdri_life_recording.arena.super->lost_unattached;
    check(BUFFER, sum() - unattached, kept, bins, SLEEPERS + MORE + 8);
}

/* With `strew`, pieces change owners, and few whole bins are left to take. */
static void newest_bins_of_sleepers(bool strew)
{
    start("telescope", "4M");
    if (!strew) fdri_life_recording.arena.strewn = NULL;
    for (int i = 0; i < SLEEPERS; i++) begin(&sleeper[i], (uint64_t)i + 1);
    for (int i = 0; i < SLEEPERS; i++) turn(&sleeper[i], CALLS);
    usleep(20000);
    for (int i = 0; i < MORE; i++) begin(&more[i], (uint64_t)i + 1000);
    for (int i = 0; i < MORE; i++) turn(&more[i], CALLS / 4);
    uint32_t gone = taken();
    print_message("%u newest bins of %d sleeping threads were taken, %u are strewn\n", gone, SLEEPERS,
                  fdri_strewn_count(&fdri_life_recording.arena));
    if (strew) assert_true(fdri_strewn_count(&fdri_life_recording.arena) > 0);
    else assert_true(gone > 0);
    check_all();
    for (int i = 0; i < SLEEPERS; i++) turn(&sleeper[i], i % 3 ? 3 : 3000); /* they wake up */
    check_all();
    for (int i = 0; i < SLEEPERS; i++) end(&sleeper[i]); /* some of them end without another event */
    check_all();
    for (int i = 0; i < MORE; i++) end(&more[i]);
    fdr_finalize();
}

static void P2_P3_P4_newest_bins_of_sleepers(void **state)
{
    (void)state;
    newest_bins_of_sleepers(false);
}

static void P2_P3_P4_pieces_of_sleepers(void **state)
{
    (void)state;
    newest_bins_of_sleepers(true);
}

/* ---- sleepers wake up at any moment ---- */

enum { DOZERS = 140, ROUNDS = SANITIZED ? 4 : 12, SNAPSHOTS = SANITIZED ? 4 : 20 };
static uint64_t presented;
static pthread_barrier_t all_done; /* no thread ends, and so frees memory, before all are done */

static void *doze(void *number)
{
    struct turn w = {.seed = (uintptr_t)number * 7919 + 88172645463325252u};
    for (int i = 0; i < ROUNDS; i++) {
        w.calls = rnd(&w.seed, 3) ? rnd(&w.seed, 50) : 3000 + rnd(&w.seed, 6000);
        if (fdri_thread_attached()) work(&w);
        usleep(10000 + (useconds_t)rnd(&w.seed, 5000));
    }
    __atomic_fetch_add(&presented, w.presented, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all_done);
    return NULL;
}

static void awake_while_taken_from(bool strew)
{
    pthread_t thread[DOZERS];
    uint64_t events;
    const char *wrong = NULL;
    start("telescope", "4M");
    if (!strew) fdri_life_recording.arena.strewn = NULL;
    presented = 0;
    pthread_barrier_init(&all_done, NULL, DOZERS);
    for (uintptr_t i = 0; i < DOZERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, doze, (void *)(i + 1)), 0);
    for (int i = 0; i < SNAPSHOTS && !wrong; i++) {
        struct fdr_file *f = oracle_snapshot(BUFFER, &wrong);
        if (!wrong) wrong = oracle_check_any(f, &events);
        if (f) fdr_file_close(f);
        usleep(10000);
    }
    for (int i = 0; i < DOZERS; i++) pthread_join(thread[i], NULL);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    print_message("%llu times asleep, awake, or taken from; %u bins are strewn\n", (unsigned long long)changes(),
                  fdri_strewn_count(&fdri_life_recording.arena));
    assert_true(strew ? fdri_strewn_count(&fdri_life_recording.arena) > 0 : changes() > 0);
    check(BUFFER, presented, kept, bins, DOZERS);
    fdr_finalize();
}

static void P3_P4_awake_while_taken_from(void **state)
{
    (void)state;
    awake_while_taken_from(false);
}

static void P3_P4_awake_while_pieces_change_owners(void **state)
{
    (void)state;
    awake_while_taken_from(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P2_P3_P4_newest_bins_of_sleepers), cmocka_unit_test(P2_P3_P4_pieces_of_sleepers),
        cmocka_unit_test(P3_P4_awake_while_taken_from), cmocka_unit_test(P3_P4_awake_while_pieces_change_owners)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
