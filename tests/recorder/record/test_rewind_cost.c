/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 serial promise=P2,P3
 * P2, P3: a rewind reads only the bins that it takes back, and so does the repair of an abandoned operation. Other
 * bins are made unreadable, so a failure is a SIGSEGV. Epochs count the remaining bins. Repeated rewinds leave bins
 * with few records, but must not make a thread search for room less often, or it would lose events. */
#include "base/atomic.h"
#include "base/bits.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    REGIONS = 8,
    DEPTH = 8,
    STRETCH = 60,
    ITERATIONS = SANITIZED ? 3000 : 10000,
    THREADS = 3,
    PAGE = 4096,
    STRATEGIES = 3
};
/* a buffer, events that fill it, and bins of it that they fill for certain */
enum { MIB = SANITIZED ? 2 : 16, EVENTS = MIB * 190000, FULL = MIB * 64 };
#define BUFFER (SANITIZED ? "2M" : "16M")
static const char *const strategies[STRATEGIES] = {"telescope", "whole", "last"};
static fdr_region region[REGIONS];
static fdr_marker_id marker;

static void start_pinned(const char *strategy, const char *buffer, const char *pin)
{
    begin(&(struct fdr_config){.strategy = strategy, .buffer = buffer, .pin = pin});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "rewind_cost.c", 1);
    marker = fdr_marker_define("m");
}

static void start(const char *strategy, const char *buffer) { start_pinned(strategy, buffer, NULL); }

/* Calls of all durations up to some milliseconds, and a marker now and then. */
static void stretch(uint64_t *seed, uint64_t *now, uint32_t events)
{
    for (uint32_t i = 0; i < events; i++) {
        uint32_t depth = fdri_record_self.loc ? fdri_record_self.loc->depth : 0;
        *now += 1 + rnd(seed, 1ull << rnd(seed, 22));
        if (!rnd(seed, 20)) fdr_marker_at(marker, i, *now);
        else if (!depth || (depth < DEPTH && rnd(seed, 2))) fdr_enter_at(region[rnd(seed, REGIONS)], *now);
        else fdr_leave_at(fdri_record_self.top->region, *now);
    }
    while (fdri_record_self.loc->depth) fdr_leave_at(fdri_record_self.top->region, ++*now);
}

/* Makes whole bins inaccessible: all but the last two of each list. Returns their number. */
static uint32_t shut(uint32_t *off_of)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t count = 0;
    for (struct fdri_arena_part *p = fdri_strategy_part_at(&fdri_record_self, fdri_record_self.loc->parts_first); p;
         p = fdri_strategy_part_at(&fdri_record_self, p->next)) {
        uint32_t left = p->bins;
        for (uint32_t off = (uint32_t)p->list_head; off && left-- > 2; off = fdri_bins_bin(a, off)->next)
            if (fdri_bins_bin(a, off)->size_log2 == 12 && !((uintptr_t)fdri_bins_bin(a, off) % PAGE))
                off_of[count++] = off;
    }
    for (uint32_t i = 0; i < count; i++) assert_int_equal(mprotect(fdri_bins_bin(a, off_of[i]), PAGE, PROT_NONE), 0);
    return count;
}

static void open_again(const uint32_t *off_of, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(mprotect(fdri_bins_bin(&fdri_life_recording.arena, off_of[i]), PAGE, PROT_READ | PROT_WRITE),
                         0);
}

static void P2_a_rewind_looks_at_what_it_takes(void **state)
{
    static uint32_t bins[MIB << 20 >> 12];
    (void)state;
    for (int i = 0; i < STRATEGIES; i++) {
        uint64_t seed = 77, now = 1000;
        start(strategies[i], BUFFER);
        stretch(&seed, &now, EVENTS);
        uint32_t count = shut(bins);
        fdr_rewind(); /* without a mark */
        fdr_rewind_mark();
        stretch(&seed, &now, 40);
        fdr_rewind();
        open_again(bins, count);
        assert_true(count > FULL);
        struct fdr_file *f = take();
        balance(f);
        end(f);
    }
}

/* With FDR_PIN, the repair must not count the epochs anew from all bins. */
static void P2_abandoned_operation_is_repaired_without_a_rewind(void **state)
{
    static uint32_t bins[MIB << 20 >> 12];
    uint64_t seed = 77, now = 1000;
    (void)state;
    start_pinned("telescope", BUFFER, "1ms");
    stretch(&seed, &now, EVENTS);
    assert_true(fdri_record_self.pinned_units && !fdri_record_self.pinning);
    uint32_t count = shut(bins);
    fdri_record_self.loc->busy = 1; /* set by a frame that no longer exists */
    stretch(&seed, &now, 40);
    open_again(bins, count);
    assert_int_equal(fdri_record_self.loc->abandoned, 1);
    assert_true(count > FULL);
    struct fdr_file *f = take();
    balance(f);
    end(f);
}

/* Compares each epoch's count of units with its closed bins. The newest bin of a list counts only if it is marked
 * as counted. */
static void look_at_epochs(uint32_t n)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    const struct fdri_arena_epochs *e = fdri_strategy_epochs(&fdri_record_self);
    uint64_t units[FDRI_ARENA_EPOCHS_MAX] = {0};
    if (!e) return;
    for (const struct fdri_arena_part *p = fdri_strategy_part_at(&fdri_record_self, fdri_record_self.loc->parts_first);
         p; p = fdri_strategy_part_at(&fdri_record_self, p->next)) {
        for (uint32_t off = (uint32_t)p->list_head; off; off = fdri_bins_bin(a, off)->next) {
            const struct fdri_arena_bin *b = fdri_bins_bin(a, off);
            uint64_t end = b->next ? fdri_bins_bin(a, b->next)->base_tick : p->last_tick;
            uint32_t i = e->count - 1;
            while (i && e->epoch[i].from_tick >= end) i--;
            if (b->next || p->flags & FDRI_ARENA_PART_COUNTED) units[i] += 1u << (b->size_log2 - 9);
        }
    }
    for (uint32_t i = 0; i < e->count; i++)
        if (units[i] != e->epoch[i].units)
            fail_msg("rewind %u: epoch %u of %u counts %u units, has %llu", n, i, e->count, e->epoch[i].units,
                     (unsigned long long)units[i]);
}

static void epochs_count_what_is_left(void **state)
{
    (void)state;
    uint64_t seed = 5, now = 1000;
    start("telescope", "1M");
    for (uint32_t n = 0; n < (SANITIZED ? 600 : 3000); n++) {
        stretch(&seed, &now, (uint32_t)rnd(&seed, 600));
        fdr_rewind_mark();
        stretch(&seed, &now, (uint32_t)rnd(&seed, rnd(&seed, 50) ? 100 : 9000));
        fdr_rewind();
        look_at_epochs(n);
    }
    assert_true(fdr_usage().reductions > 100);
    end(take());
}

static void *rewinder(void *number)
{
    uint64_t seed = (uintptr_t)number * 7919 + 88172645463325252u, now = 1000;
    for (int i = 0; i < ITERATIONS; i++) {
        fdr_rewind_mark();
        stretch(&seed, &now, STRETCH);
        if (i % 2) fdr_rewind();
    }
    return NULL;
}

static void P3_threads_that_rewind_find_room(void **state)
{
    (void)state;
    for (int i = 0; i < STRATEGIES; i++) {
        pthread_t thread[THREADS];
        start(strategies[i], "2M");
        for (uintptr_t k = 0; k < THREADS; k++)
            assert_int_equal(pthread_create(&thread[k], NULL, rewinder, (void *)k), 0);
        for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
        struct fdr_usage u = fdr_usage();
        if (u.lost * 1000 > u.presented)
            fail_msg("%s: %llu of %llu lost", strategies[i], (unsigned long long)u.lost,
                     (unsigned long long)u.presented);
        struct fdr_file *f = take();
        balance(f);
        end(f);
    }
}

static pthread_barrier_t all_there, over;

static void *sleeper(void *number)
{
    uint64_t seed = (uintptr_t)number * 7919 + 88172645463325252u, now = 1000;
    stretch(&seed, &now, 40);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&over);
    return NULL;
}

/* Many sleeping threads make the fair share small, while threads that are awake hold much more. */
static void P3_rewinds_beside_many_sleepers(void **state)
{
    enum { SLEEPERS = 200 };
    (void)state;
    pthread_t thread[SLEEPERS], awake[2];
    start("telescope", "8M");
    pthread_barrier_init(&all_there, NULL, SLEEPERS + 1);
    pthread_barrier_init(&over, NULL, SLEEPERS + 1);
    for (uintptr_t k = 0; k < SLEEPERS; k++) assert_int_equal(pthread_create(&thread[k], NULL, sleeper, (void *)k), 0);
    pthread_barrier_wait(&all_there);
    uint64_t before = fdr_usage().lost;
    for (uintptr_t k = 0; k < 2; k++) assert_int_equal(pthread_create(&awake[k], NULL, rewinder, (void *)k), 0);
    for (int k = 0; k < 2; k++) pthread_join(awake[k], NULL);
    struct fdr_usage u = fdr_usage();
    pthread_barrier_wait(&over);
    for (int k = 0; k < SLEEPERS; k++) pthread_join(thread[k], NULL);
    if ((u.lost - before) * 100 > u.presented)
        fail_msg("%llu of %llu lost", (unsigned long long)(u.lost - before), (unsigned long long)u.presented);
    fdr_finalize();
}

static bool comes, is_there;

static void *newcomer(void *unused)
{
    uint64_t seed = 5, now = 1000;
    while (!__atomic_load_n(&comes, __ATOMIC_ACQUIRE)) usleep(1000);
    stretch(&seed, &now, 200000);
    __atomic_store_n(&is_there, true, __ATOMIC_RELEASE);
    return unused;
}

/* Percentage of its bins that a rewinding thread keeps while another thread starts. */
static uint32_t left_beside_newcomer(void)
{
    pthread_t other;
    uint64_t seed = 77, now = 1000;
    start("telescope", "16M");
    comes = is_there = false;
    assert_int_equal(pthread_create(&other, NULL, newcomer, NULL), 0);
    stretch(&seed, &now, 6000000);
    uint32_t before = fdri_atomic_load_relaxed(&fdri_record_self.loc->bins_held);
    __atomic_store_n(&comes, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&is_there, __ATOMIC_ACQUIRE)) {
        fdr_rewind_mark();
        stretch(&seed, &now, STRETCH);
        fdr_rewind();
    }
    pthread_join(other, NULL);
    uint32_t after = fdri_atomic_load_relaxed(&fdri_record_self.loc->bins_held);
    fdr_finalize();
    return after * 100 / before;
}

/* A thread that takes bins at that moment costs the rewinding thread no more than these bins. The exception is a
 * taker that loses its processor midway; so the test takes the best of 12 tries. */
static void P3_rewinds_while_another_thread_takes_bins(void **state)
{
    (void)state;
    uint32_t best = 0;
    for (int i = 0; i < 12 && best < 75; i++) best = (uint32_t)fdri_bits_max(best, left_beside_newcomer());
    assert_in_range(best, 75, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_a_rewind_looks_at_what_it_takes),
                                       cmocka_unit_test(P2_abandoned_operation_is_repaired_without_a_rewind),
                                       cmocka_unit_test(epochs_count_what_is_left),
                                       cmocka_unit_test(P3_threads_that_rewind_find_room),
                                       cmocka_unit_test(P3_rewinds_beside_many_sleepers),
                                       cmocka_unit_test(P3_rewinds_while_another_thread_takes_bins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
