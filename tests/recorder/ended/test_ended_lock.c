/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P2,P10
 * P2, P10: a signal handler does not wait for the lock on the accounts of ended threads if the interrupted thread
 * holds it. The test allows a wait of one hour, so a failure shows as a timeout. A longjmp or a new recording must
 * not leave the lock held for ever. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bins/bins.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
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
    assert_false(fdri_ended_freeze(an_hour)); /* as the thread's signal handler */
    assert_false(fdri_ended_lock(ME + 1, 0));
    assert_false(another_gets_it());
    fdri_ended_unlock();
    assert_true(another_gets_it());
    assert_true(fdri_ended_freeze(an_hour));
    assert_false(another_gets_it()); /* a snapshot walks, so accounts must not move */
    fdri_ended_unfreeze();
    assert_true(another_gets_it());
    fdr_finalize();
}

static void left_by_longjmp(void **state)
{
    (void)state;
    begin(NULL);
    assert_true(fdri_ended_lock(ME, 0));                                /* longjmp leaves this operation here */
    fdri_ended_abandoned(fdri_bins_at(&fdri_life_recording.arena, ME)); /* the lock holds the offset of its owner */
    assert_true(another_gets_it());
    assert_true(fdri_ended_lock(ME, 0));
    fdri_ended_unlock();
    fdr_finalize();
}

/* As in a child that was forked while the lock was held. */
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
