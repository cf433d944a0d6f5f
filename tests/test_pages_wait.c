/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 wrap=madvise
 * P10: a kernel that is asked for a large page may wait for as long as it takes until every processor has emptied its
 * lists. Recording begins without it, and the next one as well. Here it waits until both are over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

#include <fdr/fdr.h>

enum { COLLAPSE = 25, PAGES = 4 };
static sem_t asked, go_on;
static bool waiting;

int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice)
{
    if (advice != COLLAPSE) return __real_madvise(at, bytes, advice);
    bool wait = waiting;
    sem_post(&asked);
    while (wait && sem_wait(&go_on)) {}
    return 0;
}

static void begin_and_end(void)
{
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "8M",
                                 .signal = "none",
                                 .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
    fdr_region r = fdr_region_define("r", NULL, 0);
    for (int i = 0; i < 1000; i++) fdr_enter(r), fdr_leave(r);
    struct fdr_usage u = fdr_usage();
    assert_int_equal(u.presented, 1000);
    fdr_finalize();
}

static unsigned asked_for(void)
{
    unsigned n = 0;
    while (sem_trywait(&asked) == 0) n++;
    return n;
}

static void P10_a_kernel_that_waits(void **state)
{
    (void)state;
    sem_init(&asked, 0, 0);
    sem_init(&go_on, 0, 0);
    begin_and_end();
    assert_int_equal(asked_for(), PAGES);
    waiting = true;
    begin_and_end();
    assert_int_equal(asked_for(), 1);
    begin_and_end(); /* that one waits still */
    assert_int_equal(asked_for(), 0);
    waiting = false;
    sem_post(&go_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_a_kernel_that_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
