/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P10 wrap=pthread_create
 * P10: the system refuses to create fdr's own thread. Then the signal for a snapshot has no effect: no snapshot is
 * taken, and the signal does not end the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "tests/support/scratch_directory.h"

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *how, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *how, void *(*start)(void *), void *argument)
{
    (void)t, (void)how, (void)start, (void)argument;
    return EAGAIN;
}

static void P10_no_thread_for_snapshots(void **state)
{
    (void)state;
    struct sigaction now;
    const struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .arena = "anonymous", .buffer = "4M", .dir = scratch, .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
    fdr_region r = fdr_region_define("r", NULL, 0);
    for (int i = 0; i < 1000; i++) {
        fdr_enter(r);
        if (i % 100 == 0) raise(SIGUSR1);
        fdr_leave(r);
    }
    assert_int_equal(fdr_snapshot("by hand"), 0);
    assert_int_equal(unlink(fdr_last_snapshot()), 0);
    assert_int_equal(fdr_usage().presented, 1000);
    fdr_finalize();
    assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_no_thread_for_snapshots)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
