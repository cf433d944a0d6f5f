/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * P10: exit() while another thread is in fork(). By the time the recording ends the C library has forgotten the
 * library's handlers of fork, and that thread comes out of it with all locks held: the process ends all the same, and
 * leaves no live file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "tests/support/deaths.h"

static uint32_t inside;

/* Was there before the library's, so it runs behind that. */
static void take_long(void)
{
    __atomic_store_n(&inside, 1u, __ATOMIC_RELEASE);
    usleep(300000);
}

static void *forks(void *unused)
{
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    fdr_region_define("behind it", NULL, 0);
    return unused;
}

static void exits(void)
{
    struct fdr_config c = death_config(death_place_as_it_is());
    pthread_t t;
    pthread_atfork(take_long, NULL, NULL);
    if (fdr_init(&c)) _exit(98);
    FDR_REGION("work") pthread_create(&t, NULL, forks, NULL);
    while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE)) usleep(1000);
    exit(0);
}

static void P10_exit_while_another_thread_forks(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
    skip(); /* locks are given back for a thread that never will */
#endif
    const struct death_place *p = death_place();
    pid_t pid;
    assert_int_equal(death_of(NULL, exits, &pid), 0);
    assert_string_equal(death_file(p->live), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_exit_while_another_thread_forks)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
