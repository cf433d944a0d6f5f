/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 without=tsan (its threads take turns)
 * Bins of 1 KiB are too small for blocks of accounts, and deep threads have used up the room of the meta end. Bins
 * stay free all the time. When these threads have ended and others come, an ended thread that finds no place for
 * its accounts must give back no events. */
#include <semaphore.h>

#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 300, DEEP = 270, SLEEPERS = 6, NEWCOMERS = 4, EVENTS = 40000 };
static fdr_region region[REGIONS];
static sem_t done, go[SLEEPERS];

static void present(uintptr_t number)
{
    uint64_t seed = 88172645463325252u + number, now = 1000000000;
    uint32_t open[DEEP], depth = 0;
    for (uint32_t i = 0; i < EVENTS; i++) {
        now += rnd(&seed, 3) ? rnd(&seed, 300) : rnd(&seed, 20) ? 0 : rnd(&seed, 400000);
        if (rnd(&seed, 4) == 0) fdr_marker_at(1, i, now);
        else if (!depth || (depth < DEEP && rnd(&seed, 40) < 21))
            fdr_enter_at(region[open[depth++] = rnd(&seed, REGIONS)], now);
        else fdr_leave_at(region[open[--depth]], now);
    }
    while (depth) fdr_leave_at(region[open[--depth]], now += 10);
}

static void *sleeper(void *number)
{
    present((uintptr_t)number);
    sem_post(&done);
    sem_wait(&go[(uintptr_t)number]);
    return NULL;
}

static void *newcomer(void *number)
{
    present((uintptr_t)number);
    return NULL;
}

/* Number of events that a location gave back. */
static uint64_t reduced(struct fdr_file *f, uint32_t location)
{
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += rows[i].location == location ? rows[i].reduced : 0;
    return sum;
}

static pthread_t begun(void *(*what)(void *), uintptr_t number)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, what, (void *)number), 0);
    return t;
}

static void nothing_is_given_back_in_vain(void **state)
{
    (void)state;
    pthread_t asleep[SLEEPERS];
    uint32_t whole = 0;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "8M", .bin = "1K"});
    for (unsigned i = 0; i < REGIONS; i++) region[i] = fdr_region_define("f", "small.c", i);
    fdr_marker_define("mark");
    sem_init(&done, 0, 0);
    for (uintptr_t i = 0; i < SLEEPERS; i++) {
        sem_init(&go[i], 0, 0);
        asleep[i] = begun(sleeper, i);
        sem_wait(&done);
    }
    for (int i = 0; i < SLEEPERS; i++) sem_post(&go[i]), pthread_join(asleep[i], NULL);
    for (uintptr_t i = 0; i < NEWCOMERS; i++) pthread_join(begun(newcomer, SLEEPERS + i), NULL);
    assert_true(fdr_usage().bins_free > fdr_usage().bins / 8);
    assert_true(fdr_usage().meta_bytes > (8u << 20) / 32 * 10); /* else no thread asked for memory of accounts */
    struct fdr_file *f = take();
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        if (l->ended_threads) continue;
        assert_int_equal(reduced(f, l->id), 0);
        whole++;
    }
    assert_true(whole > 1);
    balance(f);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_given_back_in_vain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
