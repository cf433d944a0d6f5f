/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P2,P10
 * A handler does not wait for what the thread that it interrupts holds: the accounts of ended threads, for an hour
 * here. And nobody holds them for good. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bins/bins.h"
#include "recorder/ended/ended.h"
#include "recorder/life/recording.h"
#include "tests/support/api_fixture.h"

enum { ME = 64, HOUR = 3600 };
static const uint64_t an_hour = HOUR * 1000000000ull;

static void *try_once(void *result)
{
    *(bool *)result = fdri_ended_lock(ME + 1, 0);
    if (*(bool *)result) fdri_ended_unlock();
    return NULL;
}

static bool another_gets_it(void)
{
    pthread_t t;
    bool result = false;
    assert_int_equal(pthread_create(&t, NULL, try_once, &result), 0);
    pthread_join(t, NULL);
    return result;
}

static void a_handler_does_not_wait_for_its_thread(void **state)
{
    (void)state;
    begin(NULL);
    assert_true(fdri_ended_lock(ME, 0));
    assert_false(fdri_ended_freeze(an_hour)); /* as its handler */
    assert_false(fdri_ended_lock(ME + 1, 0));
    assert_false(another_gets_it());
    fdri_ended_unlock();
    assert_true(another_gets_it());
    assert_true(fdri_ended_freeze(an_hour));
    assert_false(another_gets_it()); /* a snapshot walks: accounts stay where they are */
    fdri_ended_unfreeze();
    assert_true(another_gets_it());
    fdr_finalize();
}

static void left_by_longjmp(void **state)
{
    (void)state;
    begin(NULL);
    assert_true(fdri_ended_lock(ME, 0));                                /* and no more of that operation */
    fdri_ended_abandoned(fdri_bins_at(&fdri_life_recording.arena, ME)); /* the lock is known by who holds it: its off */
    assert_true(another_gets_it());
    assert_true(fdri_ended_lock(ME, 0));
    fdri_ended_unlock();
    fdr_finalize();
}

/* A child, say, that was forked in the middle. */
static void the_next_recording_has_its_own(void **state)
{
    (void)state;
    begin(NULL);
    assert_true(fdri_ended_lock(ME, 0));
    fdr_finalize();
    begin(NULL);
    assert_true(fdri_ended_freeze(an_hour));
    fdri_ended_unfreeze();
    assert_true(another_gets_it());
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_handler_does_not_wait_for_its_thread),
                                       cmocka_unit_test(left_by_longjmp),
                                       cmocka_unit_test(the_next_recording_has_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
