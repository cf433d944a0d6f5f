/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=240 promise=P2 without=tsan (its threads take turns) wrap=fdri_piece_whole
 * P2: sleeping threads have left thousands of returned pieces, none of which completes a whole bin. A thread that
 * asks for room must not look at each piece each time. At most one request in four may search them all. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bins/bins.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/fair_share_fixture.h"

enum { LEVELS = 40, FILL = 2000000, ASKS = 100000 };

static uint64_t looks, now = 1000;

uint32_t __real_fdri_piece_whole(struct fdri_bins_arena *a, struct fdri_arena_location *l,
                                 struct fdri_bins_returned *left);
uint32_t __wrap_fdri_piece_whole(struct fdri_bins_arena *a, struct fdri_arena_location *l,
                                 struct fdri_bins_returned *left);
uint32_t __wrap_fdri_piece_whole(struct fdri_bins_arena *a, struct fdri_arena_location *l,
                                 struct fdri_bins_returned *left)
{
    looks++;
    return __real_fdri_piece_whole(a, l, left);
}

static void walk(uint64_t *seed, uint64_t steps)
{
    fdr_region open[LEVELS];
    uint32_t d = 0;
    for (uint64_t i = 0; i < steps; i++) {
        now += rnd(seed, 600);
        if (d == 0 || (d < LEVELS && rnd(seed, 2))) fdr_enter_at(open[d++] = region[rnd(seed, 8)], now);
        else fdr_leave_at(open[--d], now);
    }
    while (d) fdr_leave_at(open[--d], ++now);
}

static sem_t done, go;
static void *sleeper(void *number)
{
    uint64_t seed = (uintptr_t)number * 7919 + 88172645463325252u;
    walk(&seed, FILL);
    sem_post(&done);
    sem_wait(&go);
    return NULL;
}

static void P2_pieces_that_wait_are_not_looked_at_again_and_again(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    pthread_t t[2];
    uint64_t seed = 88172645463325252u;
    char text[160];
    c.strategy = "last";
    c.bin = "64K";
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < 8; i++) region[i] = fdr_region_define((char[2]){(char)('a' + i), 0}, NULL, 0);
    sem_init(&done, 0, 0);
    sem_init(&go, 0, 0);
    for (uintptr_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, sleeper, (void *)(i + 1)), 0);
        sem_wait(&done);
    }
    walk(&seed, ASKS);
    looks = 0;
    uint64_t before = fdri_life_recording.shares.bins_refilled;
    walk(&seed, ASKS);
    uint64_t asked = fdri_life_recording.shares.bins_refilled - before;
    print_message("asked for room %llu times, looked at all that waits %llu times\n", (unsigned long long)asked,
                  (unsigned long long)looks);
    assert_true(asked >= 50);
    assert_true(looks < asked / 4);
    assert_null(fdri_bins_check(&fdri_life_recording.arena, text, sizeof text));
    for (int i = 0; i < 2; i++) sem_post(&go);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_pieces_that_wait_are_not_looked_at_again_and_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
